/* Quantises and dequantises.
 *
 * The range [min_val, max_val], widened to [-m, m] with m the larger magnitude when symmetric, is nudged so that 0 is
 * one of the levels quant_min … quant_max; src is clamped to it and rounded to the nearest level.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef FAKE_QUANT_WITH_MIN_MAX_VARS_H
#define FAKE_QUANT_WITH_MIN_MAX_VARS_H

#include "ftdsp_half.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_fake_quant_with_min_max_vars_s(float *src, float min_val, float max_val, float *output, int length,
                                       int quant_min, int quant_max, bool symmetric, int core_mask);
void fp_fake_quant_with_min_max_vars_p(float *src, float min_val, float max_val, float *output, int length,
                                       int quant_min, int quant_max, bool symmetric);
FTDSP_HALF_BY_VALUE
void hp_fake_quant_with_min_max_vars_s(half *src, half min_val, half max_val, half *output, int length,
                                       int quant_min, int quant_max, bool symmetric, int core_mask);
FTDSP_HALF_BY_VALUE
void hp_fake_quant_with_min_max_vars_p(half *src, half min_val, half max_val, half *output, int length,
                                       int quant_min, int quant_max, bool symmetric);

#ifdef __cplusplus
}
#endif

#endif
