/* Adds one bias per channel.
 *
 * dims has shape_size >= 2 entries. The channels are axis 1 for data_format "NCHW", the last axis for "NHWC". length:
 * the number of elements, the product of dims. Integers saturate.
 *
 * c64_, c128_: complex elements, real and imaginary part in turn; lengths count complex numbers.
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_, dp_, c128_. */
#ifndef BIASADD_H
#define BIASADD_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void i8_biasadd_s(int8_t *input_x, int8_t *input_bias, int8_t *output, int *dims, int shape_size, char *data_format,
                  int length, int core_mask);
void i8_biasadd_p(int8_t *input_x, int8_t *input_bias, int8_t *output, int *dims, int shape_size, char *data_format,
                  int length);
void i16_biasadd_s(int16_t *input_x, int16_t *input_bias, int16_t *output, int *dims, int shape_size,
                   char *data_format, int length, int core_mask);
void i16_biasadd_p(int16_t *input_x, int16_t *input_bias, int16_t *output, int *dims, int shape_size,
                   char *data_format, int length);
void i32_biasadd_s(int32_t *input_x, int32_t *input_bias, int32_t *output, int *dims, int shape_size,
                   char *data_format, int length, int core_mask);
void i32_biasadd_p(int32_t *input_x, int32_t *input_bias, int32_t *output, int *dims, int shape_size,
                   char *data_format, int length);
void fp_biasadd_s(float *input_x, float *input_bias, float *output, int *dims, int shape_size, char *data_format,
                  int length, int core_mask);
void fp_biasadd_p(float *input_x, float *input_bias, float *output, int *dims, int shape_size, char *data_format,
                  int length);
void hp_biasadd_s(half *input_x, half *input_bias, half *output, int *dims, int shape_size, char *data_format,
                  int length, int core_mask);
void hp_biasadd_p(half *input_x, half *input_bias, half *output, int *dims, int shape_size, char *data_format,
                  int length);
void dp_biasadd_s(double *input_x, double *input_bias, double *output, int *dims, int shape_size, char *data_format,
                  int length, int core_mask);
void dp_biasadd_p(double *input_x, double *input_bias, double *output, int *dims, int shape_size, char *data_format,
                  int length);
void c64_biasadd_s(float *input_x, float *input_bias, float *output, int *dims, int shape_size, char *data_format,
                   int length, int core_mask);
void c64_biasadd_p(float *input_x, float *input_bias, float *output, int *dims, int shape_size, char *data_format,
                   int length);
void c128_biasadd_s(double *input_x, double *input_bias, double *output, int *dims, int shape_size, char *data_format,
                   int length, int core_mask);
void c128_biasadd_p(double *input_x, double *input_bias, double *output, int *dims, int shape_size, char *data_format,
                   int length);

#ifdef __cplusplus
}
#endif

#endif
