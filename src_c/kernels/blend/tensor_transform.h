/* Padding and folding: space moves into channels block by block, or back (mcdnn 7.3). */
#ifndef UNDERSTUDY_TENSOR_TRANSFORM_H
#define UNDERSTUDY_TENSOR_TRANSFORM_H

#include "kernels/kernels.h"

enum { TRANSFORM_RANK = 8 };

/* y = alpha * moved x + beta * y; where nothing lands, moved x is 0. Axis 1 holds the channels, axes from 2 on are space.
 * Folding pads first, channels too, and takes padded positions p to p / fold, block p % fold; channel = block * padded
 * channels + padding + c, blocks numbered in row-major order. beta must then be 0. Unfolding takes blocks of channels
 * apart again and then pads. */
typedef struct TensorTransform {
    bool unfold, moves; /* moves: some padding or folding */
    int32_t pad_before[TRANSFORM_RANK], pad_after[TRANSFORM_RANK];
    int32_t fold[TRANSFORM_RANK]; /* 1 for axes 0 and 1 */
    double alpha, beta;
} TensorTransform;

Kernel us_tensor_transform; /* x, y: of one rank */

#endif
