/* By coordinates, by numbers of elements, and by truth. */
#include "ascend/opapi/index.h"
#include "ascend/opapi/index_plan.h"
#include "kernels/index/jagged.h"
#include "kernels/index/one_hot.h"
#include "kernels/index/row_groups.h"
#include "kernels/index/truths.h"

/* ---- coordinates along the last axis ---- */

Shape op_shape_named(OpCall *op, const Operand *self, const Operand *indices)
{
    const int32_t rank = indices->view.rank;
    const int64_t named = op_size(indices, -1);
    op_require(op, rank > 0 && named >= 1 && named <= self->view.rank && named <= INDEX_LIMIT, "indices", "shape",
               op->invalid, "indices is %s, %s is %s", op_shape_text(op, indices), self->name, op_shape_text(op, self));
    Shape shape = {0};
    for (int32_t d = 0; d + 1 < rank && !op_refused(op); d++) {
        shape.sizes[shape.rank++] = indices->view.shape[d];
    }
    for (int64_t d = named; d < self->view.rank && shape.rank < VIEW_RANK_LIMIT && !op_refused(op); d++) {
        shape.sizes[shape.rank++] = self->view.shape[d];
    }
    return shape;
}

static aclnnStatus plan_nd(OpCall *op, const Operand *before, const Operand *tensor, const Operand *indices,
                           IndexAction action, bool from_end, const Operand *other)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    IndexPlan plan = {.call = {.action = action, .from_end = from_end, .mask_axis = -1, .rank = other->view.rank}};
    memcpy(plan.call.shape, other->view.shape, sizeof plan.call.shape);
    View index = indices->view;
    const int32_t lead = --index.rank, named = (int32_t)indices->view.shape[lead];
    for (int32_t d = lead; d < other->view.rank; d++) {
        plan.call.steps[d] = tensor->view.strides[named + d - lead];
    }
    for (int32_t k = 0; k < named; k++) {
        const int64_t offset = k * indices->view.strides[lead] * (int64_t)us_dtype_size(index.dtype);
        index_plan_axis(&plan, tensor, k);
        plan.operands[k] = indices;
        plan.views[k] = index_plan_view(&index, &plan.call, 0, lead);
        plan.views[k].data = (void *)((uintptr_t)index.data + (uintptr_t)offset);
    }
    plan.count = plan.call.index_count = named;
    return index_plan_submit(op, &plan, before, tensor, other, NULL);
}

aclnnStatus op_gather_nd(OpCall *op, const Operand *self, const Operand *indices, bool from_end, const Operand *out)
{
    return plan_nd(op, NULL, self, indices, INDEX_READ, from_end, out);
}

aclnnStatus op_scatter_nd(OpCall *op, const Operand *data, const Operand *indices, const Operand *updates,
                          const Operand *out)
{
    return plan_nd(op, data == out ? NULL : data, out, indices, INDEX_PUT, false, updates);
}

/* Whether updates is indices without their last `left_out` axes, then data without its first `named` ones. */
static bool is_update_of(const Operand *data, int64_t named, const Operand *indices, int32_t left_out,
                         const Operand *updates)
{
    const View *of = &updates->view;
    const int32_t lead = indices->view.rank - left_out;
    if (named < 1 || named > data->view.rank || of->rank != lead + data->view.rank - (int32_t)named) {
        return false;
    }
    bool same = true;
    for (int32_t d = 0; d < of->rank; d++) {
        same &= of->shape[d] == (d < lead ? indices->view.shape[d] : data->view.shape[named + d - lead]);
    }
    return same;
}

bool op_adds_fit(const Operand *data, const Operand *indices, const Operand *updates)
{
    return is_update_of(data, 1, indices, 0, updates) || is_update_of(data, op_size(indices, -1), indices, 1, updates);
}

