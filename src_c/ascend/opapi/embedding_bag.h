/* Sums, means and maxima of rows of a table. */
#ifndef ASCEND_OPAPI_EMBEDDING_BAG_H
#define ASCEND_OPAPI_EMBEDDING_BAG_H

#include "ascend/opapi/families.h"

/* That of indices, or [0] where it is not wanted. */
Shape op_shape_bag_numbers(OpCall *op, const Operand *indices, const Operand *numbers);
Shape op_shape_bag_sizes(OpCall *op, const Operand *offsets, bool has_last);
Shape op_shape_bags(OpCall *op, const Operand *offsets, bool has_last, const Operand *weight);
Shape op_shape_bag_maxima(OpCall *op, const Operand *offsets, bool has_last, const Operand *weight, int64_t mode);
/* The wider type of indices and offsets (same-dtype). */
void op_require_bag_type(OpCall *op, const Operand *indices, const Operand *offsets, const Operand *operand);
aclnnStatus op_embedding_bag(OpCall *op, const Operand *weight, const Operand *indices, const Operand *offsets,
                             const Operand *scales, int64_t mode, int64_t padding, const Operand *output,
                             const Operand *bag_of, const Operand *size_of, const Operand *maxima);

#endif
