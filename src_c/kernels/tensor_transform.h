/* Padding and folding: space moves into channels block by block, or back (mcdnn 7.3). */
#ifndef UNDERSTUDY_TENSOR_TRANSFORM_H
#define UNDERSTUDY_TENSOR_TRANSFORM_H

#include "kernels/kernels.h"

enum { TRANSFORM_RANK = 8 };

/* y = alpha * moved x + beta * y. Axis 1 holds the channels, axes from 2 on are space. Folding takes padded positions p
 * to p / fold, block p % fold; channel = padding + block * channels + c, blocks numbered in row-major order. Unfolding
 * takes them apart again and then pads. Where nothing lands, y becomes 0: beta must then be 0. */
typedef struct TensorTransform {
    bool unfold, moves; /* moves: some padding or folding */
    int32_t pad_before[TRANSFORM_RANK];
    int32_t fold[TRANSFORM_RANK]; /* 1 for axes 0 and 1 */
    double alpha, beta;
} TensorTransform;

Kernel us_tensor_transform; /* x, y: of one rank */

#endif
