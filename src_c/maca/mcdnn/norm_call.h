/* One call of a batch normalization or Normalization function: what it was given under which names, its checks in the
 * order of the pages, and its launch. The two families differ in names and in little else (mcdnn 6.2). */
#ifndef MCDNN_NORM_CALL_H
#define MCDNN_NORM_CALL_H

#include "norm.h"

typedef struct NormPointer {
    const char *name;
    const void *pointer;
} NormPointer;

typedef struct NormTensor {
    const char *descriptor_name;
    mcdnnTensorDescriptor_t descriptor;
    const char *name;
    const void *pointer;
    const Tensor *tensor; /* once checked; NULL: not given */
} NormTensor;

static inline NormTensor norm_tensor(const char *descriptor_name, mcdnnTensorDescriptor_t descriptor, const char *name,
                                     const void *pointer)
{
    return (NormTensor){descriptor_name, descriptor, name, pointer, NULL};
}

static inline NormTensor norm_shape(const char *descriptor_name, mcdnnTensorDescriptor_t descriptor)
{
    return norm_tensor(descriptor_name, descriptor, NULL, NULL);
}

/* Both count modes and operations alike: mode 0 normalizes each activation, the operations are without an activation,
 * with one, with one after adding a tensor. */
typedef enum NormInterface { BATCH_NORM, NORMALIZATION } NormInterface;

typedef struct NormCall {
    const char *function;
    NormInterface interface;
    int mode, ops, algo, groups; /* algo and groups: of NORMALIZATION */
    bool per_activation, fused, adds; /* from mode and ops: fused with an activation; adds a tensor before it */
    const void *alpha, *beta, *alpha_param, *beta_param;
    NormTensor x, z, y, dy, dx; /* z: backwards dz */
    NormTensor parameters, statistics; /* descriptors; without a name, the statistics are described as the parameters */
    NormPointer scale, bias, scale_gradient, bias_gradient;
    NormPointer mean, variance; /* inputs: estimated, or as saved */
    NormPointer running_mean, running_variance, saved_mean, saved_inverse;
    double factor, epsilon;
    bool takes_bfloat16, adds_half_only; /* types that the function's table has; NORMALIZATION takes BFLOAT16 */
    mcdnnActivationDescriptor_t activation_descriptor;
    void *reserve;
    size_t reserve_bytes;
    bool is_query; /* of a size: descriptors only */
    size_t *size;
    Call call;
    const Dnn *dnn;
    const ActivationDescriptor *activation;
} NormCall;

/* Begin the call: handle, descriptors, pointers, ranges. */
void norm_open_forward(NormCall *norm, mcdnnHandle_t handle);
void norm_open_backward(NormCall *norm, mcdnnHandle_t handle);
void norm_open_reserve(NormCall *norm, mcdnnHandle_t handle); /* of the query that has x only */

/* The remaining checks, the launch, and the end of the call. */
mcdnnStatus_t norm_infer(NormCall *norm);
mcdnnStatus_t norm_train(NormCall *norm);
mcdnnStatus_t norm_differentiate(NormCall *norm);

/* The same checks for a query of the spaces (is_query), and the size (mcdnn 6.7, 6.13): what the call refuses, the
 * query refuses. The kernels need no workspace. */
mcdnnStatus_t norm_train_size(NormCall *norm);
mcdnnStatus_t norm_differentiate_size(NormCall *norm);
mcdnnStatus_t norm_reserve_size(NormCall *norm);

#endif
