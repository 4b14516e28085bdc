/* Pooling: src_c/kernels/pool/pooling.h, src_c/kernels/pool. */
#include "ascend/opapi/pooling.h"

#include "kernels/pool/places.h"
#include "kernels/pool/pooling.h"

#include <math.h>

/* ---- settings ---- */

static int64_t entry(IntArguments values, int32_t axis)
{
    return values.values[values.count == 1 ? 0 : axis];
}

static int64_t stride_of(PoolSettings settings, int32_t axis)
{
    return entry(settings.stride.count == 0 ? settings.kernel : settings.stride, axis);
}

/* One entry, or one for each axis. */
static void require_entries(OpCall *op, IntArguments values, int32_t axes)
{
    op_require(op, values.count == 1 || values.count == axes, values.name, "length", op->invalid,
               "%s has %lld entries; it needs 1 or %d", values.name, (long long)values.count, (int)axes);
}

void require_pool_settings(OpCall *op, PoolSettings settings, int64_t part)
{
    require_entries(op, settings.kernel, settings.axes);
    op_require_each(op, settings.kernel, 1, INT64_MAX);
    if (settings.stride.count > 0) {
        require_entries(op, settings.stride, settings.axes);
        op_require_each(op, settings.stride, 1, INT64_MAX);
    }
    require_entries(op, settings.padding, settings.axes);
    for (int32_t axis = 0; axis < settings.axes && !op_refused(op); axis++) {
        op_require_range(op, settings.padding.name, entry(settings.padding, axis), 0,
                         entry(settings.kernel, axis) / part);
    }
}

void require_pool_dilation(OpCall *op, IntArguments dilation, int32_t axes)
{
    require_entries(op, dilation, axes);
    op_require_each(op, dilation, 1, 1);
}

void require_image(OpCall *op, const Operand *self)
{
    bool empty = false;
    for (int32_t axis = 1; axis < self->view.rank; axis++) {
        empty = empty || op_size(self, axis) == 0;
    }
    op_require(op, !empty, self->name, "empty", op->invalid, "%s is %s; only its first size may be 0", self->name,
               op_shape_text(op, self));
}

void require_pool_plane(OpCall *op, const Operand *self, int32_t axes)
{
    int64_t plane = 1;
    bool fits = true;
    for (int32_t axis = -axes; axis < 0; axis++) {
        fits = fits && !__builtin_mul_overflow(plane, op_size(self, axis), &plane);
    }
    op_require(op, fits && plane <= INT32_MAX, self->name, "plane", op->invalid,
               "%s is %s; 32-bit indices cannot count its last %d axes", self->name, op_shape_text(op, self),
                   (int)axes);
}

void require_pool_planes(OpCall *op, const Operand *operand, const Operand *self, int32_t axes)
{
    bool fits = operand->view.rank == self->view.rank;
    for (int32_t axis = 0; fits && axis < self->view.rank - axes; axis++) {
        fits = op_size(operand, axis) == op_size(self, axis);
    }
    op_require(op, fits, operand->name, "shape", op->invalid,
        "%s is %s, %s is %s: they may differ in the last %d sizes",
               operand->name, op_shape_text(op, operand), self->name, op_shape_text(op, self), (int)axes);
}

/* ---- shapes ---- */

/* The number of windows on an axis, or -1. With `ceil` the last one may reach behind the data, and so may the only one. */
static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t behind, bool ceil)
{
    int64_t data, room;
    if (__builtin_add_overflow(size, before, &data) || __builtin_add_overflow(data, behind, &room) ||
        __builtin_sub_overflow(room, kernel, &room) || room <= (ceil ? -stride : -1)) {
        return -1;
    }
    const int64_t count = room < 0 ? 1 : room / stride + (ceil && room % stride > 0) + 1;
    return count - (data == 0 || count - 1 > (data - 1) / stride); /* not one that begins behind the data */
}

static Shape pooled(const OpCall *op, const Operand *self, PoolSettings settings)
{
    Shape shape = op_shape(self);
    for (int32_t axis = 0; axis < settings.axes && !op_refused(op); axis++) {
        int64_t *size = &shape.sizes[shape.rank - settings.axes + axis];
        const int64_t padding = entry(settings.padding, axis);
        *size = windows(*size, entry(settings.kernel, axis), stride_of(settings, axis), padding, padding, settings.ceil);
    }
    return shape;
}

