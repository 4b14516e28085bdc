/* Sizes of the spaces that the fused batch normalization calls take (mcdnn 6.7). */
#include "norm_call.h"

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
    NormCall norm = {.function = "mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize",
                     .per_activation = mode == MCDNN_BATCHNORM_PER_ACTIVATION,
                     .fused = bnOps != MCDNN_BATCHNORM_OPS_BN,
                     .adds = bnOps == MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
                     .x = {.descriptor_name = "xDesc", .descriptor = xDesc},
                     .z = {.descriptor_name = "zDesc", .descriptor = zDesc},
                     .y = {.descriptor_name = "yDesc", .descriptor = yDesc},
                     .parameters = {.descriptor_name = "bnScaleBiasMeanVarDesc", .descriptor = bnScaleBiasMeanVarDesc},
                     .activation_descriptor = activationDesc,
                     .adds_half_only = true,
                     .groups = 1,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_forward(&norm, handle);
    check_modes(&norm.call, mode, bnOps);
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
                     .per_activation = mode == MCDNN_BATCHNORM_PER_ACTIVATION,
                     .fused = bnOps != MCDNN_BATCHNORM_OPS_BN,
                     .adds = bnOps == MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
                     .x = {.descriptor_name = "xDesc", .descriptor = xDesc},
                     .y = {.descriptor_name = "yDesc", .descriptor = yDesc},
                     .dy = {.descriptor_name = "dyDesc", .descriptor = dyDesc},
                     .z = {.descriptor_name = "dzDesc", .descriptor = dzDesc},
                     .dx = {.descriptor_name = "dxDesc", .descriptor = dxDesc},
                     .parameters = {.descriptor_name = "dBnScaleBiasDesc", .descriptor = dBnScaleBiasDesc},
                     .activation_descriptor = activationDesc,
                     .groups = 1,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_backward(&norm, handle);
    check_modes(&norm.call, mode, bnOps);
    return norm_differentiate_size(&norm);
}

mcdnnStatus_t mcdnnGetBatchNormalizationTrainingExReserveSpaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes)
{
    NormCall norm = {.function = "mcdnnGetBatchNormalizationTrainingExReserveSpaceSize",
                     .per_activation = mode == MCDNN_BATCHNORM_PER_ACTIVATION,
                     .fused = bnOps != MCDNN_BATCHNORM_OPS_BN,
                     .x = {.descriptor_name = "xDesc", .descriptor = xDesc},
                     .activation_descriptor = activationDesc,
                     .groups = 1,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_reserve(&norm, handle);
    check_modes(&norm.call, mode, bnOps);
    return norm_reserve_size(&norm);
}
