/* Operators by index tensors: look-up, replacement, sums at places, and elements that are not zero. */
#ifndef ASCEND_OPAPI_INDEX_H
#define ASCEND_OPAPI_INDEX_H

#include "ascend/opapi/families.h"

/* Advanced indexing: entry k of `indices` indexes axis k of self, or, a bool mask, as many axes as it has. Entries that are
 * not given, and empty ones of another type (what PyTorch's adapter passes for `:`), leave their axis whole. The axes of
 * the joint index come where the indexed axes are, or first when these are not neighbours. */
void require_indices(OpCall *op, const Operand *self, Operands indices); /* dtype, length, mask, broadcast */
/* The size that masks decide is out's. */
Shape op_shape_indexed(OpCall *op, const Operand *self, Operands indices, const Operand *out);
aclnnStatus op_index(OpCall *op, const Operand *self, Operands indices, const Operand *out);
/* values broadcast to self[indices] (values/shape). */
void require_indexed_values(OpCall *op, const Operand *self, Operands indices, const Operand *values);
aclnnStatus op_index_put(OpCall *op, const Operand *self, Operands indices, const Operand *values, bool accumulate);

/* out = slices of self along the axis; the axes of index, of any rank, stand in its place; an index of rank 0 counts as
 * one of shape [1]. */
Shape op_shape_picked(OpCall *op, const Operand *self, int32_t axis, const Operand *index);
aclnnStatus op_index_select(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *out);
/* out[p] = self[p with index[p] at the axis]. */
aclnnStatus op_gather(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *out);
/* out = self, then out[p with index[p] at the axis] is replaced (reduce 0), added to (1) or multiplied by (2) src[p], or the
 * value where src is NULL. out may be self. */
aclnnStatus op_scatter(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *src,
                       Number value, int64_t reduce, const Operand *out);
/* index has the operand's rank and is not larger in any dimension, but for an axis (-1: none). */
bool op_fits_in(const Operand *index, const Operand *operand, int32_t but_axis);
/* dim as an axis; -1 where there is no such dimension. */
int32_t op_axis(int64_t dim, const Operand *operand);
bool op_sizes_below(const Operand *operand, int64_t limit);
bool op_is_complex(aclDataType dtype);

/* Data decide how many: out has room for all, and the tensor gets its real shape when the stream has run. */
aclnnStatus op_nonzero(OpCall *op, const Operand *self, const Operand *out, bool columns);
aclnnStatus op_masked_select(OpCall *op, const Operand *self, const Operand *mask, Shape joint, const Operand *out);

#endif