Shape op_shape_pooled2d(OpCall *op, const Operand *self, IntArguments kernel, IntArguments stride, IntArguments padding,
                        bool ceil)
{
    return pooled(op, self, POOL_SETTINGS(2, kernel, stride, padding, ceil));
}

Shape op_shape_pooled3d(OpCall *op, const Operand *self, IntArguments kernel, IntArguments stride, IntArguments padding,
                        bool ceil)
{
    return pooled(op, self, POOL_SETTINGS(3, kernel, stride, padding, ceil));
}

/* Of MaxPool: what is put before an axis, and behind it; and the stride, 1 if there is none. */
static int64_t pad_before(IntArguments pads, int32_t axis)
{
    return pads.count == 0 ? 0 : entry(pads, axis);
}

static int64_t pad_behind(IntArguments pads, int32_t axis)
{
    return pads.count == 4 ? pads.values[2 + axis] : pad_before(pads, axis);
}

static int64_t stride_or_1(IntArguments strides, int32_t axis)
{
    return strides.count == 0 ? 1 : entry(strides, axis);
}

Shape op_shape_max_pooled(OpCall *op, const Operand *self, IntArguments kernel, IntArguments strides, IntArguments pads,
                          bool ceil)
{
    Shape shape = op_shape(self);
    for (int32_t axis = 0; axis < 2 && !op_refused(op); axis++) {
        int64_t *size = &shape.sizes[shape.rank - 2 + axis];
        *size = windows(*size, entry(kernel, axis), stride_or_1(strides, axis), pad_before(pads, axis),
                        pad_behind(pads, axis), ceil);
    }
    return shape;
}

/* None, one, two or four entries. */
static void require_sides(OpCall *op, IntArguments values)
{
    const int64_t count = values.count;
    op_require(op, count == 0 || count == 1 || count == 2 || count == 4, values.name, "length", op->invalid,
               "%s has %lld entries; it needs 0, 1, 2 or 4", values.name, (long long)count);
}

void require_max_pool(OpCall *op, IntArguments kernel, IntArguments strides, IntArguments pads, IntArguments dilations)
{
    require_entries(op, kernel, 2);
    op_require_each(op, kernel, 1, INT64_MAX);
    if (strides.count > 0) {
        require_entries(op, strides, 2);
        op_require_each(op, strides, 1, INT64_MAX);
    }
    require_sides(op, pads);
    for (int32_t axis = 0; axis < 2 && !op_refused(op); axis++) {
        const int64_t before = pad_before(pads, axis), size = entry(kernel, axis);
        op_require_range(op, pads.name, before, 0, size);
        op_require_range(op, pads.name, pad_behind(pads, axis), 0,
                         before > 0 ? size - before : size); /* before: in range, or refused */
    }
    require_sides(op, dilations);
    op_require_each(op, dilations, 1, 1);
}

void require_pool_kernel(OpCall *op, const Operand *self, PoolSettings settings)
{
    for (int32_t axis = 0; axis < settings.axes && !op_refused(op); axis++) {
        const int64_t kernel = entry(settings.kernel, axis), size = op_size(self, axis - settings.axes);
        op_require(op, kernel <= size, settings.kernel.name, "size", op->invalid, "%s has %lld, %s is %s",
                   settings.kernel.name, (long long)kernel, self->name, op_shape_text(op, self));
    }
}

Shape op_shape_pool_mask(OpCall *op, const Operand *out, IntArguments kernel)
{
    Shape shape = op_shape(out);
    if (op_refused(op)) {
        return shape;
    }
    const int32_t rank = shape.rank;
    int64_t taps, elements;
    if (__builtin_mul_overflow(entry(kernel, 0), entry(kernel, 1), &taps) ||
        __builtin_mul_overflow(shape.sizes[rank - 2], shape.sizes[rank - 1], &elements)) {
        taps = elements = -1;
    }
    shape.sizes[rank - 2] = taps;
    shape.sizes[rank - 1] = elements < INT64_MAX / 4 ? ((elements + 15) / 16 + 1) * 32 : -1;
    return shape;
}

/* ---- plans ---- */

/* [N, C, D, H, W] of a tensor with so many spatial axes. */
static View five_axes(const View *view, int32_t axes)
{
    View five = *view;
    five.rank = 5;
    for (int32_t axis = 0; axis < 5; axis++) {
        const int32_t from = axis >= 5 - axes ? view->rank - 5 + axis : axis < 2 ? view->rank - axes - 2 + axis : -1;
        five.shape[axis] = from >= 0 ? view->shape[from] : 1;
        five.strides[axis] = from >= 0 ? view->strides[from] : 0;
    }
    return five;
}

