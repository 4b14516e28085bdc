/* Operators by index tensors: look-up, replacement, sums at places, and elements that are not zero. */
#ifndef ASCEND_OPAPI_INDEX_H
#define ASCEND_OPAPI_INDEX_H

#include "ascend/opapi/shapes.h"

/* Advanced indexing: entry k of `indices` indexes axis k of self, or, a bool mask, as many axes as it has. Entries
 * that are not given, and empty ones of another type, or of self's beside others (what PyTorch's adapter passes for
 * `:`), leave their axis whole. The axes of the joint index come where the indexed axes are, or first when these are no
 * neighbours. */
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
/* out = self, then out[p with index[p] at the axis] is replaced (reduce 0), added to (1) or multiplied by (2)
 * src[p], or the value where src is NULL. out may be self. */
aclnnStatus op_scatter(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *src,
                       Number value, int64_t reduce, const Operand *out);
/* source has self's rank and sizes, but along the axis one slice for each element of index, which has rank 0 or 1;
 * or it has one element, as index. */
bool op_slices_fit(const Operand *self, int32_t axis, const Operand *index, const Operand *source);
/* out = self, with alpha * slice i of source added to slice index[i], or in its place. out may be self. */
aclnnStatus op_index_add(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *source,
                         Number alpha, const Operand *out);
aclnnStatus op_index_copy(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *source,
                          const Operand *out);
/* The same with a value in the slices, and indices of the host, which require_each_inside checks (index/range). */
void require_each_inside(OpCall *op, const Operand *self, int32_t axis, IntArguments index);
aclnnStatus op_index_fill(OpCall *op, const Operand *self, int32_t axis, IntArguments index, Number value,
                          const Operand *out);
/* And with a tensor of indices, of which those outside the axis are left out. */
aclnnStatus op_index_fill_inside(OpCall *op, const Operand *self, int32_t axis, const Operand *index, Number value,
                                 const Operand *out);

/* The last axis of indices holds coordinates of self's first axes: shape of what they name. Also refuses what does
 * not fit (indices/shape). */
Shape op_shape_named(OpCall *op, const Operand *self, const Operand *indices);
aclnnStatus op_gather_nd(OpCall *op, const Operand *self, const Operand *indices, bool from_end, const Operand *out);
/* out = data with updates at the places; out may be data. */
aclnnStatus op_scatter_nd(OpCall *op, const Operand *data, const Operand *indices, const Operand *updates,
                          const Operand *out);
/* data += updates there. updates has the shape of what the last axis of indices names, or, where the indices are of the
 * first axis alone, indices.shape + data.shape[1:]. */
bool op_adds_fit(const Operand *data, const Operand *indices, const Operand *updates);
aclnnStatus op_scatter_nd_add(OpCall *op, const Operand *data, const Operand *indices, const Operand *updates);
/* out = elements of self in row-major order. */
aclnnStatus op_take(OpCall *op, const Operand *self, const Operand *index, const Operand *out);
/* Those elements of self are replaced by source's, or added to; source has as many elements as index. */
aclnnStatus op_put(OpCall *op, const Operand *self, const Operand *index, const Operand *source, bool accumulate);
/* Only the first size of self may be 0. */
void require_filled(OpCall *op, const Operand *self);
/* The last `axes` of large have as many elements as those of small, at least. */
void require_places(OpCall *op, const Operand *small, const Operand *large, int32_t axes);
/* out = 0, but self at the places that indices, of self's shape, count in out's last `axes`, row-major; and what slopes
 * has there. */
aclnnStatus op_unpool(OpCall *op, const Operand *self, const Operand *indices, int32_t axes, const Operand *out);
aclnnStatus op_unpool_backward(OpCall *op, const Operand *slopes, const Operand *indices, int32_t axes,
                               const Operand *out);
/* self's shape with an axis of `classes` more, at `axis` (-1: the last one). */
Shape op_shape_one_hot(OpCall *op, const Operand *self, int64_t classes, int64_t axis);
/* out = on where the place on that axis is self's element, else off, each the first element of its tensor. */
aclnnStatus op_one_hot(OpCall *op, const Operand *self, int64_t axis, const Operand *on, const Operand *off,
                       const Operand *out);
/* The elements of self where mask (broadcast to it) is true become those of source, in order. */
aclnnStatus op_masked_scatter(OpCall *op, const Operand *self, const Operand *mask, const Operand *source);
/* out[self[i]] = sum of the weights[i], or of ones. */
aclnnStatus op_bincount(OpCall *op, const Operand *self, const Operand *weights, const Operand *out);

/* index has the operand's rank and is not larger in any dimension, but for an axis (-1: none). */
bool op_fits_in(const Operand *index, const Operand *operand, int32_t but_axis);
/* What mode 0 of IndexAddV2 is for: matrices along their first dimension, of some types. */
bool op_adds_fast(const Operand *self, int32_t axis);

/* Data decide how many: out has room for all, and the tensor gets its real shape when the stream has run. */
aclnnStatus op_nonzero(OpCall *op, const Operand *self, const Operand *out, bool columns);
aclnnStatus op_masked_select(OpCall *op, const Operand *self, const Operand *mask, Shape joint, const Operand *out);

/* Entries of sparse tensors: src_c/kernels/index/coalesce.h. Coordinates are [dimensions, entries] or [entries, dimensions],
 * and the new ones likewise (indices/shape, newIndicesOut/shape, newValuesOut/shape). */
void op_require_coalesced(OpCall *op, const Operand *coordinates, const Operand *values, const Operand *new_coordinates,
                          const Operand *new_values);
aclnnStatus op_coalesce(OpCall *op, const Operand *groups, const Operand *coordinates, const Operand *values,
                        const Operand *new_coordinates, const Operand *new_values);

/* Sums of groups of rows: src_c/kernels/index/row_groups.h. */
Shape op_shape_summed_groups(OpCall *op, const Operand *rows, const Operand *ends);
aclnnStatus op_sum_groups(OpCall *op, const Operand *rows, const Operand *ends, bool sizes, const Operand *out);

/* A permutation of lists as one of their elements: src_c/kernels/index/jagged.h. */
aclnnStatus op_expand_permutation(OpCall *op, const Operand *permutation, const Operand *begins, const Operand *ends,
                                  const Operand *out);

#endif
