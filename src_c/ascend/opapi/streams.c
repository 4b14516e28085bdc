#include "ascend/opapi/streams.h"

enum { STREAMS = 4, ORDERS = 24 /* of them */, MOST_WIDE = 100000, ALIGNED = 128 };

bool op_has_streams(const Operand *x)
{
    const int64_t width = op_size(x, -1);
    return op_size(x, -2) == STREAMS && width >= 1 && width <= MOST_WIDE && width % ALIGNED == 0;
}

/* The shape of x with `count` last sizes instead of its last two. */
static Shape of_tokens(const OpCall *op, const Operand *x, int32_t count, const int64_t *sizes)
{
    Shape shape = op_shape(x);
    if (op_refused(op)) {
        return shape;
    }
    shape.rank -= 2;
    for (int32_t i = 0; i < count; i++) {
        shape.sizes[shape.rank++] = sizes[i];
    }
    return shape;
}

Shape op_shape_stream_matrices(OpCall *op, const Operand *x)
{
    const int64_t streams = op_size(x, -2);
    return of_tokens(op, x, 2, (const int64_t[]){streams, streams});
}

Shape op_shape_stream_layer(OpCall *op, const Operand *x)
{
    return op_shape_stream_parts(op, x, op_size(x, -1));
}

Shape op_shape_stream_weights(OpCall *op, const Operand *x)
{
    return op_shape_stream_parts(op, x, op_size(x, -2));
}

Shape op_shape_stream_parts(OpCall *op, const Operand *x, int64_t count)
{
    return of_tokens(op, x, 1, &count);
}

Shape op_shape_stream_tokens(OpCall *op, const Operand *x)
{
    return of_tokens(op, x, 0, NULL);
}

Shape op_shape_stream_products(OpCall *op, const Operand *x, const Operand *phi)
{
    return op_shape_stream_parts(op, x, op_size(phi, 0));
}

bool op_is_mixing(const Operand *phi, bool mixes)
{
    const int64_t rest = op_size(phi, 0) - 2 * STREAMS;
    return mixes ? rest == STREAMS * STREAMS || rest == ORDERS : rest == 0;
}

Shape op_shape_stream_mix(OpCall *op, const Operand *x, const Operand *phi)
{
    return op_size(phi, 0) == 2 * STREAMS + ORDERS ? op_shape_stream_parts(op, x, ORDERS) : op_shape_stream_matrices(op, x);
}

Shape op_shape_weighed_blocks(OpCall *op, const Operand *blocks)
{
    return op_shape_stream_parts(op, blocks, op_size(blocks, 1) + 1);
}

static aclnnStatus plan(OpCall *op, Kernel *kernel, const void *attributes, size_t size, Operands inputs, Operands outputs)
{
    return op_refused(op) ? op_plan_nothing(op) : op_plan_operands(op, kernel, attributes, size, inputs, outputs);
}

aclnnStatus op_mix_streams(OpCall *op, Operands inputs, const Operand *out)
{
    return plan(op, us_mix_streams, NULL, 0, inputs, OPERANDS(out));
}

aclnnStatus op_mix_streams_backward(OpCall *op, Operands inputs, Operands outputs)
{
    return plan(op, us_mix_streams_backward, NULL, 0, inputs, outputs);
}

aclnnStatus op_read_streams(OpCall *op, const ReadStreams *how, Operands inputs, Operands outputs)
{
    return plan(op, us_read_streams, how, sizeof *how, inputs, outputs);
}

aclnnStatus op_read_streams_backward(OpCall *op, float epsilon, Operands inputs, Operands outputs)
{
    const ReadStreamsBackward how = {.epsilon = epsilon};
    return plan(op, us_read_streams_backward, &how, sizeof how, inputs, outputs);
}

aclnnStatus op_weigh_blocks(OpCall *op, double epsilon, Operands inputs, Operands outputs)
{
    const WeighBlocks how = {.epsilon = epsilon};
    return plan(op, us_weigh_blocks, &how, sizeof how, inputs, outputs);
}

aclnnStatus op_weigh_blocks_backward(OpCall *op, Operands inputs, Operands outputs)
{
    return plan(op, us_weigh_blocks_backward, NULL, 0, inputs, outputs);
}
