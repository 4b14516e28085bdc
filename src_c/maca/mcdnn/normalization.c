/* The Normalization functions: batch normalization under a newer interface (mcdnn 6.2, 6.11, 6.12, 7.2, 7.3). */
#include "norm_call.h"

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
    NormCall norm = {.function = "mcdnnNormalizationForwardInference",
                     .interface = NORMALIZATION,
                     .mode = mode,
                     .ops = normOps,
                     .algo = algo,
                     .alpha = alpha,
                     .beta = beta,
                     .x = norm_tensor("xDesc", xDesc, "x", x),
                     .parameters = norm_shape("normScaleBiasDesc", normScaleBiasDesc),
                     .scale = {"normScale", normScale},
                     .bias = {"normBias", normBias},
                     .statistics = norm_shape("normMeanVarDesc", normMeanVarDesc),
                     .mean = {"estimatedMean", estimatedMean},
                     .variance = {"estimatedVariance", estimatedVariance},
                     .z = norm_tensor("zDesc", zDesc, "z", z),
                     .activation_descriptor = activationDesc,
                     .y = norm_tensor("yDesc", yDesc, "y", y),
                     .epsilon = epsilon,
                     .groups = groupCnt};
    norm_open_forward(&norm, handle);
    return norm_infer(&norm);
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
    NormCall norm = {.function = "mcdnnNormalizationForwardTraining",
                     .interface = NORMALIZATION,
                     .mode = mode,
                     .ops = normOps,
                     .algo = algo,
                     .alpha = alpha,
                     .beta = beta,
                     .x = norm_tensor("xDesc", xDesc, "xData", xData),
                     .parameters = norm_shape("normScaleBiasDesc", normScaleBiasDesc),
                     .scale = {"normScale", normScale},
                     .bias = {"normBias", normBias},
                     .factor = exponentialAverageFactor,
                     .statistics = norm_shape("normMeanVarDesc", normMeanVarDesc),
                     .running_mean = {"resultRunningMean", resultRunningMean},
                     .running_variance = {"resultRunningVariance", resultRunningVariance},
                     .epsilon = epsilon,
                     .saved_mean = {"resultSaveMean", resultSaveMean},
                     .saved_inverse = {"resultSaveInvVariance", resultSaveInvVariance},
                     .activation_descriptor = activationDesc,
                     .z = norm_tensor("zDesc", zDesc, "zData", zData),
                     .y = norm_tensor("yDesc", yDesc, "yData", yData),
                     .reserve = reserveSpace,
                     .reserve_bytes = reserveSpaceSizeInBytes,
                     .groups = groupCnt};
    norm_open_forward(&norm, handle);
    return norm_train(&norm);
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
    NormCall norm = {.function = "mcdnnNormalizationBackward",
                     .interface = NORMALIZATION,
                     .mode = mode,
                     .ops = normOps,
                     .algo = algo,
                     .alpha = alphaDataDiff,
                     .beta = betaDataDiff,
                     .alpha_param = alphaParamDiff,
                     .beta_param = betaParamDiff,
                     .x = norm_tensor("xDesc", xDesc, "xData", xData),
                     .y = norm_tensor("yDesc", yDesc, "yData", yData),
                     .dy = norm_tensor("dyDesc", dyDesc, "dyData", dyData),
                     .z = norm_tensor("dzDesc", dzDesc, "dzData", dzData),
                     .dx = norm_tensor("dxDesc", dxDesc, "dxData", dxData),
                     .parameters = norm_shape("dNormScaleBiasDesc", dNormScaleBiasDesc),
                     .scale = {"normScaleData", normScaleData},
                     .scale_gradient = {"dNormScaleData", dNormScaleData},
                     .bias_gradient = {"dNormBiasData", dNormBiasData},
                     .epsilon = epsilon,
                     .statistics = norm_shape("normMeanVarDesc", normMeanVarDesc),
                     .mean = {"savedMean", savedMean},
                     .variance = {"savedInvVariance", savedInvVariance},
                     .activation_descriptor = activationDesc,
                     .reserve = reserveSpace,
                     .reserve_bytes = reserveSpaceSizeInBytes,
                     .groups = groupCnt};
    norm_open_backward(&norm, handle);
    return norm_differentiate(&norm);
}
