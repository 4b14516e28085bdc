/* Momentum step on a part of the elements, in place; the numbers are read from memory.
 *
 * accumulate = moment * accumulate + g; weight -= learning_rate * (nesterov ? accumulate * moment + g : accumulate).
 * float_addr: learning_rate, moment; int_addr: start, end.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef APPLY_MOMENTUM_H
#define APPLY_MOMENTUM_H

#include "ftdsp_half.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_apply_momentum_s(float *weight, float *accumulate, const float *gradient, bool nesterov, float *float_addr,
                         int *int_addr, int core_mask);
void fp_apply_momentum_p(float *weight, float *accumulate, const float *gradient, bool nesterov, float *float_addr,
                         int *int_addr);
void hp_apply_momentum_s(half *weight, half *accumulate, const half *gradient, bool nesterov, float *float_addr,
                         int *int_addr, int core_mask);
void hp_apply_momentum_p(half *weight, half *accumulate, const half *gradient, bool nesterov, float *float_addr,
                         int *int_addr);

#ifdef __cplusplus
}
#endif

#endif
