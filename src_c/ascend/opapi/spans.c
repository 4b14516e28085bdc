#include "ascend/opapi/spans.h"

#include "ascend/common/op_memory.h"
#include "kernels/index/spans.h"
#include "kernels/quantize/put_levels.h"

/* axis: of updates, counted from the end when negative. */
static int32_t axis_of(const Operand *updates, int64_t axis)
{
    return (int32_t)(axis < 0 ? axis + updates->view.rank : axis);
}

/* Whether an entry of updates has the sizes, but along the axis up to that; sizes[0] is that of axis 1. */
static bool entry_fits(const Operand *updates, const int64_t *sizes, int32_t axis)
{
    bool fits = true;
    for (int32_t d = 1; d < updates->view.rank && fits; d++) {
        const int64_t size = updates->view.shape[d];
        fits = d == axis ? size <= sizes[d - 1] : size == sizes[d - 1];
    }
    return fits;
}

bool op_spans_fit(const Operand *data, const Operand *places, const Operand *updates, int64_t axis)
{
    const int64_t entries = places->view.rank == 0 ? 1 : places->view.shape[0];
    return updates->view.shape[0] == entries && entries <= data->view.shape[0] &&
           entry_fits(updates, data->view.shape + 1, axis_of(updates, axis));
}

bool op_listed_spans_fit(Operands list, const Operand *updates, int64_t axis)
{
    const View *first = &list.items[0]->view;
    return updates->view.rank == first->rank + 1 && updates->view.shape[0] == list.count &&
           entry_fits(updates, first->shape, axis_of(updates, axis));
}

aclnnStatus op_put_spans(OpCall *op, Operands targets, bool apart, const Operand *places, const Operand *mask,
                         const Operand *updates, int64_t axis)
{
    const PutSpans put = {axis_of(updates, axis), apart};
    PlannedView *views = op_take(op, ((size_t)targets.count + 3) * sizeof *views);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    views[0] = (PlannedView){places, VIEW_READ, NULL};
    views[1] = (PlannedView){mask, VIEW_READ, NULL};
    views[2] = (PlannedView){updates, VIEW_READ, NULL};
    for (int32_t i = 0; i < targets.count; i++) {
        views[3 + i] = (PlannedView){targets.items[i], VIEW_READ_WRITE, NULL};
    }
    return op_plan_views(op, us_put_spans, &put, sizeof put, targets.count + 3, views);
}

aclnnStatus op_put_levels(OpCall *op, const Operand *target, const Operand *places, const Operand *updates, int64_t axis,
                          const Operand *step, const Operand *zero)
{
    if (op_refused(op) || op_empty(updates)) {
        return op_plan_nothing(op);
    }
    const PutSpans put = {axis_of(updates, axis), false};
    const PlannedView views[] = {{places, VIEW_READ, NULL}, {updates, VIEW_READ, NULL}, {step, VIEW_READ, NULL},
                                 {zero, VIEW_READ, NULL}, {target, VIEW_READ_WRITE, NULL}};
    return op_plan_views(op, us_put_levels, &put, sizeof put, sizeof views / sizeof *views, views);
}
