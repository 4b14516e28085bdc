/* Gradients of recurrent networks, and the CTC loss. Conventions: mcdnn_adv_infer.h. */
#ifndef MCDNN_ADV_TRAIN_H_
#define MCDNN_ADV_TRAIN_H_

#include "mcdnn_adv_infer.h"
#include "mcdnn_ops_infer.h"
#include "mcdnn_ops_train.h"

#define MCDNN_ADV_TRAIN_MAJOR 1
#define MCDNN_ADV_TRAIN_MINOR 1
#define MCDNN_ADV_TRAIN_PATCH 1

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    MCDNN_WGRAD_MODE_ADD = 0,
    MCDNN_WGRAD_MODE_SET = 1
} mcdnnWgradMode_t;

/* ---- recurrent networks ---- */

/* Gradients of x, hx and cx, after mcdnnRNNForward in training mode with the same reserve. NULL dhy, dcy: zeros; NULL dhx,
 * dcx: not wanted. dx is 0 behind the ends of sequences. */
mcdnnStatus_t mcdnnRNNBackwardData_v8(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, const int32_t devSeqLengths[],
    mcdnnRNNDataDescriptor_t yDesc, const void *y, const void *dy, mcdnnRNNDataDescriptor_t xDesc, void *dx,
    mcdnnTensorDescriptor_t hDesc, const void *hx, const void *dhy, void *dhx, mcdnnTensorDescriptor_t cDesc,
    const void *cx, const void *dcy, void *dcx, size_t weightSpaceSize, const void *weightSpace,
    size_t workSpaceSize, void *workSpace, size_t reserveSpaceSize, void *reserveSpace);
/* Adds the parameters' gradients to dweightSpace, after mcdnnRNNBackwardData_v8 with the same reserve. addGrad: ADD. */
mcdnnStatus_t mcdnnRNNBackwardWeights_v8(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, mcdnnWgradMode_t addGrad,
    const int32_t devSeqLengths[], mcdnnRNNDataDescriptor_t xDesc, const void *x,
    mcdnnTensorDescriptor_t hDesc, const void *hx, mcdnnRNNDataDescriptor_t yDesc, const void *y,
    size_t weightSpaceSize, void *dweightSpace, size_t workSpaceSize, void *workSpace,
    size_t reserveSpaceSize, void *reserveSpace);

/* ---- connectionist temporal classification ---- */

/* NONE: probs are probabilities. SOFTMAX: they are activations, of which the library takes the softmax. */
typedef enum {
    MCDNN_LOSS_NORMALIZATION_NONE = 0,
    MCDNN_LOSS_NORMALIZATION_SOFTMAX = 1
} mcdnnLossNormalizationMode_t;

mcdnnStatus_t mcdnnCreateCTCLossDescriptor(mcdnnCTCLossDescriptor_t *ctcLossDesc);
/* compType: FLOAT. Without normMode: NONE; without gradMode: NOT_PROPAGATE_NAN; without maxLabelLength: 255. */
mcdnnStatus_t mcdnnSetCTCLossDescriptor(mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t compType);
/* gradMode: the gradients of a sequence whose labels have no path are NaN, or 0. */
mcdnnStatus_t mcdnnSetCTCLossDescriptorEx(
    mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t compType, mcdnnLossNormalizationMode_t normMode,
    mcdnnNanPropagation_t gradMode);
mcdnnStatus_t mcdnnSetCTCLossDescriptor_v8(
    mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t compType, mcdnnLossNormalizationMode_t normMode,
    mcdnnNanPropagation_t gradMode, int maxLabelLength);
/* Places that are NULL are passed over. */
mcdnnStatus_t mcdnnGetCTCLossDescriptor(mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t *compType);
mcdnnStatus_t mcdnnGetCTCLossDescriptorEx(
    mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t *compType, mcdnnLossNormalizationMode_t *normMode,
    mcdnnNanPropagation_t *gradMode);
mcdnnStatus_t mcdnnGetCTCLossDescriptor_v8(
    mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t *compType, mcdnnLossNormalizationMode_t *normMode,
    mcdnnNanPropagation_t *gradMode, int *maxLabelLength);
mcdnnStatus_t mcdnnDestroyCTCLossDescriptor(mcdnnCTCLossDescriptor_t ctcLossDesc);
/* probs: FLOAT, (T, N, A) packed, label 0 the blank. Labels of all sequences stand one after the other. costs: N negative
 * logarithms of probabilities. gradients, like probs, by the activations; with a NULL descriptor or pointer there are none.
 * Labels and lengths are host arrays, at most 256 labels of a sequence. */
mcdnnStatus_t mcdnnCTCLoss(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t probsDesc, const void *probs, const int hostLabels[],
    const int hostLabelLengths[], const int hostInputLengths[], void *costs,
    const mcdnnTensorDescriptor_t gradientsDesc, void *gradients, mcdnnCTCLossAlgo_t algo,
    mcdnnCTCLossDescriptor_t ctcLossDesc, void *workspace, size_t workSpaceSizeInBytes);
/* The same with labels and lengths in device memory. Lengths that do not fit are a device fault. */
mcdnnStatus_t mcdnnCTCLoss_v8(
    mcdnnHandle_t handle, mcdnnCTCLossAlgo_t algo, mcdnnCTCLossDescriptor_t ctcLossDesc,
    const mcdnnTensorDescriptor_t probsDesc, const void *probs, const int labels[], const int labelLengths[],
    const int inputLengths[], void *costs, const mcdnnTensorDescriptor_t gradientsDesc, void *gradients,
    size_t workSpaceSizeInBytes, void *workspace);
mcdnnStatus_t mcdnnGetCTCLossWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t probsDesc,
    const mcdnnTensorDescriptor_t gradientsDesc, const int *labels, const int *labelLengths,
    const int *inputLengths, mcdnnCTCLossAlgo_t algo, mcdnnCTCLossDescriptor_t ctcLossDesc,
    size_t *sizeInBytes);
mcdnnStatus_t mcdnnGetCTCLossWorkspaceSize_v8(
    mcdnnHandle_t handle, mcdnnCTCLossAlgo_t algo, mcdnnCTCLossDescriptor_t ctcLossDesc,
    const mcdnnTensorDescriptor_t probsDesc, const mcdnnTensorDescriptor_t gradientsDesc,
    size_t *sizeInBytes);

#ifdef __cplusplus
}
#endif

#endif
