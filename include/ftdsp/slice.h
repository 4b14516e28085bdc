/* Copies a box out of an array.
 *
 * output has shape size: elements begin[d] … begin[d] + size[d] - 1 of each axis d.
 *
 * c64_, c128_: complex elements, real and imaginary part in turn; lengths count complex numbers.
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, i8_, c128_. */
#ifndef SLICE_OP_H
#define SLICE_OP_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_slice_s(float *input, float *output, int *input_shape, int ndim, int *begin, int *size, int core_mask);
void fp_slice_p(float *input, float *output, int *input_shape, int ndim, int *begin, int *size);
void hp_slice_s(half *input, half *output, int *input_shape, int ndim, int *begin, int *size, int core_mask);
void hp_slice_p(half *input, half *output, int *input_shape, int ndim, int *begin, int *size);
void dp_slice_s(double *input, double *output, int *input_shape, int ndim, int *begin, int *size, int core_mask);
void dp_slice_p(double *input, double *output, int *input_shape, int ndim, int *begin, int *size);
void i8_slice_s(int8_t *input, int8_t *output, int *input_shape, int ndim, int *begin, int *size, int core_mask);
void i8_slice_p(int8_t *input, int8_t *output, int *input_shape, int ndim, int *begin, int *size);
void i16_slice_s(int16_t *input, int16_t *output, int *input_shape, int ndim, int *begin, int *size, int core_mask);
void i16_slice_p(int16_t *input, int16_t *output, int *input_shape, int ndim, int *begin, int *size);
void i32_slice_s(int32_t *input, int32_t *output, int *input_shape, int ndim, int *begin, int *size, int core_mask);
void i32_slice_p(int32_t *input, int32_t *output, int *input_shape, int ndim, int *begin, int *size);
void c64_slice_s(float *input, float *output, int *input_shape, int ndim, int *begin, int *size, int core_mask);
void c64_slice_p(float *input, float *output, int *input_shape, int ndim, int *begin, int *size);
void c128_slice_s(double *input, double *output, int *input_shape, int ndim, int *begin, int *size, int core_mask);
void c128_slice_p(double *input, double *output, int *input_shape, int ndim, int *begin, int *size);

#ifdef __cplusplus
}
#endif

#endif
