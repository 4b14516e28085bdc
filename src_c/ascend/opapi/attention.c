/* Attention: from checked calls to the kernel's views. */
#include "ascend/opapi/attention_parts.h"

/* A mask or a shift by sequence and head: stride 0 where it has one for all. */
static View by_scores(const View *view)
{
    View result = {.data = view->data, .dtype = view->dtype, .rank = 4};
    for (int32_t i = 0; i < 4; i++) {
        const int32_t axis = view->rank - 4 + i;
        result.shape[i] = axis < 0 ? 1 : view->shape[axis];
        result.strides[i] = result.shape[i] == 1 ? 0 : view->strides[axis];
    }
    return result;
}

typedef struct AttentionPlan {
    Attention *attention;
    size_t size;
    int32_t count;
    PlannedView *planned;
    View *views;
} AttentionPlan;

/* An operand that was not given stays an absent view. */
static void plan_view(AttentionPlan *plan, int32_t at, const Operand *operand, ViewAccess access, View view)
{
    plan->views[at] = view;
    plan->planned[at] = (PlannedView){operand, access, &plan->views[at]};
}

static void plan_operand(AttentionPlan *plan, int32_t at, const Operand *operand)
{
    if (op_given(operand)) {
        plan_view(plan, at, operand, VIEW_READ, operand->view);
    }
}

static void plan_heads(AttentionPlan *plan, int32_t at, const Operand *operand, ViewAccess access,
                       const Layout *layout, int64_t heads)
{
    if (op_given(operand)) {
        const Integers integers = op_integers_of(operand);
        plan_view(plan, at, operand, access, by_heads(layout, &integers.view, heads));
    }
}

static AttentionPlan plan_of(OpCall *op, const AttentionCall *call, int32_t count)
{
    const Operand4 of = split_heads(call);
    const int64_t sequences = sequence_count(call, &of);
    AttentionPlan plan = {.size = sizeof *plan.attention + (size_t)sequences * sizeof *plan.attention->of,
                          .count = count};
    plan.attention = executor_take(op->executor, plan.size);
    plan.planned = executor_take(op->executor, (size_t)count * sizeof *plan.planned);
    plan.views = executor_take(op->executor, (size_t)count * sizeof *plan.views);
    op_require(op, plan.attention != NULL && plan.planned != NULL && plan.views != NULL, "executor", "exhausted",
               ACLNN_ERR_INNER_CREATE_EXECUTOR, "no host memory for the executor");
    if (op_refused(op)) {
        return plan;
    }
    const double scale = call->scale;
    const AttentionSizes sizes = {call->heads, of.key.shape[1], of.query.shape[3], of.value.shape[3], sequences};
    *plan.attention = (Attention){.sizes = sizes, .scale = (float)scale,
                                  .shift_scale = call->adds_after_scale ? 1 : (float)scale,
                                  .keep = (float)call->keep, .joins = call->infers, .copies = copies_of(call),
                                  .block = op_given(call->pages) ? of.key.shape[2] : 0, .listed = is_listed(call),
                                  .quantizes = op_given(call->out_scale), .shared = shared_keys(call),
                                  .dequantizes = has_integer_keys(call), .packed = has_packed_keys(call),
                                  .all_integers = is_all_integers(call),
                                  .scales_in_pages = dequantization_of(call, false).mode >= OF_PAGED_TOKENS,
                                  .rotary_depth = !op_given(call->rotary_query) ? 0
                                                  : call->infers ? ROTARY_DEPTH : op_size(call->rotary_query, -1)};
    describe_sequences(call, &of, plan.attention);
    for (int32_t i = 0; i < count; i++) {
        plan_view(&plan, i, NULL, VIEW_READ, us_view_absent());
    }
    plan_heads(&plan, QUERY, call->query, VIEW_READ, layout_of(call), call->heads);
    plan_heads(&plan, KEY, call->key, VIEW_READ, key_layout(call), sizes.key_heads);
    plan_heads(&plan, VALUE, call->value, VIEW_READ, key_layout(call), sizes.key_heads);
    if (op_given(call->shift)) {
        const View *shift = &call->shift->view;
        plan_view(&plan, SHIFT, call->shift, VIEW_READ, shift->rank == 1 ? *shift : by_scores(shift));
    }
    if (mask_is_read(call)) {
        const View mask = mask_view(call, of.query.shape[2]);
        plan_view(&plan, MASK, call->mask, VIEW_READ, by_scores(&mask));
    }
    plan_operand(&plan, DROP, call->drop);
    plan_heads(&plan, OUT, call->out, VIEW_WRITE, result_layout(call), call->heads);
    const Operand *statistics[] = {call->maximum, call->sum};
    for (int i = 0; i < 2; i++) {
        if (op_given(statistics[i])) {
            plan_view(&plan, MAXIMUM + i, statistics[i], VIEW_WRITE, statistic_view(call, &statistics[i]->view));
        }
    }
    return plan;
}

static void plan_result_channels(AttentionPlan *plan, int32_t at, const Operand *operand)
{
    const AttentionSizes *sizes = &plan->attention->sizes;
    if (op_given(operand)) {
        plan_view(plan, at, operand, VIEW_READ, channel_view(&operand->view, sizes->heads, sizes->value_depth));
    }
}

