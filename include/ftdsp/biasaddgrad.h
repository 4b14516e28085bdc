/* Gradient of biasadd with respect to the bias, for the channel in the last axis.
 *
 * dbias[c] = sum of dy over all axes but the last. dy_dims has shape_size >= 1 entries.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef BIASADDGRAD_H
#define BIASADDGRAD_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_biasaddgrad_s(float *dy, int *dy_dims, int shape_size, float *dbias, int core_mask);
void fp_biasaddgrad_p(float *dy, int *dy_dims, int shape_size, float *dbias);
void hp_biasaddgrad_s(half *dy, int *dy_dims, int shape_size, half *dbias, int core_mask);
void hp_biasaddgrad_p(half *dy, int *dy_dims, int shape_size, half *dbias);

#ifdef __cplusplus
}
#endif

#endif
