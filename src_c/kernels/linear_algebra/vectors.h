/* Operations on one or two vectors (BLAS level 1) of float16, bfloat16, float32, float64, complex64 and complex128
 * with any strides. Elements are computed in float64 and rounded once; sums are formed in a fixed order. */
#ifndef UNDERSTUDY_VECTORS_H
#define UNDERSTUDY_VECTORS_H

#include "kernels/kernels.h"

/* views: x, y (absent where there is none), and a first and second scalar where the attributes do not hold them. */
typedef enum VectorOperation {
    VECTOR_COPY,     /* y = x */
    VECTOR_SWAP,
    VECTOR_AXPY,     /* y = s0 * x + y; with s0 = 0 x is not read */
    VECTOR_SCALE,    /* x = s0 * x */
    VECTOR_ROTATE,   /* x = s0 * x + s1 * y, y = -conj(s1) * x + s0 * y */
    VECTOR_ROTATE_MODIFIED, /* s0 has five elements: flag, h11, h21, h12, h22 */
} VectorOperation;

enum { VECTOR_SCALARS = 5 };
typedef struct VectorUpdate {
    VectorOperation operation;
    double scalars[VECTOR_SCALARS][2]; /* one after the other: s0, s1, or the five of s0 */
    bool real[2];                      /* s0, s1 are real numbers, which multiply the parts of complex ones apart */
} VectorUpdate;
Kernel us_vector_update;

/* views: x, y (absent except for dot products), result (absent: `host`). */
typedef enum VectorReduction {
    VECTOR_DOT,            /* sum x * y */
    VECTOR_DOT_CONJUGATED, /* sum conj(x) * y */
    VECTOR_ABSOLUTE_SUM,   /* sum |re| + |im| */
    VECTOR_NORM,           /* root of the sum of squares, scaled against overflow */
    VECTOR_LARGEST,        /* index from 1 of the first largest |re| + |im|; not a number counts only at the front */
    VECTOR_SMALLEST,
} VectorReduction;
typedef struct VectorSum {
    VectorReduction reduction;
    DType result; /* int32 for an index */
    DType compute; /* of dot products: see us_matmul */
    void *host;   /* where the result goes when the view is absent */
} VectorSum;
Kernel us_vector_sum;

/* Givens rotations from scalars. views: a, b, c, s or d1, d2, x1, y1, param, all absent when the attributes name
 * them. */
typedef struct RotationSetup {
    bool modified;
    DType dtype; /* of a, b, s; c is real */
    void *host[5];
} RotationSetup;
Kernel us_rotation_setup;

#endif
