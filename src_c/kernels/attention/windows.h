/* Windows of rows, compressed: each becomes the sum of its rows, weighted by their place in it. */
#ifndef UNDERSTUDY_WINDOWS_H
#define UNDERSTUDY_WINDOWS_H

#include "kernels/kernels.h"

/* y[o, n, d] = the sum over j of weight[j, n] * x[first[o] + j, n, d], in float32, rounded once.
 * views: x [T, N, D], weight [L, N], y [O, N, D]; attributes: int64_t first[O], none smaller than the one before. */
Kernel us_windows;

/* Its gradients. views: dy [O, N, D], x, weight, dx, dweight. */
Kernel us_windows_backward;

#endif
