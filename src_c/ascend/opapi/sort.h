/* Sorting and what sorting makes easy. */
#ifndef ASCEND_OPAPI_SORT_H
#define ASCEND_OPAPI_SORT_H

#include "ascend/opapi/families.h"

/* Stable; NaN is the greatest value. values may be NULL. */
aclnnStatus op_sort(OpCall *op, const Operand *self, int32_t axis, bool descending, const Operand *values,
                    const Operand *indices);
/* The first ones of the sorted line, as many as values has. */
aclnnStatus op_topk(OpCall *op, const Operand *self, int32_t axis, bool largest, const Operand *values,
                    const Operand *indices);
/* In the type `compute`; sorter may be NULL, and values, for the scalar. */
aclnnStatus op_sorted_search(OpCall *op, const Operand *sequence, const Operand *sorter, const Operand *values,
                             Number value, aclDataType compute, bool right, const Operand *out);
/* A sequence of one line goes with all values, else both have the same axes but the last one. */
bool op_searches_lines(const Operand *sequence, const Operand *values);
/* out = (self == scalar), or != when inverted. */
aclnnStatus op_is_in(OpCall *op, const Operand *self, const ScalarArgument *scalar, aclDataType compute, bool invert,
                     const Operand *out);
aclnnStatus op_histogram(OpCall *op, const Operand *self, double least, double greatest, const Operand *out);
/* Distinct elements (UNIQUE_FLAT) or slices along an axis, of all or of neighbours; values and counts get
 * their real shapes when the stream has run. inverse and counts may be NULL. */
enum { UNIQUE_FLAT = -1 };
aclnnStatus op_unique(OpCall *op, const Operand *self, int32_t axis, bool consecutive, const Operand *values,
                      const Operand *inverse, const Operand *counts);
/* At least so many elements. */
bool op_has_room(const Operand *operand, int64_t elements);
/* Whether there is such a dimension, counted from the end when negative; and its size: of UniqueConsecutive's dim
 * 1000, the number of elements. */
bool op_has_axis(const Operand *operand, int64_t dim);
int64_t op_items(const Operand *operand, int64_t dim);
/* -infinity where a sampler leaves scores out; p and k may be absent. */
aclnnStatus op_filter_scores(OpCall *op, const Operand *scores, const Operand *p, const Operand *k, const Operand *out);
/* A sampler's token for each row (src_c/kernels/sort/sample.h): q and least may be absent, and results may be NULL. */
typedef struct SampleCall {
    const Operand *scores, *k, *p, *q, *least, *chosen, *left, *columns, *probs;
    int64_t most;
    double eps;
    bool normalized;
} SampleCall;
aclnnStatus op_sample_tokens(OpCall *op, const SampleCall *call);
Shape op_shape_first(OpCall *op, const Operand *self, int32_t axis, int64_t count);

#endif
