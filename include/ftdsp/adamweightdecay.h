/* Adam step with decoupled weight decay on elements start … end-1, in place.
 *
 * m = m * beta1 + g * (1 - beta1); v = v * beta2 + g^2 * (1 - beta2);
 * var -= lr * (m / (sqrt(v) + epsilon) + decay * var). There is no bias correction.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef ADAMWEIGHTDECAY_H
#define ADAMWEIGHTDECAY_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_adamweightdecay_s(float *var, float *m, float *v, const float *gradient, float lr, float beta1, float beta2,
                          float epsilon, float decay, int start, int end, int core_mask);
void fp_adamweightdecay_p(float *var, float *m, float *v, const float *gradient, float lr, float beta1, float beta2,
                          float epsilon, float decay, int start, int end);
void hp_adamweightdecay_s(half *var, half *m, half *v, const half *gradient, float lr, float beta1, float beta2,
                          float epsilon, float decay, int start, int end, int core_mask);
void hp_adamweightdecay_p(half *var, half *m, half *v, const half *gradient, float lr, float beta1, float beta2,
                          float epsilon, float decay, int start, int end);

#ifdef __cplusplus
}
#endif

#endif