/* [N, C, H, W] of an image; `last`: that has the channels last. */
static View channels_first(const Operand *operand, bool last)
{
    View view = operand->view;
    for (int32_t axis = 1; axis < 4 && last; axis++) {
        const int32_t from = axis == 1 ? 3 : axis - 1;
        view.shape[axis] = operand->view.shape[from];
        view.strides[axis] = operand->view.strides[from];
    }
    return view;
}

/* Inputs, then the output, each with five axes. */
static aclnnStatus plan_views(OpCall *op, Kernel *kernel, const void *attributes, size_t size, int32_t axes,
                              int32_t count, const Operand *const *operands, uint32_t written)
{
    enum { VIEWS = 4 };
    View views[VIEWS];
    PlannedView planned[VIEWS];
    for (int32_t i = 0; i < count; i++) {
        const Operand *operand = operands[i];
        const bool given = operand != NULL && op_given(operand);
        views[i] = given ? five_axes(&operand->view, axes) : us_view_absent();
        planned[i] = (PlannedView){given ? operand : NULL, written >> i & 1 ? VIEW_WRITE : VIEW_READ, &views[i]};
    }
    return op_plan_views(op, kernel, attributes, size, count, planned);
}

/* A setting as kernels have it: of three axes, `other` where there is none. */
static void spread(int64_t *to, int32_t axes, int64_t other)
{
    for (int32_t axis = 2; axis >= 0; axis--) {
        to[axis] = axis >= 3 - axes ? to[axis - (3 - axes)] : other;
    }
}

static Pooling average_of(PoolSettings settings, bool count_padding, int64_t divide_by)
{
    Pooling pooling = {.mode = count_padding ? POOLING_AVERAGE_PADDED : POOLING_AVERAGE_INSIDE, .alpha = 1,
                       .divide_by = (double)divide_by};
    for (int32_t axis = 0; axis < settings.axes; axis++) {
        pooling.window[axis] = entry(settings.kernel, axis);
        pooling.padding[axis] = entry(settings.padding, axis);
        pooling.stride[axis] = stride_of(settings, axis);
    }
    spread(pooling.window, settings.axes, 1);
    spread(pooling.padding, settings.axes, 0);
    spread(pooling.stride, settings.axes, 1);
    return pooling;
}

aclnnStatus op_average_pool(OpCall *op, const Operand *self, PoolSettings settings, bool count_padding,
                            int64_t divide_by, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    if (op_empty(self)) {
        return op_fill(op, out, ZERO); /* windows of padding */
    }
    const Pooling pooling = average_of(settings, count_padding, divide_by);
    return plan_views(op, us_pooling_forward, &pooling, sizeof pooling, settings.axes, 2,
                      (const Operand *[]){self, out}, 2);
}

aclnnStatus op_average_pool_backward(OpCall *op, const Operand *slopes, PoolSettings settings, bool count_padding,
                                     int64_t divide_by, const Operand *result)
{
    if (op_refused(op) || op_empty(result)) {
        return op_plan_nothing(op);
    }
    const Pooling pooling = average_of(settings, count_padding, divide_by);
    return plan_views(op, us_pooling_backward, &pooling, sizeof pooling, settings.axes, 4,
                      (const Operand *[]){NULL, slopes, NULL, result}, 8);
}

static PoolWindows windows_of(PoolSettings settings, bool masked)
{
    const Pooling same = average_of(settings, false, 0);
    PoolWindows result = {.masked = masked};
    memcpy(result.window, same.window, sizeof result.window);
    memcpy(result.padding, same.padding, sizeof result.padding);
    memcpy(result.stride, same.stride, sizeof result.stride);
    return result;
}

aclnnStatus op_maximum_pool(OpCall *op, const Operand *self, PoolSettings settings, const Operand *out,
                            const Operand *indices)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const PoolWindows attributes = windows_of(settings, indices->dtype == ACL_INT8);
    return plan_views(op, us_pool_maximum, &attributes, sizeof attributes, settings.axes, 3,
                      (const Operand *[]){self, out, indices}, 6);
}

