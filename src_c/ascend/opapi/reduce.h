/* Reductions, scans, and what is made of them. */
#ifndef ASCEND_OPAPI_REDUCE_H
#define ASCEND_OPAPI_REDUCE_H

#include "ascend/opapi/families.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scan/scan.h"

/* Axes of a result from all elements. */
#define ALL_AXES UINT32_MAX
/* Of [N, C, space...] those of the space. */
#define SPACE_AXES (ALL_AXES & ~UINT32_C(3))

/* outputs = reduction of `from` over `axes`, computed in `compute`. Outputs have the shape without these axes, with
 * them as 1, or, of a single result, [] or [1]; those that are NULL are not wanted. */
aclnnStatus op_reduce(OpCall *op, const Reduction *reduction, const Operand *from, uint32_t axes, aclDataType compute,
                      Operands outputs, int32_t number_count, const Number *numbers);
/* Of integers: their sum over their number in double, cut to an integer. */
aclnnStatus op_mean(OpCall *op, const Operand *from, uint32_t axes, aclDataType compute, const Operand *out);
/* Divided by the number of elements less the correction; outputs: variance or its root, and the mean. */
aclnnStatus op_variance(OpCall *op, const Reduction *reduction, const Operand *from, uint32_t axes, double correction,
                        Operands outputs);
/* Element (n - 1) / 2 of n in ascending order; outputs: values and, if wanted, positions. */
aclnnStatus op_median(OpCall *op, const Operand *from, uint32_t axes, bool skips_nan, Operands outputs);
/* Element k - 1 in ascending order, NaN the greatest; outputs: values and positions. */
aclnnStatus op_kth_value(OpCall *op, const Operand *from, int64_t k, int32_t axis, Operands outputs);
/* (sum |x|^p)^(1/p); p = 0 counts what is not 0, inf and -inf give the largest and the smallest |x|. */
aclnnStatus op_norm(OpCall *op, const Operand *from, const ScalarArgument *p, uint32_t axes, aclDataType compute,
                    const Operand *out);
/* out = formula(formula(list[0], list[1]), list[2]) …, broadcast, rounded once. */
aclnnStatus op_fold(OpCall *op, const MapFormula *formula, Operands list, const Operand *out);
Shape op_shape_joint(OpCall *op, Operands list);
/* out[i] = norm of all elements of from[i]. */
aclnnStatus op_norm_lists(OpCall *op, Operands from, const ScalarArgument *p, Operands out);

/* None of these axes of the operand has size 0 (name/empty). */
void require_elements_along(OpCall *op, const Operand *operand, uint32_t axes, const char *name);
/* The operand has the type of the list's first tensor (same-dtype). */
void require_list_type(OpCall *op, const Operand *operand, Operands list);
/* Every tensor of the list has one element (LIST/elements). */
void require_single_items(OpCall *op, Operands list);

/* No dims, and that means that nothing is reduced. */
bool op_is_noop(IntArguments dims, bool noop_with_empty_dims);
/* The shape of a reduction over dims, none of which are all of them, or with such a noop none. */
Shape op_shape_reduced_unless(OpCall *op, const Operand *from, IntArguments dims, bool keep_dims, bool noop);

/* The shape with 1 for every axis of the space. */
Shape op_shape_globally_pooled(OpCall *op, const Operand *from);

/* Outputs: values and, of scans that have it, the index. */
aclnnStatus op_scan(OpCall *op, const Scan *scan, const Operand *from, int32_t axis, aclDataType compute,
                    bool exclusive, bool reverse, Operands outputs);

/* out = whether both have one shape and equal elements, compared in `compute`. */
aclnnStatus op_equal(OpCall *op, const Operand *a, const Operand *b, aclDataType compute, const Operand *out);
/* 0 where they are equal, else 503 (page of aclnnPrecisionCompare). */
aclnnStatus op_compare_precision(OpCall *op, const Operand *golden, const Operand *found, const Operand *out);

/* *found = 1 if any element of the list is infinite or NaN; then each is multiplied by *scale. */
aclnnStatus op_unscale(OpCall *op, Operands list, const Operand *found, const Operand *scale);

#endif
