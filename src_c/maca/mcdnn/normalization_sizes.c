/* Sizes of the spaces that the Normalization calls take (mcdnn 6.13). */
#include "norm_call.h"

mcdnnStatus_t mcdnnGetNormalizationForwardTrainingWorkspaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t zDesc,
    const mcdnnTensorDescriptor_t yDesc, const mcdnnTensorDescriptor_t normScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc,
    const mcdnnTensorDescriptor_t normMeanVarDesc, size_t *sizeInBytes, int groupCnt)
{
    NormCall norm = {.function = "mcdnnGetNormalizationForwardTrainingWorkspaceSize",
                     .per_activation = mode == MCDNN_NORM_PER_ACTIVATION,
                     .fused = normOps != MCDNN_NORM_OPS_NORM,
                     .adds = normOps == MCDNN_NORM_OPS_NORM_ADD_ACTIVATION,
                     .x = {.descriptor_name = "xDesc", .descriptor = xDesc},
                     .z = {.descriptor_name = "zDesc", .descriptor = zDesc},
                     .y = {.descriptor_name = "yDesc", .descriptor = yDesc},
                     .parameters = {.descriptor_name = "normScaleBiasDesc", .descriptor = normScaleBiasDesc},
                     .statistics = {.descriptor_name = "normMeanVarDesc", .descriptor = normMeanVarDesc},
                     .activation_descriptor = activationDesc,
                     .takes_bfloat16 = true,
                     .groups = groupCnt,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_forward(&norm, handle);
    check_norm_modes(&norm.call, mode, normOps, algo);
    return norm_train_size(&norm);
}

mcdnnStatus_t mcdnnGetNormalizationBackwardWorkspaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t yDesc,
    const mcdnnTensorDescriptor_t dyDesc, const mcdnnTensorDescriptor_t dzDesc,
    const mcdnnTensorDescriptor_t dxDesc, const mcdnnTensorDescriptor_t dNormScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc,
    const mcdnnTensorDescriptor_t normMeanVarDesc, size_t *sizeInBytes, int groupCnt)
{
    NormCall norm = {.function = "mcdnnGetNormalizationBackwardWorkspaceSize",
                     .per_activation = mode == MCDNN_NORM_PER_ACTIVATION,
                     .fused = normOps != MCDNN_NORM_OPS_NORM,
                     .adds = normOps == MCDNN_NORM_OPS_NORM_ADD_ACTIVATION,
                     .x = {.descriptor_name = "xDesc", .descriptor = xDesc},
                     .y = {.descriptor_name = "yDesc", .descriptor = yDesc},
                     .dy = {.descriptor_name = "dyDesc", .descriptor = dyDesc},
                     .z = {.descriptor_name = "dzDesc", .descriptor = dzDesc},
                     .dx = {.descriptor_name = "dxDesc", .descriptor = dxDesc},
                     .parameters = {.descriptor_name = "dNormScaleBiasDesc", .descriptor = dNormScaleBiasDesc},
                     .statistics = {.descriptor_name = "normMeanVarDesc", .descriptor = normMeanVarDesc},
                     .activation_descriptor = activationDesc,
                     .takes_bfloat16 = true,
                     .groups = groupCnt,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_backward(&norm, handle);
    check_norm_modes(&norm.call, mode, normOps, algo);
    return norm_differentiate_size(&norm);
}

mcdnnStatus_t mcdnnGetNormalizationTrainingReserveSpaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes, int groupCnt)
{
    NormCall norm = {.function = "mcdnnGetNormalizationTrainingReserveSpaceSize",
                     .per_activation = mode == MCDNN_NORM_PER_ACTIVATION,
                     .fused = normOps != MCDNN_NORM_OPS_NORM,
                     .x = {.descriptor_name = "xDesc", .descriptor = xDesc},
                     .activation_descriptor = activationDesc,
                     .takes_bfloat16 = true,
                     .groups = groupCnt,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_reserve(&norm, handle);
    check_norm_modes(&norm.call, mode, normOps, algo);
    return norm_reserve_size(&norm);
}
