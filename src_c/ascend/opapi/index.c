#include "ascend/opapi/index.h"

#include "kernels/index/indexing.h"
#include "kernels/index/truths.h"

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
    if (!op_given(index) || (op_empty(index) && (types & DTYPE_BIT(index->dtype)) == 0)) {
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
        op_require(op, whole || ((T_I32 | T_I64 | T_B) & DTYPE_BIT(index->dtype)) != 0, indices.name, "dtype",
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
    return shape;
}

/* ---- from a layout to the kernel ---- */

typedef struct IndexPlan {
    Indexing call;
    int32_t count; /* of index tensors */
    const Operand *operands[INDEX_LIMIT];
    View views[INDEX_LIMIT];
} IndexPlan;

static void add_axis(IndexPlan *plan, const Operand *self, int32_t axis)
{
    plan->call.axes[plan->call.axis_count++] = (IndexedAxis){self->view.shape[axis], self->view.strides[axis]};
}

/* The view of an index in the positions' shape: its axes are those of the joint index, aligned at the end. */
static View index_view(const View *index, const Indexing *call, int32_t joint_axis, int32_t joint_rank)
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
            add_axis(&plan, self, layout->axes[k] + d);
        }
        plan.call.mask_rank[k] = layout->mask_rank[k];
        plan.operands[k] = tensor;
        plan.views[k] = layout->mask_rank[k] > 0
                            ? tensor->view
                            : index_view(&tensor->view, &plan.call, layout->joint_axis, layout->joint.rank);
        plan.call.index_count = ++plan.count;
    }
    return plan;
}

/* `before` may be NULL, and `other`, for the value. */
static aclnnStatus submit(OpCall *op, IndexPlan *plan, const Operand *before, const Operand *self, const Operand *other,
                          const View *other_view)
{
    const bool reads = plan->call.action == INDEX_READ;
    const View absent = us_view_absent();
    PlannedView views[3 + INDEX_LIMIT] = {
        {before, VIEW_READ, before != NULL ? NULL : &absent},
        {self, reads ? VIEW_READ : before != NULL ? VIEW_WRITE : VIEW_READ_WRITE, NULL},
        {other, reads ? VIEW_WRITE : VIEW_READ, other != NULL ? other_view : &absent},
    };
    for (int32_t k = 0; k < plan->count; k++) {
        views[3 + k] = (PlannedView){plan->operands[k], VIEW_READ, &plan->views[k]};
    }
    return op_plan_views(op, us_indexing, &plan->call, sizeof plan->call, 3 + plan->count, views);
}

/* ---- advanced indexing ---- */

aclnnStatus op_index(OpCall *op, const Operand *self, Operands indices, const Operand *out)
{
    int32_t axes[VIEW_RANK_LIMIT] = {0};
    const Layout layout = layout_of(op, self, indices);
    if (!layout.valid) {
        return op_plan_nothing(op);
    }
    Shape shape = indexed_shape(&layout, self, axes);
    memcpy(shape.sizes, out->view.shape, sizeof shape.sizes);
    IndexPlan plan = plan_of(op, &layout, self, INDEX_READ, shape, axes);
    return submit(op, &plan, NULL, self, out, NULL);
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
    return submit(op, &plan, NULL, self, values, &view);
}

/* ---- one axis ---- */

/* Positions are those of `other`, `index_axis` the first one that index has. */
static IndexPlan along_axis(const Operand *self, int32_t axis, const Operand *index, const View *positions)
{
    IndexPlan plan = {.call = {.mask_axis = -1, .rank = positions->rank, .index_count = 1}, .count = 1};
    memcpy(plan.call.shape, positions->shape, sizeof plan.call.shape);
    plan.operands[0] = index;
    if (self->view.rank > 0) {
        add_axis(&plan, self, axis);
    } else {
        plan.call.axes[plan.call.axis_count++] = (IndexedAxis){1, 1};
    }
    return plan;
}

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
    IndexPlan plan = along_axis(self, axis, index, &out->view);
    const int32_t rank = index->view.rank > 0 || out->view.rank < self->view.rank ? index->view.rank : 1;
    for (int32_t d = 0; d < out->view.rank && self->view.rank > 0; d++) {
        const int32_t of_self = d < axis ? d : d - rank + 1;
        plan.call.steps[d] = d >= axis && d < axis + rank ? 0 : self->view.strides[of_self];
    }
    plan.views[0] = index_view(&index->view, &plan.call, index->view.rank == 0 ? 0 : axis, index->view.rank);
    return submit(op, &plan, NULL, self, out, NULL);
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
    IndexPlan plan = along_axis(self, axis, index, &index->view);
    plan.call.from_end = true;
    share_axes(&plan, self, axis, index);
    return submit(op, &plan, NULL, self, out, NULL);
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
    IndexPlan plan = along_axis(out, axis, index, &index->view);
    plan.call.action = reduce == 0 ? INDEX_PUT : reduce == 1 ? INDEX_ADD : INDEX_MULTIPLY;
    plan.call.from_end = true;
    plan.call.value = value;
    share_axes(&plan, out, axis, index);
    return submit(op, &plan, self == out ? NULL : self, out, src, &source);
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

