/* Batch normalization: derive, inference, training, backward (mcdnn 6.2 to 6.6). */
#include "norm.h"

static bool is_per_activation(mcdnnBatchNormMode_t mode)
{
    return mode == MCDNN_BATCHNORM_PER_ACTIVATION;
}

static void check_mode(Call *call, mcdnnBatchNormMode_t mode)
{
    check_range(call, "mode", mode, MCDNN_BATCHNORM_PER_ACTIVATION, MCDNN_BATCHNORM_SPATIAL_PERSISTENT);
}

static void check_ops(Call *call, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps)
{
    check_mode(call, mode);
    check_range(call, "bnOps", bnOps, MCDNN_BATCHNORM_OPS_BN, MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION);
}

mcdnnStatus_t mcdnnDeriveBNTensorDescriptor(
    mcdnnTensorDescriptor_t derivedBnDesc, const mcdnnTensorDescriptor_t xDesc,
    mcdnnBatchNormMode_t mode)
{
    Call call = us_call_begin("mcdnnDeriveBNTensorDescriptor");
    Tensor *derived = descriptor_of(&call, "derivedBnDesc", derivedBnDesc, HANDLE_TENSOR, "a tensor descriptor");
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    check_mode(&call, mode);
    check_norm_rank(&call, "xDesc", x);
    if (call.status == 0)
        *derived = norm_derived(x, is_per_activation(mode));
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnBatchNormalizationForwardInference(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const mcdnnTensorDescriptor_t yDesc,
    void *y, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, const void *estimatedMean, const void *estimatedVariance, double epsilon)
{
    Call call = us_call_begin("mcdnnBatchNormalizationForwardInference");
    const bool per_activation = is_per_activation(mode);
    const Dnn *dnn = check_handle(&call, handle);
    NormOperands operands = {.x = check_tensor(&call, "xDesc", xDesc), .y = check_tensor(&call, "yDesc", yDesc),
                             .x_data = x, .y_data = y, .scale = bnScale, .bias = bnBias, .mean = estimatedMean,
                             .variance = estimatedVariance};
    operands.parameters = operands.statistics = check_tensor(&call, "bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "x", x);
    check_given(&call, "y", y);
    check_given(&call, "bnScale", bnScale);
    check_given(&call, "bnBias", bnBias);
    check_given(&call, "estimatedMean", estimatedMean);
    check_given(&call, "estimatedVariance", estimatedVariance);
    check_mode(&call, mode);
    check_norm_rank(&call, "xDesc", operands.x);
    check_norm_rank(&call, "yDesc", operands.y);
    check_norm_shape(&call, "bnScaleBiasMeanVarDesc", operands.parameters, operands.x, per_activation);
    check_norm_epsilon(&call, epsilon, MCDNN_BN_MIN_EPSILON);
    check_norm_like(&call, "yDesc", operands.y, operands.x);
    check_norm_type(&call, "xDesc", operands.x, true);
    check_norm_parameter_type(&call, "bnScaleBiasMeanVarDesc", operands.parameters, operands.x);
    if (call.status == 0) {
        BatchNorm kernel = norm_kernel(operands.y, alpha, beta, per_activation, epsilon);
        norm_launch_inference(&call, dnn, &operands, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnBatchNormalizationForwardTraining(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const mcdnnTensorDescriptor_t yDesc,
    void *y, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean,
    void *resultSaveInvVariance)
{
    Call call = us_call_begin("mcdnnBatchNormalizationForwardTraining");
    const bool per_activation = is_per_activation(mode);
    const Dnn *dnn = check_handle(&call, handle);
    NormOperands operands = {.x = check_tensor(&call, "xDesc", xDesc), .y = check_tensor(&call, "yDesc", yDesc),
                             .x_data = x, .y_data = y, .scale = bnScale, .bias = bnBias,
                             .running_mean = resultRunningMean, .running_variance = resultRunningVariance,
                             .saved_mean = resultSaveMean, .saved_inverse = resultSaveInvVariance};
    operands.parameters = operands.statistics = check_tensor(&call, "bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "x", x);
    check_given(&call, "y", y);
    check_given(&call, "bnScale", bnScale);
    check_given(&call, "bnBias", bnBias);
    check_mode(&call, mode);
    check_norm_rank(&call, "xDesc", operands.x);
    check_norm_rank(&call, "yDesc", operands.y);
    check_norm_shape(&call, "bnScaleBiasMeanVarDesc", operands.parameters, operands.x, per_activation);
    check_norm_pair(&call, "resultSaveMean", resultSaveMean, resultSaveInvVariance);
    check_norm_pair(&call, "resultRunningMean", resultRunningMean, resultRunningVariance);
    check_norm_epsilon(&call, epsilon, MCDNN_BN_MIN_EPSILON);
    check_norm_like(&call, "yDesc", operands.y, operands.x);
    check_norm_type(&call, "xDesc", operands.x, true);
    check_norm_parameter_type(&call, "bnScaleBiasMeanVarDesc", operands.parameters, operands.x);
    if (call.status == 0) {
        BatchNorm kernel = norm_kernel(operands.y, alpha, beta, per_activation, epsilon);
        kernel.factor = exponentialAverageFactor;
        norm_launch_training(&call, dnn, &operands, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnBatchNormalizationForwardTrainingEx(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const void *alpha, const void *beta, const mcdnnTensorDescriptor_t xDesc, const void *xData,
    const mcdnnTensorDescriptor_t zDesc, const void *zData, const mcdnnTensorDescriptor_t yDesc,
    void *yData, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScaleData,
    const void *bnBiasData, double exponentialAverageFactor, void *resultRunningMeanData,
    void *resultRunningVarianceData, double epsilon, void *saveMean, void *saveInvVariance,
    const mcdnnActivationDescriptor_t activationDesc, void *workspace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    (void)workspace; /* the kernel needs none; a small one is no error (mcdnn 6.2) */
    (void)workSpaceSizeInBytes;
    Call call = us_call_begin("mcdnnBatchNormalizationForwardTrainingEx");
    const bool per_activation = is_per_activation(mode);
    const bool fused = bnOps != MCDNN_BATCHNORM_OPS_BN, adds = bnOps == MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
    const Dnn *dnn = check_handle(&call, handle);
    NormOperands operands = {.x = check_tensor(&call, "xDesc", xDesc), .y = check_tensor(&call, "yDesc", yDesc),
                             .x_data = xData, .y_data = yData, .scale = bnScaleData, .bias = bnBiasData,
                             .running_mean = resultRunningMeanData, .running_variance = resultRunningVarianceData,
                             .saved_mean = saveMean, .saved_inverse = saveInvVariance, .reserve = reserveSpace};
    operands.parameters = operands.statistics = check_tensor(&call, "bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "xData", xData);
    check_given(&call, "yData", yData);
    check_given(&call, "bnScaleData", bnScaleData);
    check_given(&call, "bnBiasData", bnBiasData);
    const ActivationDescriptor *activation = fused ? check_activation(&call, activationDesc) : NULL;
    if (adds) {
        operands.z = check_tensor(&call, "zDesc", zDesc);
        operands.z_data = zData;
        check_given(&call, "zData", zData);
    }
    check_ops(&call, mode, bnOps);
    check_norm_rank(&call, "xDesc", operands.x);
    check_norm_rank(&call, "yDesc", operands.y);
    check_norm_shape(&call, "bnScaleBiasMeanVarDesc", operands.parameters, operands.x, per_activation);
    check_norm_pair(&call, "saveMean", saveMean, saveInvVariance);
    check_norm_pair(&call, "resultRunningMeanData", resultRunningMeanData, resultRunningVarianceData);
    check_norm_epsilon(&call, epsilon, MCDNN_BN_MIN_EPSILON);
    check_norm_like(&call, "yDesc", operands.y, operands.x);
    if (adds)
        check_norm_like(&call, "zDesc", operands.z, operands.x);
    if (fused && call.status == 0 && activation->mode == MCDNN_ACTIVATION_RELU)
        check_norm_reserve(&call, reserveSpace, reserveSpaceSizeInBytes, operands.x, per_activation);
    check_norm_type(&call, "xDesc", operands.x, false);
    check_norm_parameter_type(&call, "bnScaleBiasMeanVarDesc", operands.parameters, operands.x);
    if (fused) {
        check_norm_activation(&call, activation, true);
        check_norm_channels_last(&call, "xDesc", operands.x);
        check_norm_channels_last(&call, "yDesc", operands.y);
    }
    if (adds) {
        check_norm_channels_last(&call, "zDesc", operands.z);
        check_norm_sum_type(&call, "zDesc", operands.z);
    }
    if (call.status == 0) {
        BatchNorm kernel = norm_kernel(operands.y, alpha, beta, per_activation, epsilon);
        kernel.factor = exponentialAverageFactor;
        if (fused)
            norm_set_activation(&kernel, activation);
        norm_launch_training(&call, dnn, &operands, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnBatchNormalizationBackward(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, const void *alphaDataDiff,
    const void *betaDataDiff, const void *alphaParamDiff, const void *betaParamDiff,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const mcdnnTensorDescriptor_t dyDesc,
    const void *dy, const mcdnnTensorDescriptor_t dxDesc, void *dx,
    const mcdnnTensorDescriptor_t bnScaleBiasDiffDesc, const void *bnScale,
    void *resultBnScaleDiff, void *resultBnBiasDiff, double epsilon, const void *savedMean,
    const void *savedInvVariance)
{
    Call call = us_call_begin("mcdnnBatchNormalizationBackward");
    const bool per_activation = is_per_activation(mode);
    const Dnn *dnn = check_handle(&call, handle);
    NormOperands operands = {.x = check_tensor(&call, "xDesc", xDesc), .dy = check_tensor(&call, "dyDesc", dyDesc),
                             .dx = check_tensor(&call, "dxDesc", dxDesc), .x_data = x, .dy_data = dy, .dx_data = dx,
                             .scale = bnScale, .scale_gradient = resultBnScaleDiff, .bias_gradient = resultBnBiasDiff,
                             .mean = savedMean, .variance = savedInvVariance};
    operands.parameters = operands.statistics = check_tensor(&call, "bnScaleBiasDiffDesc", bnScaleBiasDiffDesc);
    check_given(&call, "alphaDataDiff", alphaDataDiff);
    check_given(&call, "betaDataDiff", betaDataDiff);
    check_given(&call, "alphaParamDiff", alphaParamDiff);
    check_given(&call, "betaParamDiff", betaParamDiff);
    check_given(&call, "x", x);
    check_given(&call, "dy", dy);
    check_given(&call, "dx", dx);
    check_given(&call, "bnScale", bnScale);
    check_given(&call, "resultBnScaleDiff", resultBnScaleDiff);
    check_given(&call, "resultBnBiasDiff", resultBnBiasDiff);
    check_mode(&call, mode);
    check_norm_rank(&call, "xDesc", operands.x);
    check_norm_rank(&call, "dxDesc", operands.dx);
    check_norm_shape(&call, "bnScaleBiasDiffDesc", operands.parameters, operands.x, per_activation);
    check_norm_pair(&call, "savedMean", savedMean, savedInvVariance);
    check_norm_epsilon(&call, epsilon, MCDNN_BN_MIN_EPSILON);
    check_norm_like(&call, "dyDesc", operands.dy, operands.x);
    check_norm_like(&call, "dxDesc", operands.dx, operands.x);
    check_norm_type(&call, "xDesc", operands.x, false);
    check_norm_parameter_type(&call, "bnScaleBiasDiffDesc", operands.parameters, operands.x);
    if (call.status == 0) {
        BatchNorm kernel = norm_kernel(operands.dx, alphaDataDiff, betaDataDiff, per_activation, epsilon);
        kernel.alpha_param = scaling_factor(alphaParamDiff, operands.dx);
        kernel.beta_param = scaling_factor(betaParamDiff, operands.dx);
        norm_launch_backward(&call, dnn, &operands, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnBatchNormalizationBackwardEx(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const mcdnnTensorDescriptor_t xDesc, const void *xData,
    const mcdnnTensorDescriptor_t yDesc, const void *yData,
    const mcdnnTensorDescriptor_t dyDesc, const void *dyData,
    const mcdnnTensorDescriptor_t dzDesc, void *dzData, const mcdnnTensorDescriptor_t dxDesc,
    void *dxData, const mcdnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScaleData,
    const void *bnBiasData, void *dBnScaleData, void *dBnBiasData, double epsilon,
    const void *savedMean, const void *savedInvVariance,
    const mcdnnActivationDescriptor_t activationDesc, void *workspace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    (void)bnBiasData; /* the mask in the reserve space tells where the activation was positive */
    (void)workspace;
    (void)workSpaceSizeInBytes;
    Call call = us_call_begin("mcdnnBatchNormalizationBackwardEx");
    const bool per_activation = is_per_activation(mode);
    const bool fused = bnOps != MCDNN_BATCHNORM_OPS_BN, adds = bnOps == MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
    const Dnn *dnn = check_handle(&call, handle);
    NormOperands operands = {.x = check_tensor(&call, "xDesc", xDesc), .dy = check_tensor(&call, "dyDesc", dyDesc),
                             .dx = check_tensor(&call, "dxDesc", dxDesc), .x_data = xData, .dy_data = dyData,
                             .dx_data = dxData, .scale = bnScaleData, .scale_gradient = dBnScaleData,
                             .bias_gradient = dBnBiasData, .mean = savedMean, .variance = savedInvVariance,
                             .reserve = reserveSpace};
    operands.parameters = operands.statistics = check_tensor(&call, "dBnScaleBiasDesc", dBnScaleBiasDesc);
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
    check_given(&call, "bnScaleData", bnScaleData);
    check_given(&call, "dBnScaleData", dBnScaleData);
    check_given(&call, "dBnBiasData", dBnBiasData);
    const ActivationDescriptor *activation = fused ? check_activation(&call, activationDesc) : NULL;
    if (adds) {
        operands.z = check_tensor(&call, "dzDesc", dzDesc);
        operands.dz_data = dzData;
        check_given(&call, "dzData", dzData);
    }
    check_ops(&call, mode, bnOps);
    check_norm_rank(&call, "xDesc", operands.x);
    if (operands.y != NULL)
        check_norm_rank(&call, "yDesc", operands.y);
    check_norm_rank(&call, "dxDesc", operands.dx);
    check_norm_shape(&call, "dBnScaleBiasDesc", operands.parameters, operands.x, per_activation);
    check_norm_pair(&call, "savedMean", savedMean, savedInvVariance);
    check_norm_epsilon(&call, epsilon, MCDNN_BN_MIN_EPSILON);
    if (operands.y != NULL)
        check_norm_like(&call, "yDesc", operands.y, operands.x);
    check_norm_like(&call, "dyDesc", operands.dy, operands.x);
    check_norm_like(&call, "dxDesc", operands.dx, operands.x);
    if (adds)
        check_norm_like(&call, "dzDesc", operands.z, operands.x);
    if (fused)
        check_norm_reserve(&call, reserveSpace, reserveSpaceSizeInBytes, operands.x, per_activation);
    check_norm_type(&call, "xDesc", operands.x, false);
    check_norm_parameter_type(&call, "dBnScaleBiasDesc", operands.parameters, operands.x);
    if (fused) {
        check_norm_activation(&call, activation, false);
        check_norm_channels_last(&call, "xDesc", operands.x);
        check_norm_channels_last(&call, "dyDesc", operands.dy);
        check_norm_channels_last(&call, "dxDesc", operands.dx);
    }
    if (adds) {
        check_norm_channels_last(&call, "dzDesc", operands.z);
        check_norm_sum_type(&call, "dzDesc", operands.z);
    }
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
