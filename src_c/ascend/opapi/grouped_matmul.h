/* Products of groups: src_c/kernels/matmul/grouped.h. */
#ifndef ASCEND_OPAPI_GROUPED_MATMUL_H
#define ASCEND_OPAPI_GROUPED_MATMUL_H

#include "ascend/opapi/blocked_weight.h"

/* What the operand of a product is made of (pages, "single" and "multi"): the first version tells by lists alone. */
typedef enum GroupType { GROUP_BY_LISTS = -2, GROUP_NONE = -1, GROUP_M = 0, GROUP_K = 2 } GroupType;

/* One call. Lists that a page does not have are empty. */
typedef struct GroupedCall {
    Operands x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, row_scale, out;
    const Operand *list; /* NULL where the page has an array */
    IntArguments ends;
    int64_t split, type, list_type, activation;
    const Operand *gated_scale; /* of rows of the gated, quantized result; NULL: none */
    bool fifth; /* version: products of ACL_INT8 with 4 bits may have several weights, 4 bits in blocks may be transposed */
} GroupedCall;

/* Weights that the page takes for blocks, of the sizes that x and out give them (format). */
Operands op_grouped_weights(OpCall *op, Operands weight, Operands x, Operands out);
/* The lists fit each other (x/case) and the types (out/types). */
void op_require_grouped_lists(OpCall *op, const GroupedCall *call);
void op_require_grouped_shapes(OpCall *op, const GroupedCall *call);
void op_require_group_list(OpCall *op, const GroupedCall *call);
/* Rows of k that have scales of their own; 0: the shapes say. */
void op_require_quant_group(OpCall *op, const GroupedCall *call, int64_t size);
/* The numbers that the vendor's own tuning takes. */
void op_require_tuning(OpCall *op, IntArguments tuning, Operands x);
/* Of single tensors, gated: types and shapes. */
void op_require_grouped_gated(OpCall *op, const GroupedCall *call);
aclnnStatus op_grouped_matmul(OpCall *op, const GroupedCall *call);

/* Parts of x [k, m] and of weight [k, n] that end where the list says: their products are added to the items of
 * out [groups, m, n], or [groups * m, n]. */
void op_require_grouped_add(OpCall *op, const Operand *x, const Operand *weight, const Operand *list, const Operand *out);
aclnnStatus op_grouped_matmul_add(OpCall *op, const Operand *x, const Operand *weight, const Operand *list,
                                  const Operand *out);

/* Tokens of ACL_INT8 through weights of 4 bits, or of ACL_INT8, and back, each weighed and added to its row of out. offset and
 * shared may be NULL, bias and weights too. */
typedef struct CombinedCall {
    const Operand *x, *weight, *scale, *bias, *offset, *row_scale, *list, *shared, *weights, *places, *out;
    double shared_factor;
    int64_t shared_begin, list_type;
} CombinedCall;
void op_require_combined(OpCall *op, const CombinedCall *call);
aclnnStatus op_grouped_combined(OpCall *op, const CombinedCall *call);

#endif
