/* Attention between pairs: src_c/kernels/attention/floyd.h. */
#ifndef ASCEND_OPAPI_FLOYD_H
#define ASCEND_OPAPI_FLOYD_H

#include "ascend/opapi/families.h"

/* Sizes of [B, H, N, M, D], and what they have in common: the rules stand on the pages. */
void op_require_pairs(OpCall *op, const Operand *query, const Operand *key1, const Operand *value1, const Operand *key2,
                      const Operand *value2, const Operand *mask);
/* Eight numbers for each row. */
Shape op_shape_pair_maxima(OpCall *op, const Operand *query);
aclnnStatus op_floyd_attention(OpCall *op, double scale, Operands inputs, Operands outputs);
aclnnStatus op_floyd_attention_backward(OpCall *op, double scale, Operands inputs, Operands outputs);

#endif
