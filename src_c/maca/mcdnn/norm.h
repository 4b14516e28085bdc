/* Checks that the batch normalization and the Normalization functions share (mcdnn 6.2). */
#ifndef MCDNN_NORM_H
#define MCDNN_NORM_H

#include "check.h"
#include "kernels/norm/batch_norm.h"

/* Of the Normalization functions: groupCnt/one */
void check_norm_groups(Call *call, int groupCnt);

/* parameter/rank: not 4 or 5 */
void check_norm_rank(Call *call, const char *parameter, const Tensor *tensor);

/* parameter/shape: not 1xCx1x1, or 1xCxHxW per activation */
void check_norm_shape(Call *call, const char *parameter, const Tensor *tensor, const Tensor *x, bool per_activation);

/* parameter/pair: exactly one of two pointers is NULL; `parameter` names the first */
void check_norm_pair(Call *call, const char *parameter, const void *first, const void *second);

/* epsilon/minimum */
void check_norm_epsilon(Call *call, double epsilon, double minimum);

/* sizes and type of `tensor` as those of x */
void check_norm_like(Call *call, const char *parameter, const Tensor *tensor, const Tensor *x);

/* parameter/unsupported-type: the data type of x is not in the table of the function */
void check_norm_type(Call *call, const char *parameter, const Tensor *x, bool bfloat16);

/* parameter/parameter-type: FLOAT, or DOUBLE for DOUBLE data */
void check_norm_parameter_type(Call *call, const char *parameter, const Tensor *tensor, const Tensor *x);

/* parameter/sizes, parameter/type: mean and variance unlike the parameters; forwards NOT_SUPPORTED, backwards BAD_PARAM
 * (mcdnn 6.11 #6, 6.12) */
void check_norm_statistics(Call *call, int32_t status, const char *parameter, const Tensor *statistics,
                           const char *model_parameter, const Tensor *parameters);

/* parameter/channels-last: not packed NHWC, which fused forms need */
void check_norm_channels_last(Call *call, const char *parameter, const Tensor *tensor);

/* activationDesc/fused-mode: RELU, and SWISH forward */
void check_norm_activation(Call *call, const ActivationDescriptor *activation, bool forward);

/* zDesc/unsupported-type or dzDesc/…: the sum exists for HALF only */
void check_norm_sum_type(Call *call, const char *parameter, const Tensor *tensor);

/* reserveSpace/null, reserveSpaceSizeInBytes/minimum */
void check_norm_reserve(Call *call, const void *reserve, size_t bytes, const Tensor *x, bool per_activation);
size_t norm_reserve_bytes(const Tensor *x, bool per_activation);

/* The parameters' descriptor that belongs to x: packed, FLOAT or DOUBLE. */
Tensor norm_derived(const Tensor *x, bool per_activation);

#endif
