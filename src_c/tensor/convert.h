/* Element conversion. Scalar forms for single values, array forms that vectorise.
 * fp32 -> fp16/bf16 rounds to nearest, ties to even, keeps subnormals, overflows to infinity and keeps NaN a (quiet) NaN;
 * fp16/bf16 -> fp32 is exact. Integer and bool values go through the C conversion rules (float -> int truncates). */
#ifndef UNDERSTUDY_CONVERT_H
#define UNDERSTUDY_CONVERT_H

#include "tensor/view.h"

/* Scalar forms (static inline, always inlined so that loops over them vectorise):
 *   uint32_t float_bits(float), float bits_float(uint32_t), float half_to_float(uint16_t), uint16_t float_to_half(float),
 *   float bfloat_to_float(uint16_t), uint16_t float_to_bfloat(float) */

/* Reads `count` elements of `dtype`, `stride` elements apart, into unit-stride float (or double), and back. Complex types
 * are not handled. */
void us_load_float(float *to, const void *from, DType dtype, int64_t stride, int64_t count);
void us_load_double(double *to, const void *from, DType dtype, int64_t stride, int64_t count);
void us_store_float(void *to, DType dtype, int64_t stride, const float *from, int64_t count);
void us_store_double(void *to, DType dtype, int64_t stride, const double *from, int64_t count);

#endif
