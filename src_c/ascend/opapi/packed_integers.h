/* What tensors of quantized operators hold, as the kernels read it. Integers of 4 bits (kernels/quantize/nibbles.h): two
 * ACL_INT4 are a byte, eight an ACL_INT32; they lie side by side along one of the last two dimensions. */
#ifndef ASCEND_OPAPI_PACKED_INTEGERS_H
#define ASCEND_OPAPI_PACKED_INTEGERS_H

#include "ascend/opapi/families.h"
#include "kernels/quantize/nibbles.h"

/* The view is of bytes where a tensor is packed; `axis`: in whose bytes two numbers lie, or NOT_PACKED. */
typedef struct Integers {
    View view;
    int32_t axis;
    bool fits; /* the numbers fill whole bytes side by side */
} Integers;

Integers op_integers_of(const Operand *operand);
/* The number of integers along a dimension, counted from the end: 1, 2, … */
int64_t op_integer_size(const Integers *integers, int32_t from_end);

void op_require_packed(OpCall *op, const Operand *operand, const Integers *integers); /* packed */

/* Along the last dimension, which an ACL_INT32 has an eighth of: the shape of `packed` that holds the numbers of `whole`,
 * and of a tensor that holds those of `packed`. */
Shape op_shape_packed(OpCall *op, const Operand *whole, const Operand *packed);
Shape op_shape_unpacked(OpCall *op, const Operand *packed);
void op_require_packed_rows(OpCall *op, const Operand *operand); /* packed */

/* Of ACL_UINT64 and ACL_INT64 the float32 in the low half (kernels/quantize/parameters.h); absent if not given. */
View op_scale_view(const Operand *operand);

#endif
