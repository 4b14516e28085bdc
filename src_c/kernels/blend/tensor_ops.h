/* Arithmetic on whole tensors (mcdnn 7.3). */
#ifndef UNDERSTUDY_TENSOR_OPS_H
#define UNDERSTUDY_TENSOR_OPS_H

#include "kernels/kernels.h"

typedef enum TensorOperation {
    TENSOR_FILL,  /* alpha1 */
    TENSOR_SCALE, /* alpha1 * a: also the result of an addition or a change of layout */
    TENSOR_ADD,
    TENSOR_MULTIPLY,
    TENSOR_MINIMUM,
    TENSOR_MAXIMUM,
    TENSOR_ROOT,
    TENSOR_NOT, /* 1 - alpha1 * a */
} TensorOperation;

/* c = operation(alpha1 * a, alpha2 * b) + beta * c; beta 0 never reads the old c. */
typedef struct TensorArithmetic {
    TensorOperation operation;
    bool propagate_nan; /* of minimum and maximum: otherwise the number wins over NaN */
    double alpha1, alpha2, beta;
} TensorArithmetic;

Kernel us_tensor_arithmetic; /* a?, b?, c: a and b are broadcast to c */

typedef enum TensorReduction {
    REDUCE_SUM,
    REDUCE_PRODUCT,
    REDUCE_MINIMUM,
    REDUCE_MAXIMUM,
    REDUCE_LARGEST_SIZE,
    REDUCE_AVERAGE,
    REDUCE_NORM1,
    REDUCE_NORM2,
    REDUCE_PRODUCT_WITHOUT_ZEROS,
} TensorReduction;

typedef struct TensorReduce {
    TensorReduction reduction;
    bool propagate_nan;
    double alpha, beta;
} TensorReduce;

/* Over the axes where c has size 1. The indices count the reduced elements in row-major order; the first one wins. */
Kernel us_tensor_reduce; /* a, c, indices? (uint32, as many as c has elements) */

#endif
