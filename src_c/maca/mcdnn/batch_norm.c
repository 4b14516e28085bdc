/* Batch normalization: derive, inference, training, backward (mcdnn 6.2 to 6.6). */
#include "norm_call.h"

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
    NormCall norm = {.function = "mcdnnBatchNormalizationForwardInference",
                     .per_activation = is_per_activation(mode),
                     .alpha = alpha,
                     .beta = beta,
                     .x = {"xDesc", xDesc, "x", x, NULL},
                     .y = {"yDesc", yDesc, "y", y, NULL},
                     .parameters = {"bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc, NULL, NULL, NULL},
                     .scale = {"bnScale", bnScale},
                     .bias = {"bnBias", bnBias},
                     .mean = {"estimatedMean", estimatedMean},
                     .variance = {"estimatedVariance", estimatedVariance},
                     .epsilon = epsilon,
                     .least_epsilon = MCDNN_BN_MIN_EPSILON,
                     .takes_bfloat16 = true,
                     .groups = 1};
    norm_open_forward(&norm, handle);
    check_mode(&norm.call, mode);
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
                     .per_activation = is_per_activation(mode),
                     .alpha = alpha,
                     .beta = beta,
                     .x = {"xDesc", xDesc, "x", x, NULL},
                     .y = {"yDesc", yDesc, "y", y, NULL},
                     .parameters = {"bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc, NULL, NULL, NULL},
                     .scale = {"bnScale", bnScale},
                     .bias = {"bnBias", bnBias},
                     .factor = exponentialAverageFactor,
                     .running_mean = {"resultRunningMean", resultRunningMean},
                     .running_variance = {"resultRunningVariance", resultRunningVariance},
                     .epsilon = epsilon,
                     .least_epsilon = MCDNN_BN_MIN_EPSILON,
                     .saved_mean = {"resultSaveMean", resultSaveMean},
                     .saved_inverse = {"resultSaveInvVariance", resultSaveInvVariance},
                     .takes_bfloat16 = true,
                     .groups = 1};
    norm_open_forward(&norm, handle);
    check_mode(&norm.call, mode);
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
                     .per_activation = is_per_activation(mode),
                     .fused = bnOps != MCDNN_BATCHNORM_OPS_BN,
                     .adds = bnOps == MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
                     .alpha = alpha,
                     .beta = beta,
                     .x = {"xDesc", xDesc, "xData", xData, NULL},
                     .z = {"zDesc", zDesc, "zData", zData, NULL},
                     .y = {"yDesc", yDesc, "yData", yData, NULL},
                     .parameters = {"bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc, NULL, NULL, NULL},
                     .scale = {"bnScaleData", bnScaleData},
                     .bias = {"bnBiasData", bnBiasData},
                     .factor = exponentialAverageFactor,
                     .running_mean = {"resultRunningMeanData", resultRunningMeanData},
                     .running_variance = {"resultRunningVarianceData", resultRunningVarianceData},
                     .epsilon = epsilon,
                     .least_epsilon = MCDNN_BN_MIN_EPSILON,
                     .saved_mean = {"saveMean", saveMean},
                     .saved_inverse = {"saveInvVariance", saveInvVariance},
                     .activation_descriptor = activationDesc,
                     .reserve = reserveSpace,
                     .reserve_bytes = reserveSpaceSizeInBytes,
                     .adds_half_only = true,
                     .groups = 1};
    norm_open_forward(&norm, handle);
    check_ops(&norm.call, mode, bnOps);
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
                     .per_activation = is_per_activation(mode),
                     .alpha = alphaDataDiff,
                     .beta = betaDataDiff,
                     .alpha_param = alphaParamDiff,
                     .beta_param = betaParamDiff,
                     .x = {"xDesc", xDesc, "x", x, NULL},
                     .dy = {"dyDesc", dyDesc, "dy", dy, NULL},
                     .dx = {"dxDesc", dxDesc, "dx", dx, NULL},
                     .parameters = {"bnScaleBiasDiffDesc", bnScaleBiasDiffDesc, NULL, NULL, NULL},
                     .scale = {"bnScale", bnScale},
                     .scale_gradient = {"resultBnScaleDiff", resultBnScaleDiff},
                     .bias_gradient = {"resultBnBiasDiff", resultBnBiasDiff},
                     .epsilon = epsilon,
                     .least_epsilon = MCDNN_BN_MIN_EPSILON,
                     .mean = {"savedMean", savedMean},
                     .variance = {"savedInvVariance", savedInvVariance},
                     .groups = 1};
    norm_open_backward(&norm, handle);
    check_mode(&norm.call, mode);
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
                     .per_activation = is_per_activation(mode),
                     .fused = bnOps != MCDNN_BATCHNORM_OPS_BN,
                     .adds = bnOps == MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
                     .alpha = alphaDataDiff,
                     .beta = betaDataDiff,
                     .alpha_param = alphaParamDiff,
                     .beta_param = betaParamDiff,
                     .x = {"xDesc", xDesc, "xData", xData, NULL},
                     .y = {"yDesc", yDesc, "yData", yData, NULL},
                     .dy = {"dyDesc", dyDesc, "dyData", dyData, NULL},
                     .z = {"dzDesc", dzDesc, "dzData", dzData, NULL},
                     .dx = {"dxDesc", dxDesc, "dxData", dxData, NULL},
                     .parameters = {"dBnScaleBiasDesc", dBnScaleBiasDesc, NULL, NULL, NULL},
                     .scale = {"bnScaleData", bnScaleData},
                     .scale_gradient = {"dBnScaleData", dBnScaleData},
                     .bias_gradient = {"dBnBiasData", dBnBiasData},
                     .epsilon = epsilon,
                     .least_epsilon = MCDNN_BN_MIN_EPSILON,
                     .mean = {"savedMean", savedMean},
                     .variance = {"savedInvVariance", savedInvVariance},
                     .activation_descriptor = activationDesc,
                     .reserve = reserveSpace,
                     .reserve_bytes = reserveSpaceSizeInBytes,
                     .groups = 1};
    norm_open_backward(&norm, handle);
    check_ops(&norm.call, mode, bnOps);
    return norm_differentiate(&norm);
}
