#include "ascend/opapi/delta_rule.h"

#include "kernels/rnn/delta_rule.h"

static bool is_within(int64_t size, int64_t least, int64_t most)
{
    return size >= least && size <= most;
}

void op_require_delta(OpCall *op, const DeltaCall *call)
{
    const int64_t heads = op_size(call->key, 1), value_heads = op_size(call->value, 1);
    op_require(op, op_size(call->query, 0) > 0, "query", "tokens", op->invalid, "query is %s: there are no tokens",
               op_shape_text(op, call->query));
    op_require(op, is_within(op_size(call->query, 1), 1, call->most_heads), "query", "heads", op->invalid,
               "query is %s: it has 1 to %lld heads", op_shape_text(op, call->query), (long long)call->most_heads);
    op_require(op, is_within(op_size(call->query, 2), 1, call->deepest), "query", "depth", op->invalid,
               "query is %s: a head has 1 to %lld numbers", op_shape_text(op, call->query), (long long)call->deepest);
    op_require_same_shape(op, call->key, call->query);
    op_require(op, op_size(call->value, 0) == op_size(call->query, 0), "value", "tokens", op->invalid, "value is %s, query is %s",
               op_shape_text(op, call->value), op_shape_text(op, call->query));
    op_require(op, op_refused(op) || (is_within(value_heads, heads, call->most_heads) && value_heads % heads == 0), "value",
               "heads", op->invalid, "value is %s, key is %s: it has 1 to %lld heads, as many for each of the key",
               op_shape_text(op, call->value), op_shape_text(op, call->key), (long long)call->most_heads);
    op_require(op, is_within(op_size(call->value, 2), 1, call->deepest), "value", "depth", op->invalid,
               "value is %s: a head has 1 to %lld numbers", op_shape_text(op, call->value), (long long)call->deepest);
    op_require(op, op_size(call->lengths, 0) > 0, "actualSeqLengths", "empty", op->invalid, "actualSeqLengths is %s",
               op_shape_text(op, call->lengths));
}

static PlannedView read(const Operand *operand)
{
    return (PlannedView){op_given(operand) ? operand : NULL, VIEW_READ, NULL};
}

aclnnStatus op_delta_rule(OpCall *op, const DeltaCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const DeltaRule rule = {.scale = call->scale, .longest = call->longest, .whole = call->places != NULL};
    const PlannedView views[] = {read(call->query), read(call->key), read(call->value), read(call->beta), read(call->gate),
                                 read(call->key_gate), read(call->lengths), read(call->before), {call->after, VIEW_WRITE, NULL},
                                 {call->out, VIEW_WRITE, NULL}, read(call->places), read(call->accepted)};
    return op_plan_views(op, us_delta_rule, &rule, sizeof rule, sizeof views / sizeof *views, views);
}
