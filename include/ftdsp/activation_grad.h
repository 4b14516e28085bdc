/* Gradients of activation functions: dst = src0 * f'(src1), over length elements.
 *
 * relu_grad     f' is 1 where src1 > 0, else 0
 * relu6_grad    f' is 1 where 0 < src1 <= 6, else 0
 * sigmoid_grad  src1 is the forward output: f' = src1 * (1 - src1)
 * tanh_grad     src1 is the forward output: f' = 1 - src1^2
 * hsigmoid      f' is 1/6 where -3 < src1 < 3, else 0
 * hswish        f' is 0 below -3, 1 above 3, else (2 * src1 + 3) / 6
 * gelu          f' of src1 * Phi(src1), Phi the normal distribution
 * softplus      f' is the sigmoid of src1
 * l_relu_grad   f' is 1 where src1 > 0, else alpha
 * elu           f' is 1 where src1 > 0, else alpha * e^src1
 * hardshrink    f' is 0 where -lambd <= src1 <= lambd, else 1
 * softshrink    f' is 0 where -lambd <= src1 <= lambd, else 1
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef ACTIVATION_GRAD_H
#define ACTIVATION_GRAD_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_relu_grad_s(float *src0, float *src1, float *dst, int length, int core_mask);
void fp_relu_grad_p(float *src0, float *src1, float *dst, int length);
void hp_relu_grad_s(half *src0, half *src1, half *dst, int length, int core_mask);
void hp_relu_grad_p(half *src0, half *src1, half *dst, int length);

void fp_relu6_grad_s(float *src0, float *src1, float *dst, int length, int core_mask);
void fp_relu6_grad_p(float *src0, float *src1, float *dst, int length);
void hp_relu6_grad_s(half *src0, half *src1, half *dst, int length, int core_mask);
void hp_relu6_grad_p(half *src0, half *src1, half *dst, int length);

void fp_sigmoid_grad_s(float *src0, float *src1, float *dst, int length, int core_mask);
void fp_sigmoid_grad_p(float *src0, float *src1, float *dst, int length);
void hp_sigmoid_grad_s(half *src0, half *src1, half *dst, int length, int core_mask);
void hp_sigmoid_grad_p(half *src0, half *src1, half *dst, int length);

void fp_tanh_grad_s(float *src0, float *src1, float *dst, int length, int core_mask);
void fp_tanh_grad_p(float *src0, float *src1, float *dst, int length);
void hp_tanh_grad_s(half *src0, half *src1, half *dst, int length, int core_mask);
void hp_tanh_grad_p(half *src0, half *src1, half *dst, int length);

void fp_hsigmoid_s(float *src0, float *src1, float *dst, int length, int core_mask);
void fp_hsigmoid_p(float *src0, float *src1, float *dst, int length);
void hp_hsigmoid_s(half *src0, half *src1, half *dst, int length, int core_mask);
void hp_hsigmoid_p(half *src0, half *src1, half *dst, int length);

void fp_hswish_s(float *src0, float *src1, float *dst, int length, int core_mask);
void fp_hswish_p(float *src0, float *src1, float *dst, int length);
void hp_hswish_s(half *src0, half *src1, half *dst, int length, int core_mask);
void hp_hswish_p(half *src0, half *src1, half *dst, int length);

void fp_gelu_s(float *src0, float *src1, float *dst, int length, int core_mask);
void fp_gelu_p(float *src0, float *src1, float *dst, int length);
void hp_gelu_s(half *src0, half *src1, half *dst, int length, int core_mask);
void hp_gelu_p(half *src0, half *src1, half *dst, int length);

void fp_softplus_s(float *src0, float *src1, float *dst, int length, int core_mask);
void fp_softplus_p(float *src0, float *src1, float *dst, int length);
void hp_softplus_s(half *src0, half *src1, half *dst, int length, int core_mask);
void hp_softplus_p(half *src0, half *src1, half *dst, int length);

void fp_l_relu_grad_s(float *src0, float *src1, float *dst, int length, float alpha, int core_mask);
void fp_l_relu_grad_p(float *src0, float *src1, float *dst, int length, float alpha);
void hp_l_relu_grad_s(half *src0, half *src1, half *dst, int length, float alpha, int core_mask);
void hp_l_relu_grad_p(half *src0, half *src1, half *dst, int length, float alpha);

void fp_elu_s(float *src0, float *src1, float *dst, int length, float alpha, int core_mask);
void fp_elu_p(float *src0, float *src1, float *dst, int length, float alpha);
void hp_elu_s(half *src0, half *src1, half *dst, int length, float alpha, int core_mask);
void hp_elu_p(half *src0, half *src1, half *dst, int length, float alpha);

void fp_hardshrink_s(float *src0, float *src1, float *dst, int length, float lambd, int core_mask);
void fp_hardshrink_p(float *src0, float *src1, float *dst, int length, float lambd);
void hp_hardshrink_s(half *src0, half *src1, half *dst, int length, float lambd, int core_mask);
void hp_hardshrink_p(half *src0, half *src1, half *dst, int length, float lambd);

void fp_softshrink_s(float *src0, float *src1, float *dst, int length, float lambd, int core_mask);
void fp_softshrink_p(float *src0, float *src1, float *dst, int length, float lambd);
void hp_softshrink_s(half *src0, half *src1, half *dst, int length, float lambd, int core_mask);
void hp_softshrink_p(half *src0, half *src1, half *dst, int length, float lambd);

#ifdef __cplusplus
}
#endif

#endif
