/* Joins arrays of one shape along a new axis.
 *
 * input_shape has input_ndim entries; the new axis stands before axis `axis`, 0 <= axis <= input_ndim.
 *
 * c64_, c128_: complex elements, real and imaginary part in turn; lengths count complex numbers.
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, i8_, c128_. */
#ifndef STACK_OP_H
#define STACK_OP_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_stack_s(float *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, float *output,
                int core_mask);
void fp_stack_p(float *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, float *output);
void hp_stack_s(half *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, half *output,
                int core_mask);
void hp_stack_p(half *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, half *output);
void dp_stack_s(double *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, double *output,
                int core_mask);
void dp_stack_p(double *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, double *output);
void i8_stack_s(int8_t *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, int8_t *output,
                int core_mask);
void i8_stack_p(int8_t *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, int8_t *output);
void i16_stack_s(int16_t *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, int16_t *output,
                 int core_mask);
void i16_stack_p(int16_t *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, int16_t *output);
void i32_stack_s(int32_t *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, int32_t *output,
                 int core_mask);
void i32_stack_p(int32_t *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, int32_t *output);
void c64_stack_s(float *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, float *output,
                 int core_mask);
void c64_stack_p(float *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, float *output);
void c128_stack_s(double *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, double *output,
                  int core_mask);
void c128_stack_p(double *inputs[], int *input_shape, int num_inputs, int axis, int input_ndim, double *output);

#ifdef __cplusplus
}
#endif

#endif
