#include "ascend/opapi/streams.h"

#include "ascend/opapi/shapes.h"

enum { STREAMS = 4, ORDERS = 24 /* of them */, MOST_WIDE = 100000, ALIGNED = 128 };

static bool is_wide(const Operand *x)
{
    const int64_t width = op_size(x, -1);
    return width >= 1 && width <= MOST_WIDE && width % ALIGNED == 0;
}

bool op_has_streams(const Operand *x)
{
    return op_size(x, -2) == STREAMS && is_wide(x);
}

bool op_has_few_streams(const Operand *x)
{
    return op_size(x, -2) >= 1 && op_size(x, -2) <= STREAM_LIMIT && is_wide(x);
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

bool op_is_mixing_matrices(const Operand *phi, const Operand *x)
{
    const int64_t streams = op_size(x, -2);
    return phi->view.rank == 2 && op_size(phi, 0) == streams * (streams + 2) && op_size(phi, 1) == streams * op_size(x, -1);
}

Shape op_shape_stream_mix(OpCall *op, const Operand *x, const Operand *phi)
{
    return op_size(phi, 0) == 2 * STREAMS + ORDERS ? op_shape_stream_parts(op, x, ORDERS) : op_shape_stream_matrices(op, x);
}

bool op_is_stream_mix(OpCall *op, const Operand *mix, const Operand *x, const Operand *phi)
{
    const Shape shape = op_shape_stream_mix(op, x, phi), orders = op_shape_stream_parts(op, x, ORDERS);
    return op_refused(op) || op_has_shape(mix, &shape) || (op_is_mixing(phi, false) && op_has_shape(mix, &orders));
}

bool op_is_flat_mix(OpCall *op, const Operand *mix, const Operand *x)
{
    const int64_t streams = op_size(x, -2);
    const Shape matrices = op_shape_stream_matrices(op, x), rows = op_shape_stream_parts(op, x, streams * streams);
    return op_refused(op) || op_has_shape(mix, &matrices) || op_has_shape(mix, &rows);
}

Shape op_shape_stream_inverses(OpCall *op, const Operand *x)
{
    return op_shape_stream_parts(op, x, 1);
}

/* The shape behind a first axis of the steps. */
static Shape of_steps(const OpCall *op, Shape shape)
{
    if (op_refused(op)) {
        return shape;
    }
    Shape steps = {.rank = shape.rank + 1, .sizes = {2 * BALANCE_ITERATIONS}};
    for (int32_t i = 0; i < shape.rank; i++) {
        steps.sizes[i + 1] = shape.sizes[i];
    }
    return steps;
}

Shape op_shape_balanced_sums(OpCall *op, const Operand *x)
{
    return of_steps(op, op_shape_stream_weights(op, x));
}

Shape op_shape_balanced_streams(OpCall *op, const Operand *x)
{
    return of_steps(op, op_shape_stream_matrices(op, x));
}

void op_require_kept_streams(OpCall *op, const Operand *x, const Operand *phi, const KeptStreams *kept)
{
    const Operand *const operands[] = {kept->read, kept->products, kept->inverses, kept->sums, kept->matrices};
    const Shape shapes[] = {op_shape_stream_weights(op, x), op_shape_stream_products(op, x, phi),
                            op_shape_stream_inverses(op, x), op_shape_balanced_sums(op, x), op_shape_balanced_streams(op, x)};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        op_require(op, op_given(operands[i]), operands[i]->name, "missing", op->missing,
                   "%s is NULL, and needBackward asks for it", operands[i]->name);
    }
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        op_require_shape(op, operands[i], &shapes[i]);
    }
}

Shape op_shape_weighed_blocks(OpCall *op, const Operand *blocks)
{
    int64_t count;
    return op_shape_stream_parts(op, blocks, __builtin_add_overflow(op_size(blocks, 1), 1, &count) ? -1 : count);
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

aclnnStatus op_read_streams_backward(OpCall *op, const ReadStreamsBackward *how, Operands inputs, Operands outputs)
{
    return plan(op, us_read_streams_backward, how, sizeof *how, inputs, outputs);
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
