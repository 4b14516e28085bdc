/* Sizes of the spaces that the fused batch normalization calls take (mcdnn 6.7). */
#include "norm_call.h"

mcdnnStatus_t mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t zDesc,
    const mcdnnTensorDescriptor_t yDesc, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    const mcdnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    NormCall norm = {.function = "mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize",
                     .mode = mode,
                     .ops = bnOps,
                     .x = norm_shape("xDesc", xDesc),
                     .z = norm_shape("zDesc", zDesc),
                     .y = norm_shape("yDesc", yDesc),
                     .parameters = norm_shape("bnScaleBiasMeanVarDesc", bnScaleBiasMeanVarDesc),
                     .activation_descriptor = activationDesc,
                     .adds_half_only = true,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_forward(&norm, handle);
    return norm_train_size(&norm);
}

mcdnnStatus_t mcdnnGetBatchNormalizationBackwardExWorkspaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t yDesc,
    const mcdnnTensorDescriptor_t dyDesc, const mcdnnTensorDescriptor_t dzDesc,
    const mcdnnTensorDescriptor_t dxDesc, const mcdnnTensorDescriptor_t dBnScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc, size_t *sizeInBytes)
{
    NormCall norm = {.function = "mcdnnGetBatchNormalizationBackwardExWorkspaceSize",
                     .mode = mode,
                     .ops = bnOps,
                     .x = norm_shape("xDesc", xDesc),
                     .y = norm_shape("yDesc", yDesc),
                     .dy = norm_shape("dyDesc", dyDesc),
                     .z = norm_shape("dzDesc", dzDesc),
                     .dx = norm_shape("dxDesc", dxDesc),
                     .parameters = norm_shape("dBnScaleBiasDesc", dBnScaleBiasDesc),
                     .activation_descriptor = activationDesc,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_backward(&norm, handle);
    return norm_differentiate_size(&norm);
}

mcdnnStatus_t mcdnnGetBatchNormalizationTrainingExReserveSpaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes)
{
    NormCall norm = {.function = "mcdnnGetBatchNormalizationTrainingExReserveSpaceSize",
                     .mode = mode,
                     .ops = bnOps,
                     .x = norm_shape("xDesc", xDesc),
                     .activation_descriptor = activationDesc,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_reserve(&norm, handle);
    return norm_reserve_size(&norm);
}
