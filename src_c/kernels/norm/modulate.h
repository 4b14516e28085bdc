/* The gradients of out = x * factor + shift, factor and shift [b, d] of x [b, l, d]. */
#ifndef UNDERSTUDY_MODULATE_H
#define UNDERSTUDY_MODULATE_H

#include "kernels/kernels.h"

/* views: slopes, x, factors (absent: 1), x slopes = slopes * factors, factor slopes = sum over l of slopes * x and shift slopes =
 * sum over l of slopes, either absent. Products in float32, sums in float64. */
Kernel us_modulate_gradient;

#endif
