/* Evenly spaced numbers.
 *
 * out[i] = start + i * (end - start) / (n - 1); the last is end. n of 1 gives start.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef LINSPACE_OP_H
#define LINSPACE_OP_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_linspace_s(float *out, float start, float end, int n, int core_mask);
void fp_linspace_p(float *out, float start, float end, int n);
void hp_linspace_s(half *out, float start, float end, int n, int core_mask);
void hp_linspace_p(half *out, float start, float end, int n);

#ifdef __cplusplus
}
#endif

#endif
