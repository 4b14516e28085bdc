/* Convolutions of integers that stand for real numbers. */
#ifndef UNDERSTUDY_QUANTIZED_CONV_H
#define UNDERSTUDY_QUANTIZED_CONV_H

#include "kernels/conv/conv.h"

/* y[n, k, o] = (the sum of us_conv_forward) * scale[k] + bias[k]: the sum is exact, the rest float64, rounded once.
 * The attributes are a Convolution whose factors do not count. views: x, w, scale [K], bias [K] or absent, y. */
Kernel us_conv_quantized;

#endif
