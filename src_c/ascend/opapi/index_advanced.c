/* Index tensors and masks for several axes at once. */
#include "ascend/opapi/index.h"
#include "ascend/opapi/index_plan.h"

/* ---- which axes are indexed by what ---- */

typedef struct Layout {
    bool valid;
    int32_t count; /* tensors that index */
    const Operand *tensors[VIEW_RANK_LIMIT];
    int32_t mask_rank[VIEW_RANK_LIMIT]; /* 0: integers */
    int32_t axes[VIEW_RANK_LIMIT];      /* the first axis that each indexes */
    bool indexed[VIEW_RANK_LIMIT];      /* per axis of self */
    bool masks;
    Shape joint;         /* of the indices; its last size is a placeholder (1) where masks decide */
    int32_t joint_axis;  /* where it is among the positions' axes */
} Layout;

static bool is_nothing(const Operand *index)
{
    return op_given(index) && index->view.rank == 1 && op_empty(index);
}

/* An empty one of another type, or, beside others that are not, of self's own: PyTorch's adapter makes them of it. */
static bool stands_for_all(const Operand *self, Operands indices, const Operand *index)
{
    const DTypeSet types = T_I32 | T_I64 | T_B;
    if (!op_given(index) || (op_empty(index) && !dtype_in(index->dtype, types))) {
        return true;
    }
    bool others = false;
    for (int32_t k = 0; k < indices.count; k++) {
        others |= op_given(indices.items[k]) && !is_nothing(indices.items[k]);
    }
    return others && is_nothing(index) && index->dtype == self->dtype;
}

static bool mask_fits(const Operand *self, const Operand *mask, int32_t axis)
{
    for (int32_t d = 0; d < mask->view.rank; d++) {
        if (mask->view.shape[d] != self->view.shape[axis + d]) {
            return false;
        }
    }
    return true;
}

/* Where the joint index goes: in place if the indexed axes are neighbours. */
static int32_t joint_axis_of(const Layout *layout, int32_t rank)
{
    int32_t first = -1, last = -1, count = 0;
    for (int32_t axis = 0; axis < rank; axis++) {
        if (layout->indexed[axis]) {
            first = first < 0 ? axis : first;
            last = axis;
            count++;
        }
    }
    return count > 0 && last - first + 1 == count ? first : 0;
}

static void join_indices(OpCall *op, Operands indices, Layout *layout)
{
    View views[VIEW_RANK_LIMIT];
    const View *shapes[VIEW_RANK_LIMIT];
    int32_t count = 0;
    for (int32_t k = 0; k < layout->count; k++) {
        if (layout->mask_rank[k] > 0) {
            views[count] = us_view_contiguous(NULL, DTYPE_INT64, 1, (const int64_t[]){1});
        } else {
            views[count] = layout->tensors[k]->view;
        }
        shapes[count] = &views[count];
        count++;
    }
    layout->joint.rank = 0;
    op_require(op, us_broadcast_shape(shapes, count, &layout->joint.rank, layout->joint.sizes, NULL), indices.name,
               "broadcast", op->invalid, "the tensors of %s do not broadcast", indices.name);
}

static Layout layout_of(OpCall *op, const Operand *self, Operands indices)
{
    Layout layout = {0};
    int32_t axis = 0;
    for (int32_t k = 0; k < indices.count && !op_refused(op); k++) {
        const Operand *index = indices.items[k];
        const bool whole = stands_for_all(self, indices, index), mask = !whole && index->dtype == ACL_BOOL;
        const int32_t covers = mask ? index->view.rank : 1;
        op_require(op, whole || dtype_in(index->dtype, T_I32 | T_I64 | T_B), indices.name, "dtype",
                   op->invalid, "tensor %d of %s is %s", (int)k, indices.name, acl_dtype_name(index->dtype));
        op_require(op, axis + covers <= self->view.rank && (!mask || covers > 0), indices.name, "length", op->invalid,
                   "%s index more dimensions than the %d of %s", indices.name, (int)self->view.rank, self->name);
        op_require(op, op_refused(op) || !mask || mask_fits(self, index, axis), indices.name, "mask", op->invalid,
                   "the mask %d of %s is %s, %s is %s", (int)k, indices.name, op_shape_text(op, index), self->name,
                   op_shape_text(op, self));
        op_require(op, whole || layout.count < INDEX_LIMIT, "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
                   "more than %d indices", INDEX_LIMIT);
        if (op_refused(op)) {
            return layout;
        }
        if (!whole) {
            layout.tensors[layout.count] = index;
            layout.mask_rank[layout.count] = mask ? covers : 0;
            layout.axes[layout.count++] = axis;
            layout.masks |= mask;
            for (int32_t d = axis; d < axis + covers; d++) {
                layout.indexed[d] = true;
            }
        }
        axis += covers;
    }
    if (!op_refused(op)) {
        join_indices(op, indices, &layout);
    }
    layout.joint_axis = joint_axis_of(&layout, self->view.rank);
    layout.valid = !op_refused(op);
    return layout;
}

