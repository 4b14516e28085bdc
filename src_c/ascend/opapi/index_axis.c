/* One index tensor along one axis. */
#include "ascend/opapi/index.h"
#include "ascend/opapi/index_plan.h"
#include "kernels/index/coalesce.h"

Shape op_shape_picked(OpCall *op, const Operand *self, int32_t axis, const Operand *index)
{
    if (index->view.rank > 0 && self->view.rank > 0) {
        return op_shape_selected(op, self, axis, index);
    }
    Shape shape = op_shape(self);
    if (!op_refused(op) && axis < shape.rank) {
        shape.sizes[axis] = 1;
    }
    return shape;
}

aclnnStatus op_index_select(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    IndexPlan plan = index_plan_along(self, axis, index, &out->view);
    const int32_t rank = index->view.rank > 0 || out->view.rank < self->view.rank ? index->view.rank : 1;
    for (int32_t d = 0; d < out->view.rank && self->view.rank > 0; d++) {
        const int32_t of_self = d < axis ? d : d - rank + 1;
        plan.call.steps[d] = d >= axis && d < axis + rank ? 0 : self->view.strides[of_self];
    }
    plan.views[0] = index_plan_view(&index->view, &plan.call, index->view.rank == 0 ? 0 : axis, index->view.rank);
    return index_plan_submit(op, &plan, NULL, self, out, NULL);
}

/* Steps along the axes that index and self share: all but the indexed one. */
static void share_axes(IndexPlan *plan, const Operand *self, int32_t axis, const Operand *index)
{
    for (int32_t d = 0; d < plan->call.rank; d++) {
        plan->call.steps[d] = d == axis ? 0 : self->view.strides[d];
    }
    plan->views[0] = index->view;
}

aclnnStatus op_gather(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    IndexPlan plan = index_plan_along(self, axis, index, &index->view);
    plan.call.from_end = true;
    share_axes(&plan, self, axis, index);
    return index_plan_submit(op, &plan, NULL, self, out, NULL);
}

aclnnStatus op_scatter(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *src,
                       Number value, int64_t reduce, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    View source = us_view_absent();
    if (src != NULL) { /* only the part that index covers */
        source = src->view;
        memcpy(source.shape, index->view.shape, sizeof source.shape);
    }
    IndexPlan plan = index_plan_along(out, axis, index, &index->view);
    plan.call.action = reduce == 0 ? INDEX_PUT : reduce == 1 ? INDEX_ADD : INDEX_MULTIPLY;
    plan.call.from_end = true;
    plan.call.value = value;
    share_axes(&plan, out, axis, index);
    return index_plan_submit(op, &plan, self == out ? NULL : self, out, src, &source);
}

bool op_fits_in(const Operand *index, const Operand *operand, int32_t but_axis)
{
    if (index->view.rank != operand->view.rank) {
        return false;
    }
    for (int32_t d = 0; d < index->view.rank; d++) {
        if (d != but_axis && index->view.shape[d] > operand->view.shape[d]) {
            return false;
        }
    }
    return true;
}

bool op_adds_fast(const Operand *self, int32_t axis)
{
    return self->view.rank == 2 && axis == 0 &&
           dtype_in(self->dtype, T_F32 | T_F16 | T_I32 | T_I16 | T_BF16);
}

/* ---- slices along an axis ---- */

static int64_t index_count(const Operand *index)
{
    return index->view.rank == 0 ? 1 : index->view.shape[0];
}

bool op_slices_fit(const Operand *self, int32_t axis, const Operand *index, const Operand *source)
{
    const int64_t count = index_count(index);
    if (source->view.rank == 0 || self->view.rank == 0) {
        return count == 1 && op_elements(source) == 1 && self->view.rank <= 1;
    }
    bool fits = source->view.rank == self->view.rank;
    for (int32_t d = 0; d < self->view.rank && fits; d++) {
        fits = source->view.shape[d] == (d == axis ? count : self->view.shape[d]);
    }
    return fits;
}

/* Positions are those of `out`, with `count` slices along the axis. */
static IndexPlan slices_of(const Operand *out, int32_t axis, int64_t count)
{
    View positions = out->view;
    if (positions.rank > 0) {
        positions.shape[axis] = count;
    }
    IndexPlan plan = index_plan_along(out, axis, NULL, &positions);
    for (int32_t d = 0; d < positions.rank; d++) {
        plan.call.steps[d] = d == axis ? 0 : out->view.strides[d];
    }
    return plan;
}

static aclnnStatus put_slices(OpCall *op, const Operand *self, int32_t axis, const Operand *index,
                              const Operand *source, IndexAction action, const Number *alpha, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    IndexPlan plan = slices_of(out, axis, index_count(index));
    plan.call.action = action;
    plan.call.scales = alpha != NULL && (alpha->real != 1 || alpha->imaginary != 0 || alpha->integer != 1);
    plan.call.value = alpha != NULL ? *alpha : ZERO;
    plan.operands[0] = index;
    plan.views[0] = index_plan_view(&index->view, &plan.call, out->view.rank > 0 ? axis : 0, 1);
    if (out->view.rank == 0) {
        plan.views[0].rank = 0;
    }
    View given = source->view;
    given.rank = plan.call.rank;
    memcpy(given.shape, plan.call.shape, sizeof given.shape);
    if (source->view.rank != plan.call.rank) {
        memset(given.strides, 0, sizeof given.strides);
    }
    return index_plan_submit(op, &plan, self == out ? NULL : self, out, source, &given);
}

