/* Softmax of rows that are scaled and of which a mask leaves parts out, and its gradient; softmax of scaled and shifted
 * rows. */
#ifndef UNDERSTUDY_MASKED_SOFTMAX_H
#define UNDERSTUDY_MASKED_SOFTMAX_H

#include "kernels/kernels.h"

/* y = softmax(x * scale, but `fill` where mask is not 0) along the last axis, in float32, rounded once.
 * views: x, mask, y of 4 axes [N, C, H, W]; the mask's first two may be 1. */
typedef struct MaskedSoftmax {
    double scale, fill;
} MaskedSoftmax;
Kernel us_masked_softmax;

/* dx = scale * (dy - the row's sum of dy * y) * y, but 0 where mask is not 0. views: dy, y, mask, dx. */
Kernel us_masked_softmax_backward;

/* y = softmax(x * scale + mask + bias) along the last axis, in float32, rounded once.
 * views: x, mask (may be absent), bias, y of 5 axes [B, W, N, H, W']; the first three of mask and bias may be 1. */
Kernel us_shifted_softmax;

#endif
