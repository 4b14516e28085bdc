/* Gradient of the smooth L1 loss.
 *
 * dx1 = dy where x1 - x2 > beta, -dy where x1 - x2 < -beta, else (x1 - x2) / beta * dy.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef SMOOTHL1LOSSGRAD_H
#define SMOOTHL1LOSSGRAD_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_smoothl1lossgrad_s(float *dy, float *dx1, float *x1, float *x2, int length, float beta, int core_mask);
void fp_smoothl1lossgrad_p(float *dy, float *dx1, float *x1, float *x2, int length, float beta);
FTDSP_HALF_BY_VALUE
void hp_smoothl1lossgrad_s(half *dy, half *dx1, half *x1, half *x2, int length, half beta, int core_mask);
FTDSP_HALF_BY_VALUE
void hp_smoothl1lossgrad_p(half *dy, half *dx1, half *x1, half *x2, int length, half beta);

#ifdef __cplusplus
}
#endif

#endif
