/* Gradient of the power function.
 *
 * output = power * scale * Input1 * (scale * Input2 + shift)^(power - 1); 0 when scale is 0.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef POWER_GRAD_H
#define POWER_GRAD_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_power_grad_s(float *Input1, float *Input2, float *output, int length, float power, float scale, float shift,
                     int core_mask);
void fp_power_grad_p(float *Input1, float *Input2, float *output, int length, float power, float scale, float shift);
void hp_power_grad_s(half *Input1, half *Input2, half *output, int length, float power, float scale, float shift,
                     int core_mask);
void hp_power_grad_p(half *Input1, half *Input2, half *output, int length, float power, float scale, float shift);

#ifdef __cplusplus
}
#endif

#endif