aclnnStatus op_max_pool(OpCall *op, const Operand *self, IntArguments kernel, IntArguments strides, IntArguments pads,
                        const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    if (op_empty(self)) {
        return op_fill(op, out, op_real(-INFINITY, ACL_DOUBLE)); /* windows of padding */
    }
    PoolWindows attributes = {.window = {1}, .stride = {1}};
    for (int32_t axis = 0; axis < 2; axis++) {
        attributes.window[1 + axis] = entry(kernel, axis);
        attributes.stride[1 + axis] = stride_or_1(strides, axis);
        attributes.padding[1 + axis] = pad_before(pads, axis);
    }
    return plan_views(op, us_pool_maximum, &attributes, sizeof attributes, 2, 3, (const Operand *[]){self, out, NULL},
                      2);
}

aclnnStatus op_masked_pool_backward(OpCall *op, const Operand *slopes, const Operand *mask, PoolSettings settings,
                                    const Operand *result)
{
    if (op_refused(op) || op_empty(result)) {
        return op_plan_nothing(op);
    }
    const PoolWindows attributes = windows_of(settings, true);
    return plan_views(op, us_pool_maximum_gradient, &attributes, sizeof attributes, settings.axes, 3,
                      (const Operand *[]){slopes, mask, result}, 4);
}

aclnnStatus op_indexed_pool_backward(OpCall *op, const Operand *slopes, const Operand *indices, int32_t axes,
                                     const Operand *result)
{
    if (op_refused(op) || op_empty(result)) {
        return op_plan_nothing(op);
    }
    const PoolWindows attributes = {.adaptive = true};
    return plan_views(op, us_pool_maximum_gradient, &attributes, sizeof attributes, axes, 3,
                      (const Operand *[]){slopes, indices, result}, 4);
}

/* Windows that share out every axis evenly are ordinary ones. */
static bool is_even(const Operand *self, const Operand *out, int32_t axes, Pooling *pooling)
{
    *pooling = (Pooling){.mode = POOLING_AVERAGE, .alpha = 1};
    bool even = true;
    for (int32_t axis = 0; axis < axes; axis++) {
        const int64_t in = op_size(self, axis - axes), count = op_size(out, axis - axes);
        even = even && in % count == 0;
        pooling->window[axis] = pooling->stride[axis] = in / count;
    }
    spread(pooling->window, axes, 1);
    spread(pooling->stride, axes, 1);
    return even;
}

aclnnStatus op_adaptive_average_pool(OpCall *op, const Operand *self, int32_t axes, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const PoolWindows adaptive = {.adaptive = true};
    Pooling even;
    return is_even(self, out, axes, &even)
               ? plan_views(op, us_pooling_forward, &even, sizeof even, axes, 2, (const Operand *[]){self, out}, 2)
               : plan_views(op, us_pool_average, &adaptive, sizeof adaptive, axes, 2,
                            (const Operand *[]){self, out}, 2);
}

aclnnStatus op_adaptive_average_pool_backward(OpCall *op, const Operand *slopes, int32_t axes, const Operand *result)
{
    if (op_refused(op) || op_empty(result)) {
        return op_plan_nothing(op);
    }
    if (op_empty(slopes)) {
        return op_fill(op, result, ZERO);
    }
    const PoolWindows adaptive = {.adaptive = true};
    Pooling even;
    return is_even(result, slopes, axes, &even)
               ? plan_views(op, us_pooling_backward, &even, sizeof even, axes, 4,
                            (const Operand *[]){NULL, slopes, NULL, result}, 8)
               : plan_views(op, us_pool_average_gradient, &adaptive, sizeof adaptive, axes, 2,
                            (const Operand *[]){slopes, result}, 2);
}

aclnnStatus op_adaptive_maximum_pool(OpCall *op, const Operand *self, int32_t axes, const Operand *out,
                                     const Operand *indices)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const PoolWindows adaptive = {.adaptive = true};
    const bool last = axes == 2 && op_has_channels_last(self);
    const View images[] = {channels_first(self, last), channels_first(out, last), channels_first(indices, last)};
    const View x = five_axes(&images[0], axes), y = five_axes(&images[1], axes), places = five_axes(&images[2], axes);
    const PlannedView planned[] = {{self, VIEW_READ, &x}, {out, VIEW_WRITE, &y}, {indices, VIEW_WRITE, &places}};
    return op_plan_views(op, us_pool_maximum, &adaptive, sizeof adaptive, 3, planned);
}
