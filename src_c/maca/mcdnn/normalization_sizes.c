/* Sizes of the spaces that the Normalization calls take (mcdnn 6.13). The kernels need no workspace. */
#include "norm.h"

mcdnnStatus_t mcdnnGetNormalizationForwardTrainingWorkspaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t zDesc,
    const mcdnnTensorDescriptor_t yDesc, const mcdnnTensorDescriptor_t normScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc,
    const mcdnnTensorDescriptor_t normMeanVarDesc, size_t *sizeInBytes, int groupCnt)
{
    Call call = us_call_begin("mcdnnGetNormalizationForwardTrainingWorkspaceSize");
    check_handle(&call, handle);
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    const Tensor *y = check_tensor(&call, "yDesc", yDesc);
    const Tensor *parameters = check_tensor(&call, "normScaleBiasDesc", normScaleBiasDesc);
    check_tensor(&call, "normMeanVarDesc", normMeanVarDesc);
    if (normOps != MCDNN_NORM_OPS_NORM)
        check_activation(&call, activationDesc);
    const Tensor *z = zDesc != NULL || normOps == MCDNN_NORM_OPS_NORM_ADD_ACTIVATION
                          ? check_tensor(&call, "zDesc", zDesc) : NULL;
    check_given(&call, "sizeInBytes", sizeInBytes);
    check_norm_modes(&call, mode, normOps, algo);
    check_norm_rank(&call, "xDesc", x);
    check_norm_rank(&call, "yDesc", y);
    if (z != NULL)
        check_norm_rank(&call, "zDesc", z);
    check_norm_shape(&call, "normScaleBiasDesc", parameters, x, mode == MCDNN_NORM_PER_ACTIVATION);
    check_norm_like(&call, "yDesc", y, x);
    check_norm_groups(&call, groupCnt);
    if (call.status == 0)
        *sizeInBytes = 0;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetNormalizationBackwardWorkspaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t yDesc,
    const mcdnnTensorDescriptor_t dyDesc, const mcdnnTensorDescriptor_t dzDesc,
    const mcdnnTensorDescriptor_t dxDesc, const mcdnnTensorDescriptor_t dNormScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc,
    const mcdnnTensorDescriptor_t normMeanVarDesc, size_t *sizeInBytes, int groupCnt)
{
    Call call = us_call_begin("mcdnnGetNormalizationBackwardWorkspaceSize");
    const bool fused = normOps != MCDNN_NORM_OPS_NORM;
    check_handle(&call, handle);
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    const Tensor *y = yDesc != NULL || fused ? check_tensor(&call, "yDesc", yDesc) : NULL;
    const Tensor *dy = check_tensor(&call, "dyDesc", dyDesc);
    const Tensor *dx = check_tensor(&call, "dxDesc", dxDesc);
    const Tensor *parameters = check_tensor(&call, "dNormScaleBiasDesc", dNormScaleBiasDesc);
    check_tensor(&call, "normMeanVarDesc", normMeanVarDesc);
    if (fused)
        check_activation(&call, activationDesc);
    if (normOps == MCDNN_NORM_OPS_NORM_ADD_ACTIVATION)
        check_tensor(&call, "dzDesc", dzDesc);
    check_given(&call, "sizeInBytes", sizeInBytes);
    check_norm_modes(&call, mode, normOps, algo);
    check_norm_rank(&call, "xDesc", x);
    if (y != NULL)
        check_norm_rank(&call, "yDesc", y);
    check_norm_rank(&call, "dxDesc", dx);
    check_norm_shape(&call, "dNormScaleBiasDesc", parameters, x, mode == MCDNN_NORM_PER_ACTIVATION);
    if (y != NULL)
        check_norm_like(&call, "yDesc", y, x);
    check_norm_like(&call, "dyDesc", dy, x);
    check_norm_like(&call, "dxDesc", dx, x);
    check_norm_groups(&call, groupCnt);
    if (call.status == 0)
        *sizeInBytes = 0;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetNormalizationTrainingReserveSpaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes, int groupCnt)
{
    Call call = us_call_begin("mcdnnGetNormalizationTrainingReserveSpaceSize");
    const bool fused = normOps != MCDNN_NORM_OPS_NORM;
    check_handle(&call, handle);
    if (fused)
        check_activation(&call, activationDesc);
    const Tensor *x = check_tensor(&call, "xDesc", xDesc);
    check_given(&call, "sizeInBytes", sizeInBytes);
    check_norm_modes(&call, mode, normOps, algo);
    check_norm_rank(&call, "xDesc", x);
    check_norm_groups(&call, groupCnt);
    if (call.status == 0)
        *sizeInBytes = fused ? norm_reserve_bytes(x, mode == MCDNN_NORM_PER_ACTIVATION) : 0;
    return us_call_end(&call);
}
