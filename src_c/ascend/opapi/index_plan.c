#include "ascend/opapi/index_plan.h"

void index_plan_axis(IndexPlan *plan, const Operand *self, int32_t axis)
{
    plan->call.axes[plan->call.axis_count++] = (IndexedAxis){self->view.shape[axis], self->view.strides[axis]};
}

View index_plan_view(const View *index, const Indexing *call, int32_t joint_axis, int32_t joint_rank)
{
    View view = {.data = index->data, .dtype = index->dtype, .rank = call->rank};
    memcpy(view.shape, call->shape, sizeof call->shape);
    for (int32_t d = 0; d < index->rank; d++) {
        const int32_t to = joint_axis + joint_rank - index->rank + d;
        view.strides[to] = index->shape[d] == 1 ? 0 : index->strides[d];
        view.shape[to] = index->shape[d] == 1 ? call->shape[to] : index->shape[d];
    }
    return view;
}

IndexPlan index_plan_along(const Operand *self, int32_t axis, const Operand *index, const View *positions)
{
    IndexPlan plan = {.call = {.mask_axis = -1, .rank = positions->rank, .index_count = 1}, .count = 1};
    memcpy(plan.call.shape, positions->shape, sizeof plan.call.shape);
    plan.operands[0] = index;
    if (self->view.rank > 0) {
        index_plan_axis(&plan, self, axis);
    } else {
        plan.call.axes[plan.call.axis_count++] = (IndexedAxis){1, 1};
    }
    return plan;
}

aclnnStatus index_plan_submit(OpCall *op, IndexPlan *plan, const Operand *before, const Operand *self,
                              const Operand *other, const View *other_view)
{
    const bool reads = plan->call.action == INDEX_READ;
    const View absent = us_view_absent();
    PlannedView views[3 + INDEX_LIMIT] = {
        {before, VIEW_READ, before != NULL ? NULL : &absent},
        {self, reads ? VIEW_READ : before != NULL || plan->call.clears ? VIEW_WRITE : VIEW_READ_WRITE, NULL},
        {other, reads ? VIEW_WRITE : VIEW_READ, other != NULL ? other_view : &absent},
    };
    for (int32_t k = 0; k < plan->count; k++) {
        views[3 + k] = (PlannedView){plan->operands[k], VIEW_READ, &plan->views[k]};
    }
    return op_plan_views(op, us_indexing, &plan->call, sizeof plan->call, 3 + plan->count, views);
}
