/* Attention in which a mask leaves out blocks of scores: src_c/kernels/attention/attention.h. */
#ifndef ASCEND_OPAPI_ATTENTION_BLOCKS_H
#define ASCEND_OPAPI_ATTENTION_BLOCKS_H

#include "ascend/opapi/families.h"

/* One call; what a page does not have is NULL. */
typedef struct BlockCall {
    const Operand *query, *key, *value, *mask, *out, *joint; /* joint: log of the sums; NULL: nobody wants it */
    const Operand *slopes, *query_slopes, *key_slopes, *value_slopes;
    IntArguments shape, query_lengths, key_lengths;
    const char *query_layout, *key_layout;
    int64_t key_heads;
    double scale;
    bool forward; /* heads of 64 numbers, BSND, and heads that share a key are there; both lengths are given or none */
} BlockCall;

/* Everything about layouts, heads, lengths and blocks: the rules stand on the pages. */
void op_require_blocks(OpCall *op, const BlockCall *call);
/* One number for each row of each head. */
Shape op_shape_row_joints(OpCall *op, const Operand *query);
aclnnStatus op_block_attention(OpCall *op, const BlockCall *call);
aclnnStatus op_block_attention_backward(OpCall *op, const BlockCall *call);

#endif
