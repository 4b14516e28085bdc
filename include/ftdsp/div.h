/* Element-wise quotient.
 *
 * out = x / y over n elements. optimize != 0: one operand is a single number for all elements, x if first_scalar != 0,
 * else y; n stays the number of results. hp_ has neither. Integers are truncated towards zero and saturate; x / 0 gives
 * the largest or smallest number of x's sign, 0 / 0 gives 0.
 *
 * c64_, c128_: complex elements, real and imaginary part in turn; lengths count complex numbers.
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, i8_, c128_. */
#ifndef DIV_OP_H
#define DIV_OP_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_div_s(float *x, float *y, float *out, int n, int optimize, int first_scalar, int core_mask);
void fp_div_p(float *x, float *y, float *out, int n, int optimize, int first_scalar);
void hp_div_s(half *x, half *y, half *out, int n, int core_mask);
void hp_div_p(half *x, half *y, half *out, int n);
void dp_div_s(double *x, double *y, double *out, int n, int optimize, int first_scalar, int core_mask);
void dp_div_p(double *x, double *y, double *out, int n, int optimize, int first_scalar);
void i8_div_s(int8_t *x, int8_t *y, int8_t *out, int n, int optimize, int first_scalar, int core_mask);
void i8_div_p(int8_t *x, int8_t *y, int8_t *out, int n, int optimize, int first_scalar);
void i16_div_s(int16_t *x, int16_t *y, int16_t *out, int n, int optimize, int first_scalar, int core_mask);
void i16_div_p(int16_t *x, int16_t *y, int16_t *out, int n, int optimize, int first_scalar);
void i32_div_s(int32_t *x, int32_t *y, int32_t *out, int n, int optimize, int first_scalar, int core_mask);
void i32_div_p(int32_t *x, int32_t *y, int32_t *out, int n, int optimize, int first_scalar);
void c64_div_s(float *x, float *y, float *out, int n, int optimize, int first_scalar, int core_mask);
void c64_div_p(float *x, float *y, float *out, int n, int optimize, int first_scalar);
void c128_div_s(double *x, double *y, double *out, int n, int optimize, int first_scalar, int core_mask);
void c128_div_p(double *x, double *y, double *out, int n, int optimize, int first_scalar);

#ifdef __cplusplus
}
#endif

#endif
