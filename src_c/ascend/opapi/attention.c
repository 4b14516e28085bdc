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

enum { ATTENTION_VIEWS = 13, FIRST_LISTED = 24 };

typedef struct AttentionPlan {
    Attention *attention;
    size_t size;
    View views[ATTENTION_VIEWS];
} AttentionPlan;

static AttentionPlan plan_of(OpCall *op, const AttentionCall *call)
{
    AttentionPlan plan = {0};
    const Operand4 of = split_heads(call);
    const int64_t sequences = sequence_count(call, &of);
    plan.size = sizeof *plan.attention + (size_t)sequences * sizeof *plan.attention->of;
    plan.attention = executor_take(op->executor, plan.size);
    op_require(op, plan.attention != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
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
                                  .dequantizes = call->infers && call->key->dtype == ACL_INT8,
                                  .scales_in_pages = dequantization_of(call, false).mode >= OF_PAGED_TOKENS,
                                  .rotary_depth = op_given(call->rotary_query) ? ROTARY_DEPTH : 0};
    describe_sequences(call, &of, plan.attention);
    plan.views[0] = of.query;
    plan.views[1] = of.key;
    plan.views[2] = of.value;
    for (int i = 3; i < 9; i++) {
        plan.views[i] = us_view_absent();
    }
    if (op_given(call->shift)) {
        plan.views[3] = by_scores(&call->shift->view);
    }
    if (mask_is_read(call)) {
        const View mask = mask_view(call, of.query.shape[2]);
        plan.views[4] = by_scores(&mask);
    }
    if (op_given(call->drop)) {
        plan.views[5] = call->drop->view;
    }
    plan.views[6] = by_heads(result_layout(call), &call->out->view, call->heads);
    if (op_given(call->maximum)) {
        plan.views[7] = statistic_view(call, &call->maximum->view);
    }
    if (op_given(call->sum)) {
        plan.views[8] = statistic_view(call, &call->sum->view);
    }
    return plan;
}

static View result_channels(const Operand *operand, const AttentionSizes *sizes)
{
    return op_given(operand) ? channel_view(&operand->view, sizes->heads, sizes->value_depth) : us_view_absent();
}

aclnnStatus op_attention(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op) || op_empty(call->query)) {
        return op_plan_nothing(op);
    }
    const AttentionPlan plan = plan_of(op, call);
    const int32_t listed = is_listed(call) ? 2 * call->keys.count : 0, count = FIRST_LISTED + listed;
    PlannedView *planned = executor_take(op->executor, (size_t)count * sizeof *planned);
    View *views = executor_take(op->executor, (size_t)(listed + 1) * sizeof *views);
    op_require(op, planned != NULL && views != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Operand *operands[] = {call->query, call->key, call->value, call->shift, call->mask, call->drop,
                                 call->out, call->maximum, call->sum};
    for (int i = 0; i < ATTENTION_VIEWS; i++) {
        planned[i] = i < 9 ? (PlannedView){operands[i], i < 6 ? VIEW_READ : VIEW_WRITE, &plan.views[i]}
                           : (PlannedView){NULL, VIEW_READ, NULL};
    }
    const AttentionSizes *sizes = &plan.attention->sizes;
    const View scale = result_channels(call->out_scale, sizes), offset = result_channels(call->out_offset, sizes);
    planned[ATTENTION_VIEWS] = (PlannedView){call->out_scale, VIEW_READ, &scale};
    planned[ATTENTION_VIEWS + 1] = (PlannedView){call->out_offset, VIEW_READ, &offset};
    planned[ATTENTION_VIEWS + 2] = (PlannedView){call->pages, VIEW_READ, NULL};
    View rotary_query = us_view_absent(), rotary_key = us_view_absent();
    if (op_given(call->rotary_query)) {
        rotary_query = by_heads(layout_of(call), &call->rotary_query->view, sizes->heads);
        rotary_key = by_heads(key_layout(call), &call->rotary_key->view, sizes->key_heads);
    }
    planned[ATTENTION_VIEWS + 3] = (PlannedView){call->rotary_query, VIEW_READ, &rotary_query};
    planned[ATTENTION_VIEWS + 4] = (PlannedView){call->rotary_key, VIEW_READ, &rotary_key};
    View shared_key = us_view_absent(), shared_value = us_view_absent();
    if (op_given(call->shared_key)) {
        shared_key = by_heads(layout_of(call), &call->shared_key->view, sizes->key_heads);
        shared_value = by_heads(layout_of(call), &call->shared_value->view, sizes->key_heads);
    }
    planned[ATTENTION_VIEWS + 9] = (PlannedView){call->shared_key, VIEW_READ, &shared_key};
    planned[ATTENTION_VIEWS + 10] = (PlannedView){call->shared_value, VIEW_READ, &shared_value};
    View numbers[4];
    for (int i = 0; i < 4; i++) {
        const Dequantization of = dequantization_of(call, i > 1);
        const Operand *operand = plan.attention->dequantizes ? (i % 2 == 0 ? of.scale : of.offset) : NULL;
        numbers[i] = numbers_view(call, &of, operand);
        planned[ATTENTION_VIEWS + 5 + i] = (PlannedView){operand, VIEW_READ, &numbers[i]};
    }
    for (int32_t i = 0; i < listed; i++) {
        const Operand *item = (i % 2 == 0 ? call->keys : call->values).items[i / 2];
        views[i] = by_heads(layout_of(call), &item->view, sizes->key_heads);
        planned[FIRST_LISTED + i] = (PlannedView){item, VIEW_READ, &views[i]};
    }
    return op_plan_views(op, us_attention, plan.attention, plan.size, count, planned);
}

aclnnStatus op_attention_backward(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op) || op_empty(call->query)) {
        return op_plan_nothing(op);
    }
    AttentionPlan plan = plan_of(op, call);
    const Operand *operands[] = {call->query, call->key, call->value, call->shift, call->mask, call->drop, call->out,
                                 call->maximum, call->sum, call->out_gradient, call->query_gradient,
                                 call->key_gradient, call->value_gradient};
    if (!op_refused(op)) {
        const Layout *layout = layout_of(call);
        const int64_t key_heads = plan.attention->sizes.key_heads;
        const int64_t heads[] = {call->heads, call->heads, key_heads, key_heads};
        for (int i = 9; i < ATTENTION_VIEWS; i++) {
            plan.views[i] = by_heads(layout, &operands[i]->view, heads[i - 9]);
        }
    }
    PlannedView planned[ATTENTION_VIEWS];
    for (int i = 0; i < ATTENTION_VIEWS; i++) {
        planned[i] = (PlannedView){operands[i], i < 10 ? VIEW_READ : VIEW_WRITE, &plan.views[i]};
    }
    return op_plan_views(op, us_attention_backward, plan.attention, plan.size, ATTENTION_VIEWS, planned);
}
