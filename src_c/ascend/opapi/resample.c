/* Images of another size: src_c/kernels/resample. */
#include "ascend/opapi/resample.h"

#include "kernels/resample/spatial_transformer.h"

void require_sizes(OpCall *op, IntArguments sizes, int64_t free)
{
    for (int64_t i = 0; i < sizes.count && !op_refused(op); i++) {
        op_require_range(op, sizes.name, sizes.values[i], i < free ? 0 : 1, INT64_MAX);
    }
}

/* [N, C, D, H, W] of [N, C, space…] or, with the channels last, [N, space…, C]. */
static View five_axes(const Operand *operand, bool last)
{
    const View *view = &operand->view;
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

/* Both have the layout of the one whose sizes the other's were checked by. */
static aclnnStatus plan_images(OpCall *op, Kernel *kernel, const Operand *from, Interpolation settings,
                               const Operand *to, const Operand *model)
{
    if (op_refused(op) || op_empty(from) || op_empty(to)) {
        return op_plan_nothing(op);
    }
    const bool last = op_has_channels_last(model);
    const View source = five_axes(from, last), target = five_axes(to, last);
    const PlannedView views[] = {{from, VIEW_READ, &source}, {to, VIEW_WRITE, &target}};
    return op_plan_views(op, kernel, &settings, sizeof settings, 2, views);
}

aclnnStatus op_interpolate(OpCall *op, const Operand *self, Interpolation settings, const Operand *out)
{
    return plan_images(op, us_interpolate, self, settings, out, self);
}

Shape op_shape_rescaled(OpCall *op, const Operand *self, FloatArguments scales)
{
    Shape shape = op_shape(self);
    for (int64_t i = 0; i < scales.count && i < shape.rank && !op_refused(op); i++) {
        const float size = (float)shape.sizes[i] * scales.values[i];
        shape.sizes[i] = size >= 0 && size < 0x1p62f ? (int64_t)size : -1;
    }
    return shape;
}

aclnnStatus op_resize(OpCall *op, const Operand *self, FloatArguments scales, bool bilinear, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Interpolation settings = {bilinear ? INTERPOLATE_LINEAR : INTERPOLATE_NEAREST, false, false,
                                    {0, (double)scales.values[2], (double)scales.values[3]}, true};
    return op_interpolate(op, self, settings, out);
}

aclnnStatus op_interpolate_backward(OpCall *op, const Operand *slopes, Interpolation settings, const Operand *result)
{
    return plan_images(op, us_interpolate_gradient, slopes, settings, result, result);
}

/* ---- grids ---- */

/* Images of two axes are [N, C, H, W] whatever their format. */
static bool is_sampled_channels_last(const Operand *input)
{
    return input->view.rank == 5 && op_has_channels_last(input);
}

static int32_t first_sampled_axis(const Operand *input)
{
    return is_sampled_channels_last(input) ? 1 : 2;
}

void require_grid_sample(OpCall *op, const Operand *input, const Operand *grid, int64_t mode, int64_t padding)
{
    const int32_t axes = input->view.rank - 2;
    op_require_range(op, "interpolationMode", mode, SAMPLE_LINEAR, axes == 2 ? SAMPLE_CUBIC : SAMPLE_NEAREST);
    op_require_range(op, "paddingMode", padding, SAMPLE_ZEROS, SAMPLE_REFLECTION);
    op_require(op, op_size(grid, 0) == op_size(input, 0), grid->name, "batch", op->invalid,
               "%s is %s, %s is %s: they differ in their first size", grid->name, op_shape_text(op, grid), input->name,
               op_shape_text(op, input));
    op_require(op, op_size(grid, -1) == axes, grid->name, "size", op->invalid, "%s is %s; its last size must be %d",
               grid->name, op_shape_text(op, grid), (int)axes);
}

void require_sampled_space(OpCall *op, const Operand *input)
{
    bool empty = false;
    for (int32_t axis = 0; axis < input->view.rank - 2; axis++) {
        empty = empty || op_size(input, first_sampled_axis(input) + axis) == 0;
    }
    op_require(op, !empty, input->name, "empty", op->invalid, "%s is %s; a size of its space is 0",
               input->name, op_shape_text(op, input));
}

Shape op_shape_sampled(OpCall *op, const Operand *input, const Operand *grid)
{
    Shape shape = op_shape(input);
    for (int32_t axis = 0; axis < shape.rank - 2 && !op_refused(op); axis++) {
        shape.sizes[first_sampled_axis(input) + axis] = op_size(grid, axis + 1);
    }
    return shape;
}

/* [N, D, H, W, axes]; numbers of two axes have a depth of 1. */
static View grid_axes(const Operand *operand)
{
    View five = operand->view;
    for (int32_t axis = 3; operand->view.rank == 4 && axis >= 1; axis--) {
        five.shape[axis + 1] = five.shape[axis];
        five.strides[axis + 1] = five.strides[axis];
    }
    if (operand->view.rank == 4) {
        five.rank = 5;
        five.shape[1] = 1;
        five.strides[1] = 0;
    }
    return five;
}

static GridSample sampling(int64_t mode, int64_t padding, bool align_corners)
{
    return (GridSample){(SampleMode)mode, (SamplePadding)padding, align_corners};
}

aclnnStatus op_grid_sample(OpCall *op, const Operand *input, const Operand *grid, int64_t mode, int64_t padding,
                           bool align_corners, const Operand *out)
{
    if (op_refused(op) || op_empty(input) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const GridSample settings = sampling(mode, padding, align_corners);
    const bool last = is_sampled_channels_last(input);
    const View images = five_axes(input, last), places = grid_axes(grid), result = five_axes(out, last);
    const PlannedView views[] = {{input, VIEW_READ, &images}, {grid, VIEW_READ, &places}, {out, VIEW_WRITE, &result}};
    return op_plan_views(op, us_grid_sample, &settings, sizeof settings, 3, views);
}

void require_grid_mask(OpCall *op, BoolArguments mask)
{
    op_require_length(op, mask.name, mask.count, 2, 2);
}

aclnnStatus op_grid_sample_backward(OpCall *op, const Operand *slopes, const Operand *input, const Operand *grid,
                                    int64_t mode, int64_t padding, bool align_corners, BoolArguments mask,
                                    const Operand *input_result, const Operand *grid_result)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const GridSample settings = sampling(mode, padding, align_corners);
    const bool to_input = mask.values[0] && !op_empty(input_result), to_grid = mask.values[1] && !op_empty(grid_result);
    const bool last = is_sampled_channels_last(input);
    const View absent = us_view_absent();
    const View dy = five_axes(slopes, last), x = five_axes(input, last), places = grid_axes(grid);
    const View dx = five_axes(input_result, last), dgrid = grid_axes(grid_result);
    const PlannedView views[] = {
        {slopes, VIEW_READ, &dy},
        {input, VIEW_READ, &x},
        {grid, VIEW_READ, &places},
        to_input ? (PlannedView){input_result, VIEW_WRITE, &dx} : (PlannedView){NULL, VIEW_READ, &absent},
        to_grid ? (PlannedView){grid_result, VIEW_WRITE, &dgrid} : (PlannedView){NULL, VIEW_READ, &absent},
    };
    return op_plan_views(op, us_grid_sample_gradient, &settings, sizeof settings, 5, views);
}

Shape op_shape_affine_theta(OpCall *op, IntArguments size)
{
    return op_refused(op) ? (Shape){0}
                          : op_shape_of(3, (const int64_t[]){size.values[0], size.count - 2, size.count - 1});
}

Shape op_shape_affine_grid(OpCall *op, IntArguments size)
{
    Shape shape = {.rank = (int32_t)size.count};
    for (int32_t axis = 0; axis < shape.rank && !op_refused(op); axis++) {
        shape.sizes[axis] = axis == 0 ? size.values[0] : axis == shape.rank - 1 ? axis - 1 : size.values[axis + 1];
    }
    return shape;
}

aclnnStatus op_affine_grid(OpCall *op, const Operand *theta, bool align_corners, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const AffineGrid attributes = {align_corners};
    return op_plan_operands(op, us_grid_forward, &attributes, sizeof attributes, OPERANDS(theta), OPERANDS(out));
}

aclnnStatus op_roi_align(OpCall *op, const Operand *self, const Operand *rois, const Operand *images, RoiAlign settings,
                         const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    return op_empty(self) ? op_fill(op, out, ZERO)
                          : op_plan_operands(op, us_roi_align, &settings, sizeof settings,
                                             OPERANDS(self, rois, images), OPERANDS(out));
}

/* Columns begin … begin + count - 1 of a matrix; one column is a vector. */
static View columns_of(const Operand *matrix, int64_t begin, int64_t count)
{
    View view = matrix->view;
    const int64_t offset = begin * view.strides[1] * (int64_t)us_dtype_size(view.dtype);
    view.data = (void *)((uintptr_t)view.data + (uintptr_t)offset);
    view.shape[1] = count;
    view.rank = count > 1 ? 2 : 1;
    return view;
}

static aclnnStatus plan_boxes(OpCall *op, Kernel *kernel, const Operand *from, const Operand *boxes, RoiAlign settings,
                              const Operand *to)
{
    const View regions = columns_of(boxes, 1, 4), images = columns_of(boxes, 0, 1);
    const PlannedView views[] = {{from, VIEW_READ, NULL}, {boxes, VIEW_READ, &regions}, {boxes, VIEW_READ, &images},
                                 {to, VIEW_WRITE, NULL}};
    return op_plan_views(op, kernel, &settings, sizeof settings, 4, views);
}

aclnnStatus op_roi_align_boxes(OpCall *op, const Operand *self, const Operand *boxes, RoiAlign settings,
                               const Operand *out)
{
    return op_refused(op) || op_empty(out) ? op_plan_nothing(op)
                                           : plan_boxes(op, us_roi_align, self, boxes, settings, out);
}

aclnnStatus op_roi_align_boxes_backward(OpCall *op, const Operand *slopes, const Operand *boxes, RoiAlign settings,
                                        const Operand *result)
{
    if (op_refused(op) || op_empty(result)) {
        return op_plan_nothing(op);
    }
    return op_empty(slopes) ? op_fill(op, result, ZERO)
                            : plan_boxes(op, us_roi_align_gradient, slopes, boxes, settings, result);
}

aclnnStatus op_roi_pool(OpCall *op, const Operand *x, const Operand *rois, RoiPool settings, const Operand *y,
                        const Operand *places)
{
    return op_refused(op) ? op_plan_nothing(op)
                          : op_plan_operands(op, us_roi_pool, &settings, sizeof settings, OPERANDS(x, rois),
                                             OPERANDS(y, places));
}
