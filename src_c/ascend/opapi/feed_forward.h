/* Two layers of a network: src_c/kernels/matmul/feed_forward.h. */
#ifndef ASCEND_OPAPI_FEED_FORWARD_H
#define ASCEND_OPAPI_FEED_FORWARD_H

#include "ascend/opapi/families.h"

/* Of a layer. */
typedef struct FeedForwardLayer {
    const Operand *weight, *bias, *scale, *antiquant_scale, *antiquant_offset;
} FeedForwardLayer;

/* One call. `tokens` is NULL where the page has an array. */
typedef struct FeedForwardCall {
    const Operand *x, *y, *scale, *offset, *tokens;
    FeedForwardLayer layers[2];
    IntArguments counts;
    bool ends; /* tokens are where each expert's end */
    const char *activation;
    int64_t precise;
} FeedForwardCall;

void op_require_feed_forward_types(OpCall *op, const FeedForwardCall *call);
void op_require_feed_forward_shapes(OpCall *op, const FeedForwardCall *call);
aclnnStatus op_feed_forward(OpCall *op, const FeedForwardCall *call);

#endif
