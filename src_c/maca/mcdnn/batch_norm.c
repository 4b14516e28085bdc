/* Batch normalization: derive, inference, training, backward (mcdnn 6.2 to 6.6). */
#include "norm_call.h"

mcdnnStatus_t mcdnnDeriveBNTensorDescriptor(
    mcdnnTensorDescriptor_t derivedBnDesc, const mcdnnTensorDescriptor_t xDesc,
    mcdnnBatchNormMode_t mode)
{
    Call call = us_call_begin("mcdnnDeriveBNTensorDescriptor");
    Tensor *derived = descriptor_of(&call, "derivedBnDesc", derivedBnDesc, HANDLE_TENSOR, "a tensor descriptor");
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    check_range(&call, "mode", mode, MCDNN_BATCHNORM_PER_ACTIVATION, MCDNN_BATCHNORM_SPATIAL_PERSISTENT);
    check_norm_rank(&call, "xDesc", x);
    if (call.status == 0)
        *derived = norm_derived(x, mode == MCDNN_BATCHNORM_PER_ACTIVATION);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnBatchNormalizationForwardInference(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const mcdnnTensorDescriptor_t yDesc,
    void *y, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, const void *estimatedMean, const void *estimatedVariance, double epsilon)
{
    NormCall norm = {.function = "mcdnnBatchNormalizationForwardInference",
                     .mode = mode,
                     .alpha = alpha,
                     .beta = beta,
                     .x = norm_tensor("xDesc", xDesc, "x", x),
                     .y = norm_tensor("yDesc", yDesc, "y", y),
                     .parameters = norm_shape("bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc),
                     .scale = {"bnScale", bnScale},
                     .bias = {"bnBias", bnBias},
                     .mean = {"estimatedMean", estimatedMean},
                     .variance = {"estimatedVariance", estimatedVariance},
                     .epsilon = epsilon,
                     .takes_bfloat16 = true};
    norm_open_forward(&norm, handle);
    return norm_infer(&norm);
}

mcdnnStatus_t mcdnnBatchNormalizationForwardTraining(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const mcdnnTensorDescriptor_t yDesc,
    void *y, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean,
    void *resultSaveInvVariance)
{
    NormCall norm = {.function = "mcdnnBatchNormalizationForwardTraining",
                     .mode = mode,
                     .alpha = alpha,
                     .beta = beta,
                     .x = norm_tensor("xDesc", xDesc, "x", x),
                     .y = norm_tensor("yDesc", yDesc, "y", y),
                     .parameters = norm_shape("bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc),
                     .scale = {"bnScale", bnScale},
                     .bias = {"bnBias", bnBias},
                     .factor = exponentialAverageFactor,
                     .running_mean = {"resultRunningMean", resultRunningMean},
                     .running_variance = {"resultRunningVariance", resultRunningVariance},
                     .epsilon = epsilon,
                     .saved_mean = {"resultSaveMean", resultSaveMean},
                     .saved_inverse = {"resultSaveInvVariance", resultSaveInvVariance},
                     .takes_bfloat16 = true};
    norm_open_forward(&norm, handle);
    return norm_train(&norm);
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
    NormCall norm = {.function = "mcdnnBatchNormalizationForwardTrainingEx",
                     .mode = mode,
                     .ops = bnOps,
                     .alpha = alpha,
                     .beta = beta,
                     .x = norm_tensor("xDesc", xDesc, "xData", xData),
                     .z = norm_tensor("zDesc", zDesc, "zData", zData),
                     .y = norm_tensor("yDesc", yDesc, "yData", yData),
                     .parameters = norm_shape("bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc),
                     .scale = {"bnScaleData", bnScaleData},
                     .bias = {"bnBiasData", bnBiasData},
                     .factor = exponentialAverageFactor,
                     .running_mean = {"resultRunningMeanData", resultRunningMeanData},
                     .running_variance = {"resultRunningVarianceData", resultRunningVarianceData},
                     .epsilon = epsilon,
                     .saved_mean = {"saveMean", saveMean},
                     .saved_inverse = {"saveInvVariance", saveInvVariance},
                     .activation_descriptor = activationDesc,
                     .reserve = reserveSpace,
                     .reserve_bytes = reserveSpaceSizeInBytes,
                     .adds_half_only = true};
    norm_open_forward(&norm, handle);
    return norm_train(&norm);
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
    NormCall norm = {.function = "mcdnnBatchNormalizationBackward",
                     .mode = mode,
                     .alpha = alphaDataDiff,
                     .beta = betaDataDiff,
                     .alpha_param = alphaParamDiff,
                     .beta_param = betaParamDiff,
                     .x = norm_tensor("xDesc", xDesc, "x", x),
                     .dy = norm_tensor("dyDesc", dyDesc, "dy", dy),
                     .dx = norm_tensor("dxDesc", dxDesc, "dx", dx),
                     .parameters = norm_shape("bnScaleBiasDiffDesc", bnScaleBiasDiffDesc),
                     .scale = {"bnScale", bnScale},
                     .scale_gradient = {"resultBnScaleDiff", resultBnScaleDiff},
                     .bias_gradient = {"resultBnBiasDiff", resultBnBiasDiff},
                     .epsilon = epsilon,
                     .mean = {"savedMean", savedMean},
                     .variance = {"savedInvVariance", savedInvVariance}};
    norm_open_backward(&norm, handle);
    return norm_differentiate(&norm);
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
    NormCall norm = {.function = "mcdnnBatchNormalizationBackwardEx",
                     .mode = mode,
                     .ops = bnOps,
                     .alpha = alphaDataDiff,
                     .beta = betaDataDiff,
                     .alpha_param = alphaParamDiff,
                     .beta_param = betaParamDiff,
                     .x = norm_tensor("xDesc", xDesc, "xData", xData),
                     .y = norm_tensor("yDesc", yDesc, "yData", yData),
                     .dy = norm_tensor("dyDesc", dyDesc, "dyData", dyData),
                     .z = norm_tensor("dzDesc", dzDesc, "dzData", dzData),
                     .dx = norm_tensor("dxDesc", dxDesc, "dxData", dxData),
                     .parameters = norm_shape("dBnScaleBiasDesc", dBnScaleBiasDesc),
                     .scale = {"bnScaleData", bnScaleData},
                     .scale_gradient = {"dBnScaleData", dBnScaleData},
                     .bias_gradient = {"dBnBiasData", dBnBiasData},
                     .epsilon = epsilon,
                     .mean = {"savedMean", savedMean},
                     .variance = {"savedInvVariance", savedInvVariance},
                     .activation_descriptor = activationDesc,
                     .reserve = reserveSpace,
                     .reserve_bytes = reserveSpaceSizeInBytes};
    norm_open_backward(&norm, handle);
    return norm_differentiate(&norm);
}
