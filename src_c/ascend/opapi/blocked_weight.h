/* Weights in ACL_FORMAT_FRACTAL_NZ. Its blocks of a matrix are [columns / c, rows / 16, 16, c], rounded up, c elements being
 * 32 bytes: 64 of ACL_INT4. With a storage shape of such blocks the kernel gets a copy; with another one the data is what
 * aclnnTransMatmulWeight leaves, which lies as the strides say. */
#ifndef ASCEND_OPAPI_BLOCKED_WEIGHT_H
#define ASCEND_OPAPI_BLOCKED_WEIGHT_H

#include "ascend/opapi/packed_integers.h"

/* A matrix, or a batch of them, contiguous or transposed where its storage shape is of blocks (format). */
const Operand *op_weight(OpCall *op, const Operand *weight);
Operands op_weights(OpCall *op, Operands weights);
/* The same for pages on which the view, too, may have the shape of blocks: of rows x columns numbers, an ACL_INT32 being
 * eight of them. As matrices it has `rank` dimensions, 0 where that is open: then a view of the blocks' shape that is a
 * batch of such matrices too is taken for one. */
const Operand *op_weight_of(OpCall *op, const Operand *weight, int32_t rank, int64_t rows, int64_t columns);

/* For pages that take weights in ACL_FORMAT_FRACTAL_NZ only: so declared, or of a public format with a storage shape of
 * one dimension, which is what aclnnTransMatmulWeight is given and leaves (private). */
const Operand *op_prepared_weight(OpCall *op, const Operand *weight);
/* For pages that take a weight of any public format for one in blocks. */
const Operand *op_as_blocked(OpCall *op, const Operand *weight);

/* Whether the last two dimensions are those of a transposed matrix. */
bool op_is_turned(const View *view);

/* A weight of a convolution, [n, channels, depth, rows, columns], in ACL_FRACTAL_Z_3D: its blocks are
 * [depth * channels / c * rows * columns, n / 16, 16, c], rounded up (private, format). With a storage shape of another rank it
 * lies as its strides say. */
const Operand *op_convolution_weight(OpCall *op, const Operand *weight);

/* The operand as `shown` of a row-major copy of `copied`, which is a view of it. */
const Operand *op_with_copy(OpCall *op, const Operand *operand, View copied, View shown);

/* Integers of 4 bits of a weight that has 32 bits for each, as matrices or blocks (format, packed). */
void op_require_packed_weight(OpCall *op, const Operand *to);
aclnnStatus op_pack_weight(OpCall *op, const Operand *weight, const Operand *to);

/* Pages of keys in blocks, [page, head, depth / c, row, c], as [page, head, row, depth]; others stay. */
const Operand *op_blocked_pages(OpCall *op, const Operand *keys);

#endif
