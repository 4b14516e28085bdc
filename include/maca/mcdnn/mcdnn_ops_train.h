/* The backward and training functions of the neural-network library. Conventions: mcdnn_ops_infer.h. */
#ifndef MCDNN_OPS_TRAIN_H_
#define MCDNN_OPS_TRAIN_H_

#include "mcdnn_ops_infer.h"

#define MCDNN_OPS_TRAIN_MAJOR 1
#define MCDNN_OPS_TRAIN_MINOR 1
#define MCDNN_OPS_TRAIN_PATCH 1

#ifdef __cplusplus
extern "C" {
#endif

/* VERSION_MISMATCH when this part of the library has another version than the rest. */
mcdnnStatus_t mcdnnOpsTrainVersionCheck(void);

/* ---- softmax ---- */

/* dx from the forward result y, as stored, and dy. dx may be dy when the descriptors are equal. BAD_PARAM: sizes or types
 * of the three differ, strides of y and dy differ. */
mcdnnStatus_t mcdnnSoftmaxBackward(
    mcdnnHandle_t handle, mcdnnSoftmaxAlgorithm_t algorithm, mcdnnSoftmaxMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t yDesc, const void *yData,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx);

/* ---- activation ---- */

/* RELU, CLIPPED_RELU and SWISH read x, the other modes y; all operands must be given. dx may be dy when the descriptors
 * are equal. BAD_PARAM: in place with other strides, mode IDENTITY or unknown. NOT_SUPPORTED: sizes or types differ,
 * strides of y and dy or of x and dx differ. */
mcdnnStatus_t mcdnnActivationBackward(
    mcdnnHandle_t handle, mcdnnActivationDescriptor_t activationDesc, const void *alpha,
    const mcdnnTensorDescriptor_t yDesc, const void *y, const mcdnnTensorDescriptor_t dyDesc,
    const void *dy, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx);

#ifdef __cplusplus
}
#endif

#endif
