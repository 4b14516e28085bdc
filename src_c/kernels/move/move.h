/* Kernels that move elements where a copy between views does not say it. They convert from the source's type to the
 * target's (tensor/lane.h). */
#ifndef UNDERSTUDY_MOVE_H
#define UNDERSTUDY_MOVE_H

#include "kernels/kernels.h"
#include "tensor/number.h"

/* views: source, target with as many elements: row-major order is kept. */
typedef struct Reshape {
    char unused;
} Reshape;
Kernel us_reshape;

/* views: source, target of the same rank and type: target[i] = source[i - before] where that exists, else value. Negative
 * numbers cut the source. */
typedef struct ConstantPad {
    int64_t before[VIEW_RANK_LIMIT];
    Number value;
} ConstantPad;
Kernel us_constant_pad;

/* views: source, target of one shape, rank 2 or more; of the last two axes, row i and column j, elements with
 * i + diagonal >= j (lower) or i + diagonal <= j are kept, others are 0. They may be one view. */
typedef struct Triangle {
    int64_t diagonal;
    bool lower;
} Triangle;
Kernel us_triangle;

/* views: source, target of rank 2: 0 everywhere but on a diagonal (above the main one when positive), which gets the
 * source's elements in row-major order. */
typedef struct Diagonal {
    int64_t diagonal;
} Diagonal;
Kernel us_diagonal_matrix;

/* views: target of rank 2, or more when all its sizes are equal. The elements whose coordinates are all equal become
 * `value`; `wraps`: in a matrix with more rows than columns the diagonal begins again, one row after it ended. */
typedef struct DiagonalFill {
    Number value;
    bool wraps;
} DiagonalFill;
Kernel us_fill_diagonal;

/* views: target of rank 2. 0 everywhere but on its main diagonal, which is 1. */
Kernel us_identity;

/* views: target. Element i in row-major order is start + i * step, computed in `compute`; element last_at, if that is not
 * negative, is `last`. `powers`, of a floating compute: base to the power of that. */
typedef struct Sequence {
    DType compute;
    bool powers;
    double base;
    Number start, step, last;
    int64_t last_at;
} Sequence;
Kernel us_sequence;

#endif
