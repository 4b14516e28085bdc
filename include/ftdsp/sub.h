/* Element-wise difference.
 *
 * out = x - y over n elements. Integers saturate.
 *
 * c64_, c128_: complex elements, real and imaginary part in turn; lengths count complex numbers.
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, i8_, c128_. */
#ifndef SUB_OP_H
#define SUB_OP_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_sub_s(float *x, float *y, float *out, int n, int core_mask);
void fp_sub_p(float *x, float *y, float *out, int n);
void hp_sub_s(half *x, half *y, half *out, int n, int core_mask);
void hp_sub_p(half *x, half *y, half *out, int n);
void dp_sub_s(double *x, double *y, double *out, int n, int core_mask);
void dp_sub_p(double *x, double *y, double *out, int n);
void i8_sub_s(int8_t *x, int8_t *y, int8_t *out, int n, int core_mask);
void i8_sub_p(int8_t *x, int8_t *y, int8_t *out, int n);
void i16_sub_s(int16_t *x, int16_t *y, int16_t *out, int n, int core_mask);
void i16_sub_p(int16_t *x, int16_t *y, int16_t *out, int n);
void i32_sub_s(int32_t *x, int32_t *y, int32_t *out, int n, int core_mask);
void i32_sub_p(int32_t *x, int32_t *y, int32_t *out, int n);
void c64_sub_s(float *x, float *y, float *out, int n, int core_mask);
void c64_sub_p(float *x, float *y, float *out, int n);
void c128_sub_s(double *x, double *y, double *out, int n, int core_mask);
void c128_sub_p(double *x, double *y, double *out, int n);

#ifdef __cplusplus
}
#endif

#endif
