#include "ascend/opapi/columns.h"

#include "kernels/conv/unfold.h"

void require_unfold_settings(OpCall *op, UnfoldSettings settings)
{
    const IntArguments arrays[] = {settings.kernel, settings.dilation, settings.padding, settings.stride};
    for (int i = 0; i < 4; i++) {
        op_require_length(op, arrays[i].name, arrays[i].count, 2, 2);
        op_require_each(op, arrays[i], i == 2 ? 0 : 1, INT32_MAX);
    }
}

/* The windows on an axis; less than 1 if there are none. */
static int64_t positions(UnfoldSettings settings, int32_t axis, int64_t size)
{
    const int64_t reach = settings.dilation.values[axis] * (settings.kernel.values[axis] - 1) + 1;
    int64_t places; /* of the window's first element */
    if (__builtin_add_overflow(size - reach, 2 * settings.padding.values[axis] + 1, &places)) {
        return INT64_MAX;
    }
    return places < 1 ? 0 : (places - 1) / settings.stride.values[axis] + 1;
}

static int64_t taps(IntArguments kernel)
{
    return kernel.values[0] * kernel.values[1];
}

static Shape columns_of(int32_t rank, int64_t images, int64_t channels, int64_t height, int64_t width,
                        UnfoldSettings settings)
{
    int64_t count, rows;
    if (__builtin_mul_overflow(positions(settings, 0, height), positions(settings, 1, width), &count) ||
        __builtin_mul_overflow(channels, taps(settings.kernel), &rows)) {
        count = rows = -1;
    }
    Shape shape = {.rank = rank - 1};
    const int64_t sizes[] = {images, rows, count};
    for (int32_t axis = 0; axis < shape.rank; axis++) {
        shape.sizes[axis] = sizes[3 - shape.rank + axis];
    }
    return shape;
}

Shape op_shape_unfolded(OpCall *op, const Operand *self, IntArguments kernel, IntArguments dilation,
                        IntArguments padding, IntArguments stride)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    return columns_of(self->view.rank, op_size(self, 0), op_size(self, -3), op_size(self, -2), op_size(self, -1),
                      (UnfoldSettings){kernel, dilation, padding, stride});
}

Shape op_shape_folded(OpCall *op, const Operand *columns, IntArguments size, IntArguments kernel)
{
    op_require(op, op_refused(op) || op_size(columns, -2) % taps(kernel) == 0, columns->name, "taps", op->invalid,
               "%s is %s; its rows are not a multiple of the elements of a window", columns->name,
               op_shape_text(op, columns));
    if (op_refused(op)) {
        return (Shape){0};
    }
    const int64_t sizes[] = {op_size(columns, 0), op_size(columns, -2) / taps(kernel), size.values[0], size.values[1]};
    const int32_t rank = columns->view.rank + 1;
    return op_shape_of(rank, sizes + 4 - rank);
}

/* With a batch in front. */
static View with_images(const Operand *operand, int32_t rank)
{
    View view = operand->view;
    for (int32_t axis = view.rank; view.rank < rank && axis > 0; axis--) {
        view.shape[axis] = view.shape[axis - 1];
        view.strides[axis] = view.strides[axis - 1];
    }
    if (view.rank < rank) {
        view.rank = rank;
        view.shape[0] = 1;
        view.strides[0] = 0;
    }
    return view;
}

static ConvColumns conv_columns(UnfoldSettings settings, const View *images)
{
    ConvColumns columns = {.conv = {.axes = 2, .groups = 1, .alpha = 1}};
    for (int32_t axis = 0; axis < 2; axis++) {
        columns.conv.stride[axis] = settings.stride.values[axis];
        columns.conv.padding[axis] = settings.padding.values[axis];
        columns.conv.dilation[axis] = settings.dilation.values[axis];
        columns.taps[axis] = settings.kernel.values[axis];
        columns.positions[axis] = positions(settings, axis, images->shape[2 + axis]);
    }
    return columns;
}

aclnnStatus op_im2col(OpCall *op, const Operand *self, UnfoldSettings settings, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View images = with_images(self, 4), columns = with_images(out, 3);
    const ConvColumns attributes = conv_columns(settings, &images);
    const PlannedView views[] = {{self, VIEW_READ, &images}, {out, VIEW_WRITE, &columns}};
    return op_plan_views(op, us_conv_unfold, &attributes, sizeof attributes, 2, views);
}

aclnnStatus op_col2im(OpCall *op, const Operand *columns, UnfoldSettings settings, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View images = with_images(out, 4), given = with_images(columns, 3);
    const ConvColumns attributes = conv_columns(settings, &images);
    const PlannedView views[] = {{columns, VIEW_READ, &given}, {out, VIEW_WRITE, &images}};
    return op_plan_views(op, us_conv_fold, &attributes, sizeof attributes, 2, views);
}