void require_indices(OpCall *op, const Operand *self, Operands indices)
{
    layout_of(op, self, indices);
}

/* self[indices], and for each of its axes the axis of self that it is, or -1 for the joint index. */
static Shape indexed_shape(const Layout *layout, const Operand *self, int32_t *axes)
{
    Shape shape = {0};
    for (int32_t axis = 0; axis <= self->view.rank; axis++) {
        for (int32_t d = 0; axis == layout->joint_axis && d < layout->joint.rank && shape.rank < VIEW_RANK_LIMIT; d++) {
            axes[shape.rank] = -1;
            shape.sizes[shape.rank++] = layout->joint.sizes[d];
        }
        if (axis < self->view.rank && !layout->indexed[axis] && shape.rank < VIEW_RANK_LIMIT) {
            axes[shape.rank] = axis;
            shape.sizes[shape.rank++] = self->view.shape[axis];
        }
    }
    return shape;
}

/* Programs leave out the axes of a joint index of one element. */
static bool leaves_joint_out(const Layout *layout, const Shape *shape, const Operand *out)
{
    const Shape *joint = &layout->joint;
    return !layout->masks && joint->rank > 0 && us_shape_elements(joint->rank, joint->sizes) == 1 && op_given(out) &&
           out->view.rank == shape->rank - joint->rank;
}

Shape op_shape_indexed(OpCall *op, const Operand *self, Operands indices, const Operand *out)
{
    int32_t axes[VIEW_RANK_LIMIT];
    const Layout layout = layout_of(op, self, indices);
    if (!layout.valid || layout.joint.rank + self->view.rank > VIEW_RANK_LIMIT) {
        return (Shape){0};
    }
    Shape shape = indexed_shape(&layout, self, axes);
    const int32_t decided = layout.joint_axis + layout.joint.rank - 1;
    if (layout.masks && op_given(out) && decided < out->view.rank && shape.sizes[decided] == 1) {
        shape.sizes[decided] = out->view.shape[decided];
    }
    if (leaves_joint_out(&layout, &shape, out)) {
        Shape rest = {0};
        for (int32_t d = 0; d < shape.rank; d++) {
            if (axes[d] >= 0) {
                rest.sizes[rest.rank++] = shape.sizes[d];
            }
        }
        return rest;
    }
    return shape;
}

/* out with the axes that it leaves out; one of shape [1] may stand for a single number. */
static View indexed_view(const Layout *layout, const Shape *shape, const int32_t *axes, const Operand *out)
{
    View view = {.data = out->view.data, .dtype = out->view.dtype, .rank = shape->rank};
    const bool left_out = leaves_joint_out(layout, shape, out);
    int32_t at = 0;
    for (int32_t d = 0; d < shape->rank; d++) {
        const bool absent = left_out && axes[d] < 0;
        view.shape[d] = absent ? 1 : out->view.shape[at];
        view.strides[d] = absent ? 0 : out->view.strides[at++];
    }
    return view;
}

