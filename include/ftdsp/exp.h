/* Exponential function.
 *
 * out = out_scale * e^(in_scale * x). `scale` has no influence of its own: in_scale already contains it. 8 and 16 bit
 * integers are truncated and saturate; 32 bit integers give float.
 *
 * c64_, c128_: complex elements, real and imaginary part in turn; lengths count complex numbers.
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, i8_, c128_. */
#ifndef EXP_OP_H
#define EXP_OP_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_exp_s(float *x, float *out, int n, float in_scale, float out_scale, int scale, int core_mask);
void fp_exp_p(float *x, float *out, int n, float in_scale, float out_scale, int scale);
void hp_exp_s(half *x, half *out, int n, float in_scale, float out_scale, int scale, int core_mask);
void hp_exp_p(half *x, half *out, int n, float in_scale, float out_scale, int scale);
void dp_exp_s(double *x, double *out, int n, float in_scale, float out_scale, int scale, int core_mask);
void dp_exp_p(double *x, double *out, int n, float in_scale, float out_scale, int scale);
void i8_exp_s(int8_t *x, int8_t *out, int n, float in_scale, float out_scale, int scale, int core_mask);
void i8_exp_p(int8_t *x, int8_t *out, int n, float in_scale, float out_scale, int scale);
void i16_exp_s(int16_t *x, int16_t *out, int n, float in_scale, float out_scale, int scale, int core_mask);
void i16_exp_p(int16_t *x, int16_t *out, int n, float in_scale, float out_scale, int scale);
void i32_exp_s(int32_t *x, float *out, int n, float in_scale, float out_scale, int scale, int core_mask);
void i32_exp_p(int32_t *x, float *out, int n, float in_scale, float out_scale, int scale);
void c64_exp_s(float *x, float *out, int n, float in_scale, float out_scale, int scale, int core_mask);
void c64_exp_p(float *x, float *out, int n, float in_scale, float out_scale, int scale);
void c128_exp_s(double *x, double *out, int n, float in_scale, float out_scale, int scale, int core_mask);
void c128_exp_p(double *x, double *out, int n, float in_scale, float out_scale, int scale);

#ifdef __cplusplus
}
#endif

#endif
