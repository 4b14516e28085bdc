#include "ascend/opapi/floyd.h"

#include "kernels/attention/floyd.h"

enum { BATCH, HEAD, FIRST, SECOND, DEPTH, AXES, MOST_BATCHES = 2048, MOST_HEADS = 256, MOST_PLACES = 1 << 20, COPIES = 8 };

static bool is_aligned(int64_t size, int64_t to)
{
    return size >= to && size <= MOST_PLACES && size % to == 0;
}

static void require_sizes(OpCall *op, const Operand *query, const Operand *key1)
{
    const int64_t depth = op_size(query, DEPTH), batches = op_size(query, BATCH), heads = op_size(query, HEAD);
    op_require(op, batches >= 1 && batches <= MOST_BATCHES && heads >= 1 && heads <= MOST_HEADS, "query", "heads", op->invalid,
               "query is %s: it has 1 to 2048 batches and 1 to 256 heads", op_shape_text(op, query));
    op_require(op, is_aligned(op_size(query, FIRST), 16) && is_aligned(op_size(query, SECOND), 128), "query", "places",
               op->invalid, "query is %s: N is a multiple of 16, M of 128, up to 1048576", op_shape_text(op, query));
    op_require(op, depth == 32 || depth == 64 || depth == 128, "query", "depth", op->invalid,
               "query is %s: a head has 32, 64 or 128 numbers", op_shape_text(op, query));
    op_require(op, is_aligned(op_size(key1, SECOND), 128), "key1", "places", op->invalid,
               "key1 is %s: K is a multiple of 128, up to 1048576", op_shape_text(op, key1));
}

void op_require_pairs(OpCall *op, const Operand *query, const Operand *key1, const Operand *value1, const Operand *key2,
                      const Operand *value2, const Operand *mask)
{
    op_require_ranks(op, OPERANDS(query, key1, key2), AXES, AXES);
    require_sizes(op, query, key1);
    if (op_refused(op)) {
        return;
    }
    const int64_t *sizes = query->view.shape, keys = op_size(key1, SECOND);
    const Shape first = op_shape_of(AXES, (const int64_t[]){sizes[BATCH], sizes[HEAD], sizes[FIRST], keys, sizes[DEPTH]});
    const Shape second = op_shape_of(AXES, (const int64_t[]){sizes[BATCH], sizes[HEAD], keys, sizes[SECOND], sizes[DEPTH]});
    const Shape masked = op_shape_of(AXES, (const int64_t[]){sizes[BATCH], 1, sizes[FIRST], 1, keys});
    op_require_shape(op, key1, &first);
    op_require_shape(op, value1, &first);
    op_require_shape(op, key2, &second);
    op_require_shape(op, value2, &second);
    if (op_given(mask)) {
        op_require_shape(op, mask, &masked);
    }
}

Shape op_shape_pair_maxima(OpCall *op, const Operand *query)
{
    Shape shape = op_shape(query);
    if (!op_refused(op)) {
        shape.sizes[shape.rank - 1] = COPIES;
    }
    return shape;
}

static aclnnStatus plan(OpCall *op, Kernel *kernel, double scale, Operands inputs, Operands outputs)
{
    const FloydAttention floyd = {.scale = (float)scale};
    return op_refused(op) ? op_plan_nothing(op) : op_plan_operands(op, kernel, &floyd, sizeof floyd, inputs, outputs);
}

aclnnStatus op_floyd_attention(OpCall *op, double scale, Operands inputs, Operands outputs)
{
    return plan(op, us_floyd_attention, scale, inputs, outputs);
}

aclnnStatus op_floyd_attention_backward(OpCall *op, double scale, Operands inputs, Operands outputs)
{
    return plan(op, us_floyd_attention_backward, scale, inputs, outputs);
}
