/* Gradient of the logarithm.
 *
 * output = input0 / input1.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef LOGGRAD_H
#define LOGGRAD_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_log_grad_s(float *input0, float *input1, float *output, int length, int core_mask);
void fp_log_grad_p(float *input0, float *input1, float *output, int length);
void hp_log_grad_s(half *input0, half *input1, half *output, int length, int core_mask);
void hp_log_grad_p(half *input0, half *input1, half *output, int length);

#ifdef __cplusplus
}
#endif

#endif
