/* Gated linear unit.
 *
 * The input is cut in two along split_dim; out_data = first half * sigmoid(second half), of len elements. split_data:
 * two arrays of len elements, which receive the halves. input_shape and strides have ndim entries, strides being those
 * of a row-major array, in elements. num_split is 2, and both split_sizes are half of input_shape[split_dim]. int8
 * values are plain numbers. No two arrays may overlap.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_. */
#ifndef GLU_H
#define GLU_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void i8_glu_s(int8_t *in_data, int8_t **split_data, int8_t *out_data, int ndim, int split_dim, int *input_shape,
              int num_split, int *split_sizes, int *strides, int len, int core_mask);
void i8_glu_p(int8_t *in_data, int8_t **split_data, int8_t *out_data, int ndim, int split_dim, int *input_shape,
              int num_split, int *split_sizes, int *strides, int len);
void hp_glu_s(half *in_data, half **split_data, half *out_data, int ndim, int split_dim, int *input_shape,
              int num_split, int *split_sizes, int *strides, int len, int core_mask);
void hp_glu_p(half *in_data, half **split_data, half *out_data, int ndim, int split_dim, int *input_shape,
              int num_split, int *split_sizes, int *strides, int len);
void fp_glu_s(float *in_data, float **split_data, float *out_data, int ndim, int split_dim, int *input_shape,
              int num_split, int *split_sizes, int *strides, int len, int core_mask);
void fp_glu_p(float *in_data, float **split_data, float *out_data, int ndim, int split_dim, int *input_shape,
              int num_split, int *split_sizes, int *strides, int len);

#ifdef __cplusplus
}
#endif

#endif
