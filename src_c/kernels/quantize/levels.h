/* Quantisation with one step and one zero point. */
#ifndef UNDERSTUDY_QUANTIZE_LEVELS_H
#define UNDERSTUDY_QUANTIZE_LEVELS_H

#include "kernels/kernels.h"

/* out = x / step + zero_point in float32, rounded to the nearest integer, halves away from 0, and saturated; NaN gives 0.
 * dtype: float32 or float16. Of x `follow` elements are there, `count` or more: the next call's are fetched in time. */
void us_quantise_levels(const void *x, int8_t *out, int64_t count, int64_t follow, DType dtype, float step, float zero_point);

#endif
