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
                     .interface = NORMALIZATION,
                     .mode = mode,
                     .ops = normOps,
                     .algo = algo,
                     .x = norm_shape("xDesc", xDesc),
                     .z = norm_shape("zDesc", zDesc),
                     .y = norm_shape("yDesc", yDesc),
                     .parameters = norm_shape("normScaleBiasDesc", normScaleBiasDesc),
                     .statistics = norm_shape("normMeanVarDesc", normMeanVarDesc),
                     .activation_descriptor = activationDesc,
                     .groups = groupCnt,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_forward(&norm, handle);
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
                     .interface = NORMALIZATION,
                     .mode = mode,
                     .ops = normOps,
                     .algo = algo,
                     .x = norm_shape("xDesc", xDesc),
                     .y = norm_shape("yDesc", yDesc),
                     .dy = norm_shape("dyDesc", dyDesc),
                     .z = norm_shape("dzDesc", dzDesc),
                     .dx = norm_shape("dxDesc", dxDesc),
                     .parameters = norm_shape("dNormScaleBiasDesc", dNormScaleBiasDesc),
                     .statistics = norm_shape("normMeanVarDesc", normMeanVarDesc),
                     .activation_descriptor = activationDesc,
                     .groups = groupCnt,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_backward(&norm, handle);
    return norm_differentiate_size(&norm);
}

mcdnnStatus_t mcdnnGetNormalizationTrainingReserveSpaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes, int groupCnt)
{
    NormCall norm = {.function = "mcdnnGetNormalizationTrainingReserveSpaceSize",
                     .interface = NORMALIZATION,
                     .mode = mode,
                     .ops = normOps,
                     .algo = algo,
                     .x = norm_shape("xDesc", xDesc),
                     .activation_descriptor = activationDesc,
                     .groups = groupCnt,
                     .is_query = true,
                     .size = sizeInBytes};
    norm_open_reserve(&norm, handle);
    return norm_reserve_size(&norm);
}
