/* Elements in another order, slices as often as a tensor says, powers in sequence, and windows added up. */
#ifndef ASCEND_OPAPI_REARRANGE_H
#define ASCEND_OPAPI_REARRANGE_H

#include "ascend/opapi/shapes.h"

/* Channels, the second axis, seen as [groups, channels / groups], transposed. */
aclnnStatus op_channel_shuffle(OpCall *op, const Operand *self, int64_t groups, const Operand *out);

/* `repeats` has as many elements as self has along the axis, or one (repeats/elements); out has any size there. */
void require_repeats(OpCall *op, const Operand *self, int32_t axis, const Operand *repeats);
Shape op_shape_repeated_each(OpCall *op, const Operand *self, int32_t axis, int64_t size);
/* Slice i of self along the axis repeats[i] times in a row. */
aclnnStatus op_repeat_each(OpCall *op, const Operand *self, const Operand *repeats, int32_t axis, const Operand *out);
/* The same of self's elements in row-major order. */
aclnnStatus op_repeat_each_element(OpCall *op, const Operand *self, const Operand *repeats, const Operand *out);
/* i, repeats[i] times in a row. */
aclnnStatus op_repeat_places(OpCall *op, const Operand *repeats, const Operand *out);

/* One shape, but for the axis. */
bool op_alike_but(const Operand *a, const Operand *b, int32_t axis);
aclnnStatus op_repeat_each_gradient(OpCall *op, const Operand *slopes, const Operand *repeats, int32_t axis,
                                    const Operand *out);

/* out[i] = base to the power of the linspace from start to end. */
aclnnStatus op_logspace(OpCall *op, const ScalarArgument *start, const ScalarArgument *end, int64_t steps, double base,
                        const Operand *out);

/* [chunks, elements of a chunk of every tensor]: the first dimension is cut into chunks, the last of them filled up. */
Shape op_shape_chunks(OpCall *op, Operands tensors, int64_t chunks);
aclnnStatus op_chunk_cat(OpCall *op, Operands tensors, const Operand *out);

/* Of sizes that are unfolded; without any there is one of 1. The last dimension, and the size of one, which is 0 where there is
 * none. */
int64_t op_last_of(IntArguments sizes);
int64_t op_unfolded_size(IntArguments sizes, int64_t dim);
/* Whether the vendor's windows of this type may be so large and so far apart, along the last axis or another. */
bool op_windows_fit(aclDataType dtype, bool last, int64_t size, int64_t step);
/* All dimensions of the windows but `dim` (shape). */
void require_windows(OpCall *op, const Operand *windows, IntArguments sizes, int64_t dim, int64_t size);
aclnnStatus op_add_windows(OpCall *op, const Operand *windows, int64_t dim, int64_t step, const Operand *out);

#endif