static void plan_dequantization(AttentionPlan *plan, const AttentionCall *call)
{
    for (int i = 0; plan->attention->dequantizes && i < 4; i++) {
        const Dequantization of = dequantization_of(call, i > 1);
        const Operand *operand = i % 2 == 0 ? of.scale : of.offset;
        plan_view(plan, KEY_SCALE + i, operand, VIEW_READ, numbers_view(call, &of, operand));
    }
}

static void plan_one_number(AttentionPlan *plan, int32_t at, const Operand *operand)
{
    if (op_given(operand)) {
        plan_view(plan, at, operand, VIEW_READ, op_scale_view(operand));
    }
}

/* One for each head. */
static void plan_sinks(AttentionPlan *plan, int32_t at, const Operand *sinks, ViewAccess access)
{
    if (op_given(sinks)) {
        plan_view(plan, at, sinks, access,
                  (View){.data = sinks->view.data, .dtype = sinks->view.dtype, .rank = 4,
                         .shape = {1, plan->attention->sizes.heads, 1, 1}, .strides = {0, sinks->view.strides[0], 0, 1}});
    }
}

/* Heads of no numbers have scores all the same, those of shift and mask. */
static bool wants_statistics(const AttentionCall *call)
{
    return (op_given(call->maximum) && !op_empty(call->maximum)) || (op_given(call->sum) && !op_empty(call->sum));
}

aclnnStatus op_attention(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op) || (op_empty(call->query) && !wants_statistics(call))) {
        return op_plan_nothing(op);
    }
    const int32_t listed = is_listed(call) ? 2 * call->keys.count : 0;
    AttentionPlan plan = plan_of(op, call, LISTED + listed);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const AttentionSizes *sizes = &plan.attention->sizes;
    plan_result_channels(&plan, RESULT_SCALE, call->out_scale);
    plan_result_channels(&plan, RESULT_SHIFT, call->out_offset);
    plan_operand(&plan, PAGES, call->pages);
    plan_heads(&plan, ROTARY_QUERY, call->rotary_query, VIEW_READ, layout_of(call), sizes->heads);
    plan_heads(&plan, ROTARY_KEY, call->rotary_key, VIEW_READ, key_layout(call), sizes->key_heads);
    plan_dequantization(&plan, call);
    plan_heads(&plan, SHARED_KEY, call->shared_key, VIEW_READ, layout_of(call), sizes->key_heads);
    plan_heads(&plan, SHARED_VALUE, call->shared_value, VIEW_READ, layout_of(call), sizes->key_heads);
    plan_one_number(&plan, SCORE_SCALE, call->score_scale);
    plan_one_number(&plan, WEIGHT_SCALE, call->weight_scale);
    plan_one_number(&plan, PRODUCT_SCALE, call->product_scale);
    plan_operand(&plan, QUERY_PADDING, call->query_lengths.count > 0 ? call->query_padding : NULL);
    plan_operand(&plan, KEY_PADDING, call->key_lengths.count > 0 ? call->key_padding : NULL);
    plan_sinks(&plan, SINK, call->sink, VIEW_READ);
    for (int32_t i = 0; i < listed; i++) {
        plan_heads(&plan, LISTED + i, (i % 2 == 0 ? call->keys : call->values).items[i / 2], VIEW_READ,
                   layout_of(call), sizes->key_heads);
    }
    return op_plan_views(op, us_attention, plan.attention, plan.size, plan.count, plan.planned);
}

aclnnStatus op_attention_backward(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    if (op_empty(call->query)) {
        return op_fill_all(op, OPERANDS(call->key_gradient, call->value_gradient, call->rotary_key_gradient, call->sink_gradient),
                           ZERO);
    }
    const bool parts = op_given(call->rotary_query), sinks = op_given(call->sink);
    AttentionPlan plan = plan_of(op, call, sinks ? SINK_VIEWS : parts ? BACKWARD_VIEWS : VALUE_GRADIENT + 1);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    for (int32_t at = OUT; at <= SUM; at++) {
        plan.planned[at].access = VIEW_READ;
    }
    const Layout *layout = layout_of(call);
    const int64_t key_heads = plan.attention->sizes.key_heads;
    plan_heads(&plan, OUT_GRADIENT, call->out_gradient, VIEW_READ, layout, call->heads);
    plan_heads(&plan, QUERY_GRADIENT, call->query_gradient, VIEW_WRITE, layout, call->heads);
    plan_heads(&plan, KEY_GRADIENT, call->key_gradient, VIEW_WRITE, layout, key_heads);
    plan_heads(&plan, VALUE_GRADIENT, call->value_gradient, VIEW_WRITE, layout, key_heads);
    if (parts) {
        plan_heads(&plan, PART_QUERY, call->rotary_query, VIEW_READ, layout, call->heads);
        plan_heads(&plan, PART_KEY, call->rotary_key, VIEW_READ, layout, key_heads);
        plan_heads(&plan, PART_QUERY_GRADIENT, call->rotary_query_gradient, VIEW_WRITE, layout, call->heads);
        plan_heads(&plan, PART_KEY_GRADIENT, call->rotary_key_gradient, VIEW_WRITE, layout, key_heads);
    }
    if (sinks) {
        plan_sinks(&plan, BACKWARD_SINK, call->sink, VIEW_READ);
        plan_sinks(&plan, SINK_GRADIENT, call->sink_gradient, VIEW_WRITE);
    }
    Kernel *kernel = sinks   ? us_attention_backward_with_sink
                     : parts ? us_attention_backward_of_parts
                             : us_attention_backward;
    return op_plan_views(op, kernel, plan.attention, plan.size, plan.count, plan.planned);
}