static IndexPlan plan_of(OpCall *op, const Layout *layout, const Operand *self, IndexAction action, Shape shape,
                         const int32_t *axes)
{
    IndexPlan plan = {.call = {.action = action, .from_end = true, .mask_axis = -1, .rank = shape.rank}};
    memcpy(plan.call.shape, shape.sizes, sizeof plan.call.shape);
    for (int32_t d = 0; d < shape.rank; d++) {
        plan.call.steps[d] = axes[d] < 0 ? 0 : self->view.strides[axes[d]];
    }
    if (layout->masks) {
        plan.call.mask_axis = layout->joint_axis + layout->joint.rank - 1;
    }
    for (int32_t k = 0; k < layout->count && !op_refused(op); k++) {
        const Operand *tensor = layout->tensors[k];
        const int32_t covers = layout->mask_rank[k] > 0 ? layout->mask_rank[k] : 1;
        op_require(op, plan.call.axis_count + covers <= INDEX_LIMIT, "kernel", "missing",
                   ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "more than %d indexed dimensions", INDEX_LIMIT);
        for (int32_t d = 0; d < covers && !op_refused(op); d++) {
            index_plan_axis(&plan, self, layout->axes[k] + d);
        }
        plan.call.mask_rank[k] = layout->mask_rank[k];
        plan.operands[k] = tensor;
        plan.views[k] = layout->mask_rank[k] > 0
                            ? tensor->view
                            : index_plan_view(&tensor->view, &plan.call, layout->joint_axis, layout->joint.rank);
        plan.call.index_count = ++plan.count;
    }
    return plan;
}

/* ---- operators ---- */

aclnnStatus op_index(OpCall *op, const Operand *self, Operands indices, const Operand *out)
{
    int32_t axes[VIEW_RANK_LIMIT] = {0};
    const Layout layout = layout_of(op, self, indices);
    if (!layout.valid) {
        return op_plan_nothing(op);
    }
    Shape shape = indexed_shape(&layout, self, axes);
    const View view = indexed_view(&layout, &shape, axes, out);
    memcpy(shape.sizes, view.shape, sizeof shape.sizes);
    IndexPlan plan = plan_of(op, &layout, self, INDEX_READ, shape, axes);
    return index_plan_submit(op, &plan, NULL, self, out, &view);
}

/* values in the shape of self[indices], or where masks decide, in its own size. */
static bool values_view(const Operand *values, const Layout *layout, const Shape *shape, View *view)
{
    const int32_t extra = shape->rank - values->view.rank, decided = layout->joint_axis + layout->joint.rank - 1;
    *view = (View){.data = values->view.data, .dtype = values->view.dtype, .rank = shape->rank};
    for (int32_t d = 0; d < shape->rank; d++) {
        const int64_t size = d < extra ? 1 : values->view.shape[d - extra];
        const bool free = layout->masks && d == decided && shape->sizes[d] == 1;
        if (size != 1 && size != shape->sizes[d] && !free) {
            return false;
        }
        view->shape[d] = free ? size : shape->sizes[d];
        view->strides[d] = size == 1 ? 0 : values->view.strides[d - extra];
    }
    return extra >= 0;
}

void require_indexed_values(OpCall *op, const Operand *self, Operands indices, const Operand *values)
{
    int32_t axes[VIEW_RANK_LIMIT] = {0};
    View view;
    const Layout layout = layout_of(op, self, indices);
    const Shape shape = layout.valid ? indexed_shape(&layout, self, axes) : (Shape){0};
    op_require(op, op_refused(op) || values_view(values, &layout, &shape, &view), values->name, "shape", op->invalid,
               "%s is %s and does not broadcast to what the indices name", values->name, op_shape_text(op, values));
}

aclnnStatus op_index_put(OpCall *op, const Operand *self, Operands indices, const Operand *values, bool accumulate)
{
    int32_t axes[VIEW_RANK_LIMIT] = {0};
    View view = us_view_absent();
    const Layout layout = layout_of(op, self, indices);
    if (!layout.valid) {
        return op_plan_nothing(op);
    }
    const Shape shape = indexed_shape(&layout, self, axes);
    values_view(values, &layout, &shape, &view);
    IndexPlan plan = plan_of(op, &layout, self, accumulate ? INDEX_ADD : INDEX_PUT, shape, axes);
    return index_plan_submit(op, &plan, NULL, self, values, &view);
}
