/* Sizes of the spaces that the fused batch normalization calls take (mcdnn 6.7). The kernels need no workspace. */
#include "norm.h"

static void check_modes(Call *call, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps)
{
    check_range(call, "mode", mode, MCDNN_BATCHNORM_PER_ACTIVATION, MCDNN_BATCHNORM_SPATIAL_PERSISTENT);
    check_range(call, "bnOps", bnOps, MCDNN_BATCHNORM_OPS_BN, MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION);
}

mcdnnStatus_t mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t zDesc,
    const mcdnnTensorDescriptor_t yDesc, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    const mcdnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    Call call = us_call_begin("mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize");
    check_handle(&call, handle);
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    const Tensor *y = check_tensor(&call, "yDesc", yDesc);
    const Tensor *parameters = check_tensor(&call, "bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc);
    if (bnOps != MCDNN_BATCHNORM_OPS_BN)
        check_activation(&call, activationDesc);
    if (bnOps == MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
        check_tensor(&call, "zDesc", zDesc);
    check_given(&call, "sizeInBytes", sizeInBytes);
    check_modes(&call, mode, bnOps);
    check_norm_rank(&call, "xDesc", x);
    check_norm_rank(&call, "yDesc", y);
    check_norm_shape(&call, "bnScaleBiasMeanVarDesc", parameters, x, mode == MCDNN_BATCHNORM_PER_ACTIVATION);
    check_norm_like(&call, "yDesc", y, x);
    if (call.status == 0)
        *sizeInBytes = 0;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetBatchNormalizationBackwardExWorkspaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t yDesc,
    const mcdnnTensorDescriptor_t dyDesc, const mcdnnTensorDescriptor_t dzDesc,
    const mcdnnTensorDescriptor_t dxDesc, const mcdnnTensorDescriptor_t dBnScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    Call call = us_call_begin("mcdnnGetBatchNormalizationBackwardExWorkspaceSize");
    const bool fused = bnOps != MCDNN_BATCHNORM_OPS_BN;
    check_handle(&call, handle);
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    const Tensor *y = yDesc != NULL || fused ? check_tensor(&call, "yDesc", yDesc) : NULL;
    const Tensor *dy = check_tensor(&call, "dyDesc", dyDesc);
    const Tensor *dx = check_tensor(&call, "dxDesc", dxDesc);
    const Tensor *parameters = check_tensor(&call, "dBnScaleBiasDesc", dBnScaleBiasDesc);
    if (fused)
        check_activation(&call, activationDesc);
    if (bnOps == MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
        check_tensor(&call, "dzDesc", dzDesc);
    check_given(&call, "sizeInBytes", sizeInBytes);
    check_modes(&call, mode, bnOps);
    check_norm_rank(&call, "xDesc", x);
    if (y != NULL)
        check_norm_rank(&call, "yDesc", y);
    check_norm_rank(&call, "dxDesc", dx);
    check_norm_shape(&call, "dBnScaleBiasDesc", parameters, x, mode == MCDNN_BATCHNORM_PER_ACTIVATION);
    if (y != NULL)
        check_norm_like(&call, "yDesc", y, x);
    check_norm_like(&call, "dyDesc", dy, x);
    check_norm_like(&call, "dxDesc", dx, x);
    if (call.status == 0)
        *sizeInBytes = 0;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetBatchNormalizationTrainingExReserveSpaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes)
{
    Call call = us_call_begin("mcdnnGetBatchNormalizationTrainingExReserveSpaceSize");
    const bool fused = bnOps != MCDNN_BATCHNORM_OPS_BN;
    check_handle(&call, handle);
    if (fused)
        check_activation(&call, activationDesc);
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    check_given(&call, "sizeInBytes", sizeInBytes);
    check_modes(&call, mode, bnOps);
    check_norm_rank(&call, "xDesc", x);
    if (call.status == 0)
        *sizeInBytes = fused ? norm_reserve_bytes(x, mode == MCDNN_BATCHNORM_PER_ACTIVATION) : 0;
    return us_call_end(&call);
}
