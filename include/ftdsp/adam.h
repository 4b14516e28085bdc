/* Adam step on elements start … end-1, in place.
 *
 * r = learning_rate * sqrt(1 - beta2_power) / (1 - beta1_power); m += (g - m) * (1 - beta1); v += (g^2 - v) * (1 -
 * beta2); weight -= r * (nesterov ? m * beta1 + (1 - beta1) * g : m) / (sqrt(v) + eps). The powers are read, not
 * changed.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2. */
#ifndef ADAM_OP_H
#define ADAM_OP_H

#ifdef __cplusplus
extern "C" {
#endif

void fp_adam_s(float *m, float *v, const float *gradient, float *weight, float beta1, float beta2,
               float *beta1_power, float *beta2_power, float eps, float learning_rate, int nesterov, int start,
               int end, int core_mask);
void fp_adam_p(float *m, float *v, const float *gradient, float *weight, float beta1, float beta2,
               float *beta1_power, float *beta2_power, float eps, float learning_rate, int nesterov, int start,
               int end);

#ifdef __cplusplus
}
#endif

#endif