aclnnStatus op_index_add(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *source,
                         Number alpha, const Operand *out)
{
    return put_slices(op, self, axis, index, source, INDEX_ADD, &alpha, out);
}

aclnnStatus op_index_copy(OpCall *op, const Operand *self, int32_t axis, const Operand *index, const Operand *source,
                          const Operand *out)
{
    return put_slices(op, self, axis, index, source, INDEX_PUT, NULL, out);
}

void require_each_inside(OpCall *op, const Operand *self, int32_t axis, IntArguments index)
{
    const int64_t size = self->view.rank == 0 ? 1 : self->view.shape[op_refused(op) ? 0 : axis];
    for (int64_t i = 0; i < index.count && !op_refused(op); i++) {
        op_require(op, index.values[i] >= -size && index.values[i] < size, index.name, "range", op->invalid,
                   "entry %lld of %s is %lld, the dimension has %lld", (long long)i, index.name,
                   (long long)index.values[i], (long long)size);
    }
}

aclnnStatus op_index_fill(OpCall *op, const Operand *self, int32_t axis, IntArguments index, Number value,
                          const Operand *out)
{
    if (index.count == 0) { /* a self of rank 0 would still have one place */
        return self == out ? op_plan_nothing(op) : op_copy(op, self, out);
    }
    const size_t size = sizeof(IndexFill) + (size_t)index.count * sizeof *index.values;
    IndexFill *fill = op_refused(op) ? NULL : executor_take(op->executor, size);
    op_require(op, fill != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    fill->call = slices_of(out, axis, index.count).call;
    fill->call.action = INDEX_PUT;
    fill->call.from_end = true;
    fill->call.value = value;
    fill->axis = axis;
    fill->count = index.count;
    memcpy(fill->index, index.values, (size_t)index.count * sizeof *index.values);
    const View absent = us_view_absent();
    const bool in_place = self == out;
    return op_plan_views(op, us_index_fill, fill, size, 2, (const PlannedView[]){
        {in_place ? NULL : self, VIEW_READ, in_place ? &absent : NULL},
        {out, in_place ? VIEW_READ_WRITE : VIEW_WRITE, NULL}});
}

aclnnStatus op_index_fill_inside(OpCall *op, const Operand *self, int32_t axis, const Operand *index, Number value,
                                 const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    IndexFill fill = {.call = slices_of(out, axis, 0).call, .axis = axis};
    fill.call.action = INDEX_PUT;
    fill.call.from_end = true;
    fill.call.value = value;
    if (out->view.rank == 0) { /* as many positions as indices name its element */
        fill.call.rank = 1;
    }
    const View absent = us_view_absent();
    const bool in_place = self == out;
    return op_plan_views(op, us_index_fill_inside, &fill, sizeof fill, 3, (const PlannedView[]){
        {in_place ? NULL : self, VIEW_READ, in_place ? &absent : NULL},
        {out, in_place ? VIEW_READ_WRITE : VIEW_WRITE, NULL}, {index, VIEW_READ, NULL}});
}

/* ---- entries of sparse tensors ---- */

/* The axis of the coordinates that counts entries: the last one where it may be. */
static int32_t entry_axis(const Operand *coordinates, const Operand *values)
{
    return op_size(coordinates, 1) == op_size(values, 0) ? 1 : 0;
}

void op_require_coalesced(OpCall *op, const Operand *coordinates, const Operand *values, const Operand *new_coordinates,
                          const Operand *new_values)
{
    if (op_refused(op)) {
        return;
    }
    const int32_t axis = entry_axis(coordinates, values);
    op_require(op, op_size(coordinates, axis) == op_size(values, 0), coordinates->name, "shape", op->invalid,
               "%s is %s, %s is %s: there are not coordinates for each value", coordinates->name,
               op_shape_text(op, coordinates), values->name, op_shape_text(op, values));
    Shape shape = op_shape(values);
    shape.sizes[0] = op_size(new_values, 0);
    op_require_shape(op, new_values, &shape);
    shape = op_shape(coordinates);
    shape.sizes[axis] = op_size(new_values, 0);
    op_require_shape(op, new_coordinates, &shape);
}

aclnnStatus op_coalesce(OpCall *op, const Operand *groups, const Operand *coordinates, const Operand *values,
                        const Operand *new_coordinates, const Operand *new_values)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const bool turned = entry_axis(coordinates, values) == 0;
    const View from = turned ? op_swap_axes(coordinates->view, 0, 1) : coordinates->view;
    const View to = turned ? op_swap_axes(new_coordinates->view, 0, 1) : new_coordinates->view;
    const PlannedView views[] = {{groups, VIEW_READ, NULL}, {coordinates, VIEW_READ, &from}, {values, VIEW_READ, NULL},
                                 {new_coordinates, VIEW_WRITE, &to}, {new_values, VIEW_READ_WRITE, NULL}};
    return op_plan_views(op, us_coalesce, NULL, 0, 5, views);
}
