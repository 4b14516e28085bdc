/* Gradient of the element-wise minimum of two broadcast inputs.
 *
 * dy (of the broadcast shape) goes to dx0 where Input0 < Input1, else to dx1, summed over the axes along which the
 * input was broadcast. Both dims have num_dims entries; an axis fits when the sizes are equal or one is 1.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef MINIMUMGRAD_H
#define MINIMUMGRAD_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_minimumgrad_s(float *Input0, float *Input1, float *dy, int *Input0_dims, int *Input1_dims, int num_dims,
                      float *dx0, float *dx1, int core_mask);
void fp_minimumgrad_p(float *Input0, float *Input1, float *dy, int *Input0_dims, int *Input1_dims, int num_dims,
                      float *dx0, float *dx1);
void hp_minimumgrad_s(half *Input0, half *Input1, half *dy, int *Input0_dims, int *Input1_dims, int num_dims,
                      half *dx0, half *dx1, int core_mask);
void hp_minimumgrad_p(half *Input0, half *Input1, half *dy, int *Input0_dims, int *Input1_dims, int num_dims,
                      half *dx0, half *dx1);

#ifdef __cplusplus
}
#endif

#endif