aclnnStatus op_scatter_nd_add(OpCall *op, const Operand *data, const Operand *indices, const Operand *updates)
{
    if (!op_refused(op) && is_update_of(data, 1, indices, 0, updates)) {
        indices = op_shown_as(op, indices, us_view_insert_axis(indices->view, indices->view.rank, 1, 1));
    }
    return plan_nd(op, NULL, data, indices, INDEX_ADD, false, updates);
}

/* ---- flat ---- */

/* `other` is read or written. */
static aclnnStatus plan_flat(OpCall *op, const Operand *tensor, const Operand *index, const Operand *other,
                             const Indexing *call)
{
    const bool reads = call->action == INDEX_READ;
    const View absent = us_view_absent();
    return op_plan_views(op, us_flat_indexing, call, sizeof *call, 4, (const PlannedView[]){
        {NULL, VIEW_READ, &absent}, {tensor, reads ? VIEW_READ : call->clears ? VIEW_WRITE : VIEW_READ_WRITE, NULL},
        {other, reads ? VIEW_WRITE : VIEW_READ, NULL}, {index, VIEW_READ, NULL}});
}

/* The tensor as one axis. */
static aclnnStatus plan_line(OpCall *op, const Operand *tensor, const Operand *index, const Operand *other,
                             IndexAction action)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    IndexPlan plan = index_plan_along(tensor, 0, index, &index->view);
    plan.call.axes[0] = (IndexedAxis){op_elements(tensor), 1};
    plan.call.action = action;
    plan.call.from_end = true;
    return plan_flat(op, tensor, index, other, &plan.call);
}

aclnnStatus op_take(OpCall *op, const Operand *self, const Operand *index, const Operand *out)
{
    return plan_line(op, self, index, out, INDEX_READ);
}

aclnnStatus op_put(OpCall *op, const Operand *self, const Operand *index, const Operand *source, bool accumulate)
{
    return plan_line(op, self, index, source, accumulate ? INDEX_ADD : INDEX_PUT);
}

/* The last `axes` of the tensor are one, which indices of the same leading axes count; all their elements are positions. */
static Indexing along_planes(const Operand *tensor, int32_t axes, const Operand *indices, IndexAction action)
{
    const View *view = &tensor->view;
    const int32_t lead = view->rank - axes;
    Indexing call = {.action = action, .mask_axis = -1, .rank = indices->view.rank, .index_count = 1, .axis_count = 1};
    memcpy(call.shape, indices->view.shape, sizeof call.shape);
    int64_t step = us_shape_elements(axes, view->shape + lead);
    call.axes[0] = (IndexedAxis){step, 1};
    for (int32_t axis = lead - 1; axis >= 0; axis--) {
        call.steps[axis] = step;
        step = (int64_t)((uint64_t)step * (uint64_t)view->shape[axis]); /* op_plan refuses what is too large */
    }
    return call;
}

void require_filled(OpCall *op, const Operand *self)
{
    bool filled = true;
    for (int32_t d = 1; d < self->view.rank; d++) {
        filled = filled && self->view.shape[d] != 0;
    }
    op_require(op, filled, self->name, "empty", op->invalid, "%s is %s: only its first size may be 0", self->name,
               op_shape_text(op, self));
}

void require_places(OpCall *op, const Operand *small, const Operand *large, int32_t axes)
{
    int64_t fewer = 1, more = 1;
    for (int32_t k = 1; k <= axes && !op_refused(op); k++) {
        if (__builtin_mul_overflow(more, op_size(large, -k), &more)) {
            more = INT64_MAX;
        }
        if (__builtin_mul_overflow(fewer, op_size(small, -k), &fewer)) {
            fewer = INT64_MAX;
        }
    }
    op_require(op, more >= fewer, large->name, "places", op->invalid, "%s is %s, %s is %s: it has not a place for each element",
               large->name, op_shape_text(op, large), small->name, op_shape_text(op, small));
}

aclnnStatus op_unpool(OpCall *op, const Operand *self, const Operand *indices, int32_t axes, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    Indexing call = along_planes(out, axes, indices, INDEX_PUT);
    call.clears = true;
    return plan_flat(op, out, indices, self, &call);
}

