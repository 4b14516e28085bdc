/* Arithmetic sequence.
 *
 * out[i] = start + i * delta. Integers saturate.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, i8_. */
#ifndef RANGE_OP_H
#define RANGE_OP_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_range_s(float *out, float start, float delta, int n, int core_mask);
void fp_range_p(float *out, float start, float delta, int n);
void hp_range_s(half *out, float start, float delta, int n, int core_mask);
void hp_range_p(half *out, float start, float delta, int n);
void dp_range_s(double *out, double start, double delta, int n, int core_mask);
void dp_range_p(double *out, double start, double delta, int n);
void i8_range_s(int8_t *out, int start, int delta, int n, int core_mask);
void i8_range_p(int8_t *out, int start, int delta, int n);
void i16_range_s(int16_t *out, int start, int delta, int n, int core_mask);
void i16_range_p(int16_t *out, int start, int delta, int n);
void i32_range_s(int32_t *out, int start, int delta, int n, int core_mask);
void i32_range_p(int32_t *out, int start, int delta, int n);

#ifdef __cplusplus
}
#endif

#endif
