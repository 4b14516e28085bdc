/* Stochastic gradient descent on elements start … end-1, in place.
 *
 * h = g + weight_decay * weight; accumulate = moment * accumulate + (1 - dampening) * h;
 * weight -= learning_rate * (nesterov ? accumulate * moment + h : accumulate).
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef SGD_OP_H
#define SGD_OP_H

#include "ftdsp_half.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_sgd_s(float *weight, float *accumulate, const float *gradient, float learning_rate, float dampening,
              float moment, bool nesterov, float weight_decay, int start, int end, int core_mask);
void fp_sgd_p(float *weight, float *accumulate, const float *gradient, float learning_rate, float dampening,
              float moment, bool nesterov, float weight_decay, int start, int end);
void hp_sgd_s(half *weight, half *accumulate, const half *gradient, float learning_rate, float dampening,
              float moment, bool nesterov, float weight_decay, int start, int end, int core_mask);
void hp_sgd_p(half *weight, half *accumulate, const half *gradient, float learning_rate, float dampening,
              float moment, bool nesterov, float weight_decay, int start, int end);

#ifdef __cplusplus
}
#endif

#endif
