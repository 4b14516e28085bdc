/* Momentum step on elements start … end-1, in place.
 *
 * accumulate = moment * accumulate + g; weight -= learning_rate * (nesterov ? accumulate * moment + g : accumulate).
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef APPLYMOMENTUM_H
#define APPLYMOMENTUM_H

#include "ftdsp_half.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_applymomentum_s(float *weight, float *accumulate, const float *gradient, float learning_rate, float moment,
                        bool nesterov, int start, int end, int core_mask);
void fp_applymomentum_p(float *weight, float *accumulate, const float *gradient, float learning_rate, float moment,
                        bool nesterov, int start, int end);
void hp_applymomentum_s(half *weight, half *accumulate, const half *gradient, float learning_rate, float moment,
                        bool nesterov, int start, int end, int core_mask);
void hp_applymomentum_p(half *weight, half *accumulate, const half *gradient, float learning_rate, float moment,
                        bool nesterov, int start, int end);

#ifdef __cplusplus
}
#endif

#endif