/* ---- slices along an axis ---- */

static int64_t index_count(const Operand *index)
{
    return index->view.rank == 0 ? 1 : index->view.shape[0];
}

bool op_slices_fit(const Operand *self, int32_t axis, const Operand *index, const Operand *source)
{
    const int64_t count = index_count(index);
    if (source->view.rank == 0 || self->view.rank == 0) {
        return count == 1 && us_view_elements(&source->view) == 1 && self->view.rank <= 1;
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
    IndexPlan plan = along_axis(out, axis, NULL, &positions);
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
    plan.call.scales = alpha != NULL;
    plan.call.value = alpha != NULL ? *alpha : ZERO;
    plan.operands[0] = index;
    plan.views[0] = index_view(&index->view, &plan.call, out->view.rank > 0 ? axis : 0, 1);
    if (out->view.rank == 0) {
        plan.views[0].rank = 0;
    }
    View given = source->view;
    given.rank = plan.call.rank;
    memcpy(given.shape, plan.call.shape, sizeof given.shape);
    if (source->view.rank != plan.call.rank) {
        memset(given.strides, 0, sizeof given.strides);
    }
    return submit(op, &plan, self == out ? NULL : self, out, source, &given);
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
        add_axis(&plan, tensor, k);
        plan.operands[k] = indices;
        plan.views[k] = index_view(&index, &plan.call, 0, lead);
        plan.views[k].data = (void *)((uintptr_t)index.data + (uintptr_t)offset);
    }
    plan.count = plan.call.index_count = named;
    return submit(op, &plan, before, tensor, other, NULL);
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
    IndexPlan plan = along_axis(tensor, 0, index, &index->view);
    plan.call.axes[0] = (IndexedAxis){us_view_elements(&tensor->view), 1};
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
        step *= view->shape[axis];
    }
    return call;
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

/* One element seen with a shape. */
static View repeated(const Operand *element, int32_t rank, const int64_t *shape)
{
    View view = {.data = element->view.data, .dtype = element->view.dtype, .rank = rank};
    memcpy(view.shape, shape, sizeof view.shape);
    return view;
}

aclnnStatus op_one_hot(OpCall *op, const Operand *self, int64_t axis, const Operand *on, const Operand *off,
                       const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const int32_t at = new_axis(self, axis);
    IndexPlan plan = along_axis(out, at, self, &self->view);
    plan.call.action = INDEX_PUT;
    for (int32_t d = 0; d < self->view.rank; d++) {
        plan.call.steps[d] = out->view.strides[d < at ? d : d + 1];
    }
    const View before = repeated(off, out->view.rank, out->view.shape);
    const View value = repeated(on, self->view.rank, self->view.shape);
    return op_plan_views(op, us_indexing, &plan.call, sizeof plan.call, 4, (const PlannedView[]){
        {off, VIEW_READ, &before}, {out, VIEW_WRITE, NULL}, {on, VIEW_READ, &value}, {self, VIEW_READ, NULL}});
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
    IndexPlan plan = along_axis(out, 0, self, &self->view);
    plan.call.action = INDEX_ADD;
    plan.call.clears = true;
    plan.call.value = ONE;
    plan.views[0] = self->view;
    return submit(op, &plan, NULL, out, op_given(weights) ? weights : NULL, NULL);
}

bool op_adds_fast(const Operand *self, int32_t axis)
{
    return self->view.rank == 2 && axis == 0 &&
           ((T_F32 | T_F16 | T_I32 | T_I16 | T_BF16) & DTYPE_BIT(self->dtype)) != 0;
}

int32_t op_axis(int64_t dim, const Operand *operand)
{
    const int64_t axis = dim < 0 ? dim + operand->view.rank : dim;
    return axis >= 0 && axis < operand->view.rank ? (int32_t)axis : -1;
}

bool op_sizes_below(const Operand *operand, int64_t limit)
{
    for (int32_t d = 0; d < operand->view.rank; d++) {
        if (operand->view.shape[d] > limit) {
            return false;
        }
    }
    return true;
}

bool op_is_complex(aclDataType dtype)
{
    return dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128 || dtype == ACL_COMPLEX32;
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
