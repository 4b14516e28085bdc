/* Subtraction followed by an activation.
 *
 * subrelu   output = max(0, input0 - input1). Integers saturate
 * subrelu6  output = min(max(0, input0 - input1), 6)
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_. */
#ifndef SUBFUSION_H
#define SUBFUSION_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void i8_subrelu_s(int8_t *input0, int8_t *input1, int8_t *output, int size, int core_mask);
void i8_subrelu_p(int8_t *input0, int8_t *input1, int8_t *output, int size);
void i16_subrelu_s(int16_t *input0, int16_t *input1, int16_t *output, int size, int core_mask);
void i16_subrelu_p(int16_t *input0, int16_t *input1, int16_t *output, int size);
void i32_subrelu_s(int32_t *input0, int32_t *input1, int32_t *output, int size, int core_mask);
void i32_subrelu_p(int32_t *input0, int32_t *input1, int32_t *output, int size);
void hp_subrelu_s(half *input0, half *input1, half *output, int size, int core_mask);
void hp_subrelu_p(half *input0, half *input1, half *output, int size);
void fp_subrelu_s(float *input0, float *input1, float *output, int size, int core_mask);
void fp_subrelu_p(float *input0, float *input1, float *output, int size);

void i8_subrelu6_s(int8_t *input0, int8_t *input1, int8_t *output, int size, int core_mask);
void i8_subrelu6_p(int8_t *input0, int8_t *input1, int8_t *output, int size);
void i16_subrelu6_s(int16_t *input0, int16_t *input1, int16_t *output, int size, int core_mask);
void i16_subrelu6_p(int16_t *input0, int16_t *input1, int16_t *output, int size);
void i32_subrelu6_s(int32_t *input0, int32_t *input1, int32_t *output, int size, int core_mask);
void i32_subrelu6_p(int32_t *input0, int32_t *input1, int32_t *output, int size);
void hp_subrelu6_s(half *input0, half *input1, half *output, int size, int core_mask);
void hp_subrelu6_p(half *input0, half *input1, half *output, int size);
void fp_subrelu6_s(float *input0, float *input1, float *output, int size, int core_mask);
void fp_subrelu6_p(float *input0, float *input1, float *output, int size);

#ifdef __cplusplus
}
#endif

#endif
