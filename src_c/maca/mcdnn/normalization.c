/* The Normalization functions: batch normalization under a newer interface (mcdnn 6.2, 6.11, 6.12, 7.2, 7.3). */
#include "norm.h"

/* Statistics unlike the parameters; forwards NOT_SUPPORTED, backwards BAD_PARAM (mcdnn 6.11 #6, 6.12). */
static void check_statistics(Call *call, int32_t status, const Tensor *statistics, const char *parameter,
                             const Tensor *parameters)
{
    check_same_sizes(call, status, "normMeanVarDesc", statistics, parameter, parameters);
    check_same_type(call, status, "normMeanVarDesc", statistics, parameter, parameters);
}

mcdnnStatus_t mcdnnDeriveNormTensorDescriptor(
    mcdnnTensorDescriptor_t derivedNormScaleBiasDesc,
    mcdnnTensorDescriptor_t derivedNormMeanVarDesc, const mcdnnTensorDescriptor_t xDesc,
    mcdnnNormMode_t mode, int groupCnt)
{
    Call call = us_call_begin("mcdnnDeriveNormTensorDescriptor");
    Tensor *parameters =
        descriptor_of(&call, "derivedNormScaleBiasDesc", derivedNormScaleBiasDesc, HANDLE_TENSOR,
                      "a tensor descriptor");
    Tensor *statistics =
        descriptor_of(&call, "derivedNormMeanVarDesc", derivedNormMeanVarDesc, HANDLE_TENSOR, "a tensor descriptor");
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    check_range(&call, "mode", mode, MCDNN_NORM_PER_ACTIVATION, MCDNN_NORM_PER_CHANNEL);
    check_norm_rank(&call, "xDesc", x);
    check_norm_groups(&call, groupCnt);
    if (call.status == 0)
        *parameters = *statistics = norm_derived(x, mode == MCDNN_NORM_PER_ACTIVATION);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnNormalizationForwardInference(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const void *alpha, const void *beta, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnTensorDescriptor_t normScaleBiasDesc, const void *normScale,
    const void *normBias, const mcdnnTensorDescriptor_t normMeanVarDesc,
    const void *estimatedMean, const void *estimatedVariance,
    const mcdnnTensorDescriptor_t zDesc, const void *z,
    mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t yDesc, void *y,
    double epsilon, int groupCnt)
{
    Call call = us_call_begin("mcdnnNormalizationForwardInference");
    const bool per_activation = mode == MCDNN_NORM_PER_ACTIVATION;
    const bool fused = normOps != MCDNN_NORM_OPS_NORM, adds = normOps == MCDNN_NORM_OPS_NORM_ADD_ACTIVATION;
    const Dnn *dnn = check_handle(&call, handle);
    NormOperands operands = {.x = check_tensor(&call, "xDesc", xDesc), .y = check_tensor(&call, "yDesc", yDesc),
                             .parameters = check_tensor(&call, "normScaleBiasDesc", normScaleBiasDesc),
                             .statistics = check_tensor(&call, "normMeanVarDesc", normMeanVarDesc), .x_data = x,
                             .y_data = y, .scale = normScale, .bias = normBias, .mean = estimatedMean,
                             .variance = estimatedVariance};
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "x", x);
    check_given(&call, "y", y);
    check_given(&call, "normScale", normScale);
    check_given(&call, "normBias", normBias);
    check_given(&call, "estimatedMean", estimatedMean);
    check_given(&call, "estimatedVariance", estimatedVariance);
    const ActivationDescriptor *activation = fused ? check_activation(&call, activationDesc) : NULL;
    if (adds) {
        operands.z = check_tensor(&call, "zDesc", zDesc);
        operands.z_data = z;
        check_given(&call, "z", z);
    }
    check_norm_modes(&call, mode, normOps, algo);
    check_norm_rank(&call, "xDesc", operands.x);
    check_norm_rank(&call, "yDesc", operands.y);
    check_norm_shape(&call, "normScaleBiasDesc", operands.parameters, operands.x, per_activation);
    check_norm_epsilon(&call, epsilon, 0);
    check_norm_like(&call, "yDesc", operands.y, operands.x);
    if (adds)
        check_norm_like(&call, "zDesc", operands.z, operands.x);
    check_norm_type(&call, "xDesc", operands.x, true);
    check_norm_parameter_type(&call, "normScaleBiasDesc", operands.parameters, operands.x);
    check_statistics(&call, MCDNN_STATUS_NOT_SUPPORTED, operands.statistics, "normScaleBiasDesc", operands.parameters);
    if (fused) {
        check_norm_activation(&call, activation, true);
        check_norm_channels_last(&call, "xDesc", operands.x);
        check_norm_channels_last(&call, "yDesc", operands.y);
    }
    if (adds)
        check_norm_channels_last(&call, "zDesc", operands.z);
    check_norm_groups(&call, groupCnt);
    if (call.status == 0) {
        BatchNorm kernel = norm_kernel(operands.y, alpha, beta, per_activation, epsilon);
        if (fused)
            norm_set_activation(&kernel, activation);
        norm_launch_inference(&call, dnn, &operands, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnNormalizationForwardTraining(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const void *alpha, const void *beta, const mcdnnTensorDescriptor_t xDesc, const void *xData,
    const mcdnnTensorDescriptor_t normScaleBiasDesc, const void *normScale,
    const void *normBias, double exponentialAverageFactor,
    const mcdnnTensorDescriptor_t normMeanVarDesc, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean,
    void *resultSaveInvVariance, mcdnnActivationDescriptor_t activationDesc,
    const mcdnnTensorDescriptor_t zDesc, const void *zData, const mcdnnTensorDescriptor_t yDesc,
    void *yData, void *workspace, size_t workSpaceSizeInBytes, void *reserveSpace,
    size_t reserveSpaceSizeInBytes, int groupCnt)
{
    (void)workspace; /* the kernel needs none; a small one is no error (mcdnn 6.2) */
    (void)workSpaceSizeInBytes;
    Call call = us_call_begin("mcdnnNormalizationForwardTraining");
    const bool per_activation = mode == MCDNN_NORM_PER_ACTIVATION;
    const bool fused = normOps != MCDNN_NORM_OPS_NORM, adds = normOps == MCDNN_NORM_OPS_NORM_ADD_ACTIVATION;
    const Dnn *dnn = check_handle(&call, handle);
    NormOperands operands = {.x = check_tensor(&call, "xDesc", xDesc), .y = check_tensor(&call, "yDesc", yDesc),
                             .parameters = check_tensor(&call, "normScaleBiasDesc", normScaleBiasDesc),
                             .statistics = check_tensor(&call, "normMeanVarDesc", normMeanVarDesc), .x_data = xData,
                             .y_data = yData, .scale = normScale, .bias = normBias, .running_mean = resultRunningMean,
                             .running_variance = resultRunningVariance, .saved_mean = resultSaveMean,
                             .saved_inverse = resultSaveInvVariance, .reserve = reserveSpace};
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "xData", xData);
    check_given(&call, "yData", yData);
    check_given(&call, "normScale", normScale);
    check_given(&call, "normBias", normBias);
    const ActivationDescriptor *activation = fused ? check_activation(&call, activationDesc) : NULL;
    if (adds) {
        operands.z = check_tensor(&call, "zDesc", zDesc);
        operands.z_data = zData;
        check_given(&call, "zData", zData);
    }
    check_norm_modes(&call, mode, normOps, algo);
    check_norm_rank(&call, "xDesc", operands.x);
    check_norm_rank(&call, "yDesc", operands.y);
    check_norm_shape(&call, "normScaleBiasDesc", operands.parameters, operands.x, per_activation);
    check_norm_pair(&call, "resultSaveMean", resultSaveMean, resultSaveInvVariance);
    check_norm_pair(&call, "resultRunningMean", resultRunningMean, resultRunningVariance);
    check_norm_epsilon(&call, epsilon, 0);
    check_norm_like(&call, "yDesc", operands.y, operands.x);
    if (adds)
        check_norm_like(&call, "zDesc", operands.z, operands.x);
    if (fused && call.status == 0 && activation->mode == MCDNN_ACTIVATION_RELU)
        check_norm_reserve(&call, reserveSpace, reserveSpaceSizeInBytes, operands.x, per_activation);
    check_norm_type(&call, "xDesc", operands.x, true);
    check_norm_parameter_type(&call, "normScaleBiasDesc", operands.parameters, operands.x);
    check_statistics(&call, MCDNN_STATUS_NOT_SUPPORTED, operands.statistics, "normScaleBiasDesc", operands.parameters);
    if (fused) {
        check_norm_activation(&call, activation, true);
        check_norm_channels_last(&call, "xDesc", operands.x);
        check_norm_channels_last(&call, "yDesc", operands.y);
    }
    if (adds)
        check_norm_channels_last(&call, "zDesc", operands.z);
    check_norm_groups(&call, groupCnt);
    if (call.status == 0) {
        BatchNorm kernel = norm_kernel(operands.y, alpha, beta, per_activation, epsilon);
        kernel.factor = exponentialAverageFactor;
        if (fused)
            norm_set_activation(&kernel, activation);
        norm_launch_training(&call, dnn, &operands, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnNormalizationBackward(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const mcdnnTensorDescriptor_t xDesc, const void *xData,
    const mcdnnTensorDescriptor_t yDesc, const void *yData,
    const mcdnnTensorDescriptor_t dyDesc, const void *dyData,
    const mcdnnTensorDescriptor_t dzDesc, void *dzData, const mcdnnTensorDescriptor_t dxDesc,
    void *dxData, const mcdnnTensorDescriptor_t dNormScaleBiasDesc, const void *normScaleData,
    const void *normBiasData, void *dNormScaleData, void *dNormBiasData, double epsilon,
    const mcdnnTensorDescriptor_t normMeanVarDesc, const void *savedMean,
    const void *savedInvVariance, mcdnnActivationDescriptor_t activationDesc, void *workSpace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes,
    int groupCnt)
{
    (void)normBiasData; /* the mask in the reserve space tells where the activation was positive */
    (void)workSpace;
    (void)workSpaceSizeInBytes;
    Call call = us_call_begin("mcdnnNormalizationBackward");
    const bool per_activation = mode == MCDNN_NORM_PER_ACTIVATION;
    const bool fused = normOps != MCDNN_NORM_OPS_NORM, adds = normOps == MCDNN_NORM_OPS_NORM_ADD_ACTIVATION;
    const Dnn *dnn = check_handle(&call, handle);
    NormOperands operands = {.x = check_tensor(&call, "xDesc", xDesc), .dy = check_tensor(&call, "dyDesc", dyDesc),
                             .dx = check_tensor(&call, "dxDesc", dxDesc),
                             .parameters = check_tensor(&call, "dNormScaleBiasDesc", dNormScaleBiasDesc),
                             .statistics = check_tensor(&call, "normMeanVarDesc", normMeanVarDesc), .x_data = xData,
                             .dy_data = dyData, .dx_data = dxData, .scale = normScaleData,
                             .scale_gradient = dNormScaleData, .bias_gradient = dNormBiasData, .mean = savedMean,
                             .variance = savedInvVariance, .reserve = reserveSpace};
    if (yDesc != NULL || fused)
        operands.y = check_tensor(&call, "yDesc", yDesc);
    check_given(&call, "alphaDataDiff", alphaDataDiff);
    check_given(&call, "betaDataDiff", betaDataDiff);
    check_given(&call, "alphaParamDiff", alphaParamDiff);
    check_given(&call, "betaParamDiff", betaParamDiff);
    check_given(&call, "xData", xData);
    if (fused)
        check_given(&call, "yData", yData);
    check_given(&call, "dyData", dyData);
    check_given(&call, "dxData", dxData);
    check_given(&call, "normScaleData", normScaleData);
    check_given(&call, "dNormScaleData", dNormScaleData);
    check_given(&call, "dNormBiasData", dNormBiasData);
    const ActivationDescriptor *activation = fused ? check_activation(&call, activationDesc) : NULL;
    if (adds) {
        operands.z = check_tensor(&call, "dzDesc", dzDesc);
        operands.dz_data = dzData;
        check_given(&call, "dzData", dzData);
    }
    check_norm_modes(&call, mode, normOps, algo);
    check_norm_rank(&call, "xDesc", operands.x);
    if (operands.y != NULL)
        check_norm_rank(&call, "yDesc", operands.y);
    check_norm_rank(&call, "dxDesc", operands.dx);
    check_norm_shape(&call, "dNormScaleBiasDesc", operands.parameters, operands.x, per_activation);
    check_norm_pair(&call, "savedMean", savedMean, savedInvVariance);
    check_norm_epsilon(&call, epsilon, 0);
    if (operands.y != NULL)
        check_norm_like(&call, "yDesc", operands.y, operands.x);
    check_norm_like(&call, "dyDesc", operands.dy, operands.x);
    check_norm_like(&call, "dxDesc", operands.dx, operands.x);
    check_statistics(&call, MCDNN_STATUS_BAD_PARAM, operands.statistics, "dNormScaleBiasDesc", operands.parameters);
    if (adds)
        check_norm_like(&call, "dzDesc", operands.z, operands.x);
    if (fused)
        check_norm_reserve(&call, reserveSpace, reserveSpaceSizeInBytes, operands.x, per_activation);
    check_norm_type(&call, "xDesc", operands.x, true);
    check_norm_parameter_type(&call, "dNormScaleBiasDesc", operands.parameters, operands.x);
    if (fused) {
        check_norm_activation(&call, activation, false);
        check_norm_channels_last(&call, "xDesc", operands.x);
        check_norm_channels_last(&call, "dyDesc", operands.dy);
        check_norm_channels_last(&call, "dxDesc", operands.dx);
    }
    if (adds)
        check_norm_channels_last(&call, "dzDesc", operands.z);
    check_norm_groups(&call, groupCnt);
    if (call.status == 0) {
        BatchNorm kernel = norm_kernel(operands.dx, alphaDataDiff, betaDataDiff, per_activation, epsilon);
        kernel.alpha_param = scaling_factor(alphaParamDiff, operands.dx);
        kernel.beta_param = scaling_factor(betaParamDiff, operands.dx);
        if (fused)
            norm_set_activation(&kernel, activation);
        norm_launch_backward(&call, dnn, &operands, &kernel);
    }
    return us_call_end(&call);
}
