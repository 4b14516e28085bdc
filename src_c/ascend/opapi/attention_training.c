/* Attention: the pages for training. */
#include "ascend/opapi/attention_parts.h"

static void require_dropout(OpCall *op, const AttentionCall *call)
{
    op_require(op, call->keep > 0 && call->keep <= 1, "keepProb", "range", op->invalid,
               "keepProb is %g; it has to be above 0 and at most 1", call->keep);
    if (op_refused(op) || !op_given(call->drop)) {
        return;
    }
    const int64_t bytes = op_elements(call->drop), scores = score_count(call);
    op_require(op, call->drop->view.rank == 1 && bytes >= scores / 8 + (scores % 8 != 0), call->drop->name, "elements",
               op->invalid, "%s is %s; there are %lld scores, a bit each", call->drop->name,
               op_shape_text(op, call->drop), (long long)scores);
}

static void require_sinks(OpCall *op, const AttentionCall *call)
{
    if (!op_given(call->sink)) {
        return;
    }
    const Shape shape = op_shape_of(1, &call->heads);
    op_require_shape(op, call->sink, &shape);
    if (call->out_gradient != NULL) {
        op_require(op, op_given(call->sink_gradient), call->sink_gradient->name, "missing", op->missing,
                   "%s is NULL, %s is given", call->sink_gradient->name, call->sink->name);
        op_require_shape(op, call->sink_gradient, &shape);
    }
}

bool op_is_statistic_layout(const char *layout)
{
    return *layout == '\0' || strcmp(layout, "same_as_input") == 0;
}

bool op_are_alike_ends(IntArguments a, IntArguments b)
{
    bool alike = a.count == b.count;
    for (int64_t i = 0; alike && i < a.count; i++) {
        alike = a.values[i] == b.values[i];
    }
    return alike;
}

void op_require_attention(OpCall *op, const AttentionCall *call)
{
    require_operands(op, call);
    require_keys(op, call);
    require_sequences(op, call);
    op_require_range(op, "sparseMode", call->mode, 0, call->packed ? MODE_OUTSIDE_LEFT_UP : MODE_PREFIX_SMALL);
    require_masks(op, call);
    require_dropout(op, call);
    require_statistic(op, call, call->maximum);
    require_statistic(op, call, call->sum);
    require_result(op, call, call->out);
    require_result(op, call, call->out_gradient);
    require_sinks(op, call);
}