aclnnStatus op_unpool_backward(OpCall *op, const Operand *slopes, const Operand *indices, int32_t axes,
                               const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Indexing call = along_planes(slopes, axes, indices, INDEX_READ);
    return plan_flat(op, slopes, indices, out, &call);
}

static int32_t new_axis(const Operand *self, int64_t axis)
{
    return axis < 0 ? self->view.rank : (int32_t)axis;
}

Shape op_shape_one_hot(OpCall *op, const Operand *self, int64_t classes, int64_t axis)
{
    Shape shape = op_shape(self);
    if (op_refused(op) || shape.rank >= VIEW_RANK_LIMIT) {
        return (Shape){0};
    }
    const int32_t at = new_axis(self, axis);
    for (int32_t d = shape.rank++; d > at; d--) {
        shape.sizes[d] = shape.sizes[d - 1];
    }
    shape.sizes[at] = classes;
    return shape;
}

aclnnStatus op_one_hot(OpCall *op, const Operand *self, int64_t axis, const Operand *on, const Operand *off,
                       const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const OneHot call = {new_axis(self, axis)};
    return op_plan_operands(op, us_one_hot, &call, sizeof call, OPERANDS(self, on, off), OPERANDS(out));
}

aclnnStatus op_masked_scatter(OpCall *op, const Operand *self, const Operand *mask, const Operand *source)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View truth = us_view_broadcast(&mask->view, self->view.rank, self->view.shape);
    return op_plan_views(op, us_masked_scatter, NULL, 0, 3, (const PlannedView[]){
        {self, VIEW_READ_WRITE, NULL}, {mask, VIEW_READ, &truth}, {source, VIEW_READ, NULL}});
}

aclnnStatus op_bincount(OpCall *op, const Operand *self, const Operand *weights, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    IndexPlan plan = index_plan_along(out, 0, self, &self->view);
    plan.call.action = INDEX_ADD;
    plan.call.clears = true;
    plan.call.value = ONE;
    plan.views[0] = self->view;
    return index_plan_submit(op, &plan, NULL, out, op_given(weights) ? weights : NULL, NULL);
}

/* ---- elements that are not zero ---- */

aclnnStatus op_nonzero(OpCall *op, const Operand *self, const Operand *out, bool columns)
{
    op_plan_shape_of(op, out);
    return op_plan_operands(op, columns ? us_nonzero_columns : us_nonzero, NULL, 0, OPERANDS(self), OPERANDS(out));
}

aclnnStatus op_masked_select(OpCall *op, const Operand *self, const Operand *mask, Shape joint, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View from = us_view_broadcast(&self->view, joint.rank, joint.sizes);
    const View truth = us_view_broadcast(&mask->view, joint.rank, joint.sizes);
    op_plan_shape_of(op, out);
    return op_plan_views(op, us_masked_select, NULL, 0, 3, (const PlannedView[]){
        {self, VIEW_READ, &from}, {mask, VIEW_READ, &truth}, {out, VIEW_WRITE, NULL}});
}

/* ---- groups of rows ---- */

Shape op_shape_summed_groups(OpCall *op, const Operand *rows, const Operand *ends)
{
    (void)op;
    return op_shape_of(2, (const int64_t[]){op_size(op_given(ends) ? ends : rows, 0), op_size(rows, -1)});
}

aclnnStatus op_sum_groups(OpCall *op, const Operand *rows, const Operand *ends, bool sizes, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const SumGroups how = {sizes};
    return op_plan_operands(op, us_sum_groups, &how, sizeof how, OPERANDS(rows, ends), OPERANDS(out));
}

/* ---- lists of different lengths ---- */

aclnnStatus op_expand_permutation(OpCall *op, const Operand *permutation, const Operand *begins, const Operand *ends,
                                  const Operand *out)
{
    return op_plan_operands(op, us_expand_permutation, NULL, 0, OPERANDS(permutation, begins, ends), OPERANDS(out));
}
