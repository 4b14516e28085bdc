/* Sums of integers as the numbers that they stand for, and products of numbers as integers. */
#ifndef UNDERSTUDY_QUANTIZE_SUMS_H
#define UNDERSTUDY_QUANTIZE_SUMS_H

#include "kernels/kernels.h"

/* out = x * column[n] * row[m] + bias[n], a bias of integers added before the factors; in float64, rounded once.
 * views: x [m, n] (int32), column [n], out [m, n]; then, or absent: row [m], bias [n]. */
Kernel us_dequantize_sums;

/* c = (a b + summand) * scale of matrices of int8, as us_quantized_product with one number for all columns.
 * views: a [batch…, m, k], b [batch…, k, n], c [batch…, m, n], summand? [batch…, 1, n]. */
typedef struct ScaledProduct {
    float scale;
} ScaledProduct;
Kernel us_scaled_product;

/* c = the nearest integers, ties to even, of (a b + summand) * scale + offset, a product with its summand in float32.
 * views: a [batch…, m, k], b [batch…, k, n], scale (float32) and c [batch…, m, n]; then, or absent: summand [batch…, m, n],
 * and 64 bits [n] in which the offset is (parameters.h). */
Kernel us_quantize_product;

#endif
