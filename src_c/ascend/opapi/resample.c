/* Images of another size: src_c/kernels/resample. */
#include "ascend/opapi/resample.h"

static bool has_channels_last(const Operand *operand)
{
    return operand->format == ACL_FORMAT_NHWC || operand->format == ACL_FORMAT_NDHWC;
}

void require_sizes(OpCall *op, IntArguments sizes)
{
    for (int64_t i = 0; i < sizes.count && !op_refused(op); i++) {
        op_require_range(op, sizes.name, sizes.values[i], i == 0 ? 0 : 1, INT64_MAX);
    }
}

Shape op_shape_upsampled(OpCall *op, const Operand *self, IntArguments size)
{
    Shape shape = op_shape(self);
    const int64_t first = shape.rank - size.count - has_channels_last(self);
    for (int64_t i = 0; i < size.count && first >= 0 && !op_refused(op); i++) {
        shape.sizes[first + i] = size.values[i];
    }
    return shape;
}

/* [N, C, D, H, W] of [N, C, space…] or, by its format, [N, space…, C]. */
static View five_axes(const Operand *operand)
{
    const View *view = &operand->view;
    const bool last = has_channels_last(operand);
    View five = *view;
    five.rank = 5;
    for (int32_t axis = 0; axis < 5; axis++) {
        const int32_t space = view->rank - 5 + axis; /* with the channels in front */
        const int32_t from = axis == 0 ? 0 : axis == 1 ? (last ? view->rank - 1 : 1) : space < 2 ? -1 : space - last;
        five.shape[axis] = from >= 0 ? view->shape[from] : 1;
        five.strides[axis] = from >= 0 ? view->strides[from] : 0;
    }
    return five;
}

static aclnnStatus plan_images(OpCall *op, Kernel *kernel, const Operand *from, Interpolation settings,
                               const Operand *to)
{
    if (op_refused(op) || op_empty(to)) {
        return op_plan_nothing(op);
    }
    const View source = five_axes(from), target = five_axes(to);
    const PlannedView views[] = {{from, VIEW_READ, &source}, {to, VIEW_WRITE, &target}};
    return op_plan_views(op, kernel, &settings, sizeof settings, 2, views);
}

aclnnStatus op_interpolate(OpCall *op, const Operand *self, Interpolation settings, const Operand *out)
{
    return plan_images(op, us_interpolate, self, settings, out);
}

aclnnStatus op_interpolate_backward(OpCall *op, const Operand *slopes, Interpolation settings, const Operand *result)
{
    return plan_images(op, us_interpolate_gradient, slopes, settings, result);
}
