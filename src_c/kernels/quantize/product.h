/* Products of matrices of small integers that stand for real numbers. */
#ifndef UNDERSTUDY_QUANTIZED_PRODUCT_H
#define UNDERSTUDY_QUANTIZED_PRODUCT_H

#include "kernels/quantize/nibbles.h"

/* Both matrices hold integers. Their products are summed exactly, the rest is computed in float64 in this order:
 *   part[g]  = (A - zero_a) B over group g of the depth (+ summand, in the first)
 *              - (sum of A's row over g) * zero[g, column]
 *   total    = sum of part[g] * row_scale[row, g] * column_scale[g, column], the groups in turn
 *   C        = (total + shift[column]) * row_scale[row] + addend[column]
 * row_scale counts in the second line where it has a column for every group, in the third where it has one. A scaled zero
 * is added instead, after the column scale: + (sum of A's row over g) * zero[g, column]. Integer results round to the
 * nearest, ties to even, and saturate.
 * Views: A [batch…, m, k], B [batch…, k, n], column_scale [batch…, groups, n / scale_columns], C [batch…, m, n]; then,
 * or absent: summand [batch…, 1, n], row_scale [batch…, m, 1 or groups], zero [batch…, groups, n], shift and addend
 * [batch…, 1, n]. All of one batch, by strides of 0. */
typedef struct QuantizedProduct {
    int64_t group;             /* of the depth; the last may be shorter */
    int64_t scale_columns;     /* neighbours that share a column scale */
    int32_t packed_a, packed_b; /* the axis along which a byte has two numbers (nibbles.h), or NOT_PACKED */
    int32_t zero_a;             /* but 0: there is neither a batch nor a summand */
    bool scaled_zero;
} QuantizedProduct;
Kernel us_quantized_product;

/* Only the weight holds integers: y = x ((weight + offset) * scale) + bias, or, with a quant_scale, that times
 * quant_scale plus quant_offset, rounded to the nearest integer. Computed in float32; one scale of all the depth may come after
 * the sum.
 * Views: x [m, k], weight [k, n], scale [groups, n], y [m, n]; then, or absent: offset [groups, n], bias, quant_scale
 * and quant_offset [1, n]; one of uint64 is in bits of parameters.h. */
typedef struct WeightProduct {
    int64_t group;
    int32_t packed; /* the axis of weight, or NOT_PACKED */
} WeightProduct;
Kernel us_quantized_weight_product;

#endif
