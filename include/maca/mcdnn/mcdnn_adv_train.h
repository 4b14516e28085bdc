/* Gradients of recurrent networks. Conventions: mcdnn_adv_infer.h. */
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

#ifdef __cplusplus
}
#endif

#endif
