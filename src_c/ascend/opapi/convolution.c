/* Convolutions: src_c/kernels/conv. */
#include "ascend/opapi/convolution.h"

#include "ascend/common/op_memory.h"
#include "kernels/conv/gradients.h"
#include "kernels/conv/quantized.h"

/* ---- arrays ---- */

static bool has_sides(IntArguments padding, int32_t axes)
{
    return padding.count == 2 * axes;
}

/* What is put before and behind an axis. */
static int64_t padding_before(IntArguments padding, int32_t axes, int32_t axis)
{
    return padding.values[has_sides(padding, axes) ? 2 * axis : axis];
}

static int64_t padding_behind(IntArguments padding, int32_t axes, int32_t axis)
{
    return padding.values[has_sides(padding, axes) ? 2 * axis + 1 : axis];
}

void require_conv_lengths(OpCall *op, int32_t rank, ConvSettings settings)
{
    const int32_t axes = rank - 2;
    op_require_length(op, settings.stride.name, settings.stride.count, axes, axes);
    const bool sides = has_sides(settings.padding, axes) && axes < 3 && !(settings.transposed && axes == 1);
    op_require_length(op, settings.padding.name, settings.padding.count, axes, sides ? 2 * axes : axes);
    op_require_length(op, settings.dilation.name, settings.dilation.count, axes, axes);
    op_require_length(op, settings.output_padding.name, settings.output_padding.count,
                      settings.transposed ? axes : 0, settings.transposed ? axes : INT32_MAX);
}

void require_conv_values(OpCall *op, ConvSettings settings)
{
    op_require_each(op, settings.stride, 1, INT64_MAX);
    op_require_each(op, settings.padding, 0, INT64_MAX);
    op_require_each(op, settings.dilation, 1, INT64_MAX);
    for (int64_t i = 0; settings.transposed && i < settings.output_padding.count && !op_refused(op); i++) {
        const int64_t value = settings.output_padding.values[i];
        const int64_t stride = settings.stride.values[i], dilation = settings.dilation.values[i];
        op_require(op, value >= 0 && (value < stride || value < dilation), settings.output_padding.name, "range",
                   op->invalid,
                       "%s[%lld] is %lld; it needs 0 or more, and less than the stride, %lld, or the dilation, "
                   "%lld", settings.output_padding.name, (long long)i, (long long)value, (long long)stride,
                   (long long)dilation);
    }
}

/* ---- shapes ---- */

void require_conv_channels(OpCall *op, const Operand *input, const Operand *weight, ConvSettings settings)
{
    if (op_refused(op)) { /* groups may be 0 */
        return;
    }
    const int64_t channels = op_size(input, 1), groups = settings.groups;
    const int64_t first = op_size(weight, 0), second = op_size(weight, 1);
    const bool fits = settings.transposed ? first == channels && first % groups == 0
                                          : channels % groups == 0 && second == channels / groups && first % groups == 0;
    op_require(op, fits, "groups", "channels", op->invalid,
        "groups is %lld, input is %s, weight is %s: the channels do "
               "not fit", (long long)groups, op_shape_text(op, input), op_shape_text(op, weight));
}

/* size + before + behind - dilation * (taps - 1), or -1: the places that the first tap can take. */
static int64_t places(int64_t size, int64_t before, int64_t behind, int64_t dilation, int64_t taps)
{
    int64_t padded, reach;
    if (taps < 1 || __builtin_add_overflow(size, before, &padded) || __builtin_add_overflow(padded, behind, &padded) ||
        __builtin_mul_overflow(dilation, taps - 1, &reach) || reach > padded) {
        return -1;
    }
    return padded - reach;
}

/* (size - 1) * stride - before - behind + dilation * (taps - 1) + extra + 1, or -1. */
static int64_t transposed_size(int64_t size, int64_t stride, int64_t before, int64_t behind, int64_t dilation,
                               int64_t taps, int64_t extra)
{
    int64_t sum, reach;
    if (size < 1 || taps < 1 || __builtin_mul_overflow(size - 1, stride, &sum) ||
        __builtin_mul_overflow(dilation, taps - 1, &reach) || __builtin_add_overflow(sum, reach, &sum) ||
        __builtin_add_overflow(sum, extra, &sum) || __builtin_sub_overflow(sum, before, &sum) ||
        __builtin_sub_overflow(sum, behind, &sum) || sum < -1) {
        return -1;
    }
    return sum + 1;
}

Shape op_shape_conv_channels(OpCall *op, const Operand *weight, bool transposed, int64_t groups)
{
    Shape shape = {.rank = 1};
    if (!op_refused(op) && __builtin_mul_overflow(op_size(weight, transposed ? 1 : 0), transposed ? groups : 1,
                                                  &shape.sizes[0])) {
        shape.sizes[0] = -1;
    }
    return shape;
}

Shape op_shape_convolved(OpCall *op, const Operand *input, const Operand *weight, IntArguments stride,
                         IntArguments padding, IntArguments dilation, bool transposed, IntArguments output_padding,
                         int64_t groups)
{
    Shape shape = {0};
    const int32_t axes = input->view.rank - 2;
    if (op_refused(op)) {
        return shape;
    }
    shape.rank = input->view.rank;
    shape.sizes[0] = op_size(input, 0);
    shape.sizes[1] = op_shape_conv_channels(op, weight, transposed, groups).sizes[0];
    for (int32_t axis = 0; axis < axes; axis++) {
        const int64_t size = op_size(input, 2 + axis), taps = op_size(weight, 2 + axis);
        const int64_t before = padding_before(padding, axes, axis), behind = padding_behind(padding, axes, axis);
        if (transposed) {
            shape.sizes[2 + axis] = transposed_size(size, stride.values[axis], before, behind, dilation.values[axis],
                                                    taps, output_padding.values[axis]);
        } else {
            const int64_t first = places(size, before, behind, dilation.values[axis], taps);
            shape.sizes[2 + axis] = first < 1 ? 0 : (first - 1) / stride.values[axis] + 1;
        }
    }
    return shape;
}

void require_conv_input(OpCall *op, const Operand *input, const Operand *weight, ConvSettings settings)
{
    const int32_t axes = input->view.rank - 2;
    bool holds = true, empty = false;
    for (int32_t axis = 0; axis < axes && !op_refused(op); axis++) {
        const int64_t size = op_size(input, 2 + axis), taps = op_size(weight, 2 + axis);
        holds = holds && (settings.transposed ||
                          places(size, padding_before(settings.padding, axes, axis),
                                 padding_behind(settings.padding, axes, axis), settings.dilation.values[axis],
                                     taps) > 0);
        empty = empty || taps == 0 || size == 0;
    }
    empty = empty || op_size(weight, 0) == 0 || op_size(weight, 1) == 0;
    op_require(op, !empty, weight->name, "empty", op->invalid, "%s is %s, %s is %s: only the batch may be 0",
        weight->name,
               op_shape_text(op, weight), input->name, op_shape_text(op, input));
    op_require(op, holds, input->name, "size", op->invalid, "%s is %s with its padding smaller than the dilated %s, %s",
               input->name, op_shape_text(op, input), weight->name, op_shape_text(op, weight));
}

/* ---- what the hardware does ---- */

static void require_at_most(OpCall *op, const char *name, int64_t value, int64_t highest)
{
    op_require(op, value <= highest, name, "limit", ACLNN_ERR_INNER_NULLPTR,
        "%s has %lld; the hardware does at most %lld",
               name, (long long)value, (long long)highest);
}

void require_conv_limits(OpCall *op, const Operand *input, const Operand *weight, ConvSettings settings)
{
    enum { LARGEST_SIZE = 1000000 };
    const int32_t axes = input->view.rank - 2;
    const bool transposed = settings.transposed;
    for (int32_t axis = 0; axis < input->view.rank && !op_refused(op); axis++) {
        require_at_most(op, input->name, op_size(input, axis), LARGEST_SIZE);
    }
    /* the depth of three axes is not limited */
    for (int32_t axis = axes == 3 ? 1 : 0; axis < axes && !op_refused(op); axis++) {
        const int64_t taps = op_size(weight, 2 + axis);
        const int64_t largest_weight = transposed ? 255 : axes == 3 ? 511 : LARGEST_SIZE;
        require_at_most(op, weight->name, taps, largest_weight);
        require_at_most(op, settings.stride.name, settings.stride.values[axis], axes == 3 ? 63 : INT64_MAX);
        const int64_t padding = padding_before(settings.padding, axes, axis);
        const int64_t behind = padding_behind(settings.padding, axes, axis);
        require_at_most(op, settings.padding.name, padding > behind ? padding : behind,
                        axes == 3 || !transposed ? 255 : INT64_MAX);
        require_at_most(op, settings.dilation.name, settings.dilation.values[axis],
                        transposed || axes == 3 ? 255 : INT64_MAX);
    }
}

void require_quantized_conv_limits(OpCall *op, Operands operands, ConvSettings settings)
{
    enum { LARGEST_SIZE = 999999, LARGEST_ALONG_DEPTH = 1000000 };
    for (int32_t i = 0; i < operands.count && !op_refused(op); i++) {
        const Operand *operand = operands.items[i];
        for (int32_t axis = 0; axis < operand->view.rank && op_given(operand); axis++) {
            require_at_most(op, operand->name, op_size(operand, axis), LARGEST_SIZE);
        }
    }
    for (int32_t axis = 0; axis < 3 && !op_refused(op); axis++) {
        require_at_most(op, settings.stride.name, settings.stride.values[axis], axis == 0 ? LARGEST_ALONG_DEPTH : 63);
        require_at_most(op, settings.padding.name, settings.padding.values[axis], axis == 0 ? LARGEST_ALONG_DEPTH : 255);
        require_at_most(op, settings.dilation.name, settings.dilation.values[axis], axis == 0 ? LARGEST_ALONG_DEPTH : 255);
    }
}

/* ---- plans ---- */

static Convolution convolution_of(int32_t axes, ConvSettings settings)
{
    Convolution conv = {.axes = axes, .groups = settings.groups, .alpha = 1};
    for (int32_t axis = 0; axis < axes; axis++) {
        conv.stride[axis] = settings.stride.values[axis];
        conv.padding[axis] = padding_before(settings.padding, axes, axis);
        conv.dilation[axis] = settings.dilation.values[axis];
    }
    return conv;
}

aclnnStatus op_convolution(OpCall *op, const Operand *input, const Operand *weight, const Operand *bias,
                           ConvSettings settings, const Operand *output)
{
    if (op_refused(op) || op_empty(output)) {
        return op_plan_nothing(op);
    }
    const Convolution conv = convolution_of(input->view.rank - 2, settings);
    const View absent = us_view_absent();
    const PlannedView views[] = {{input, VIEW_READ, NULL}, {weight, VIEW_READ, NULL}, {bias, VIEW_READ, NULL},
                                 {NULL, VIEW_READ, &absent}, {output, VIEW_WRITE, NULL}};
    return op_plan_views(op, settings.transposed ? us_conv_backward_data : us_conv_forward, &conv, sizeof conv, 5,
        views);
}

aclnnStatus op_quantized_convolution(OpCall *op, const Operand *input, const Operand *weight, const Operand *bias,
                                     const Operand *scale, ConvSettings settings, const Operand *output)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Convolution conv = convolution_of(3, settings);
    return op_plan_operands(op, us_conv_quantized, &conv, sizeof conv, OPERANDS(input, weight, scale, bias), OPERANDS(output));
}

Shape op_shape_depthwise(OpCall *op, const Operand *self, const Operand *weight, IntArguments stride, IntArguments padding,
                         IntArguments dilation)
{
    return op_shape_convolved(op, self, weight, stride, padding, dilation, false, (IntArguments){.name = ""}, 1);
}

void require_conv_wanted(OpCall *op, BoolArguments mask, IntArguments bias_sizes, Operands gradients)
{
    op_require_length(op, mask.name, mask.count, gradients.count, gradients.count);
    static const char *const names[] = {"gradInput", "gradWeight", "gradBias"};
    for (int32_t i = 0; i < gradients.count && !op_refused(op); i++) {
        op_require(op, !mask.values[i] || op_given(gradients.items[i]), names[i], "null", ACLNN_ERR_PARAM_NULLPTR,
                   "%s is NULL, and %s[%d] asks for it", names[i], mask.name, (int)i);
    }
    if (!op_refused(op)) {
        op_require(op, !mask.values[2] || bias_sizes.given, bias_sizes.name, "null", ACLNN_ERR_PARAM_NULLPTR,
                   "%s is NULL, and %s[2] asks for %s", bias_sizes.name, mask.name, names[2]);
    }
}

void require_conv_bias_sizes(OpCall *op, IntArguments sizes, const Operand *weight, ConvSettings settings,
                             BoolArguments mask)
{
    if (op_refused(op) || !mask.values[2]) {
        return;
    }
    const int64_t channels = op_shape_conv_channels(op, weight, settings.transposed, settings.groups).sizes[0];
    op_require(op, sizes.count == 1 && sizes.values[0] == channels, sizes.name, "length", op->invalid,
               "%s needs one entry, %lld", sizes.name, (long long)channels);
}

void require_conv_gradients(OpCall *op, const Operand *input, const Operand *weight, ConvSettings settings,
                            BoolArguments mask, Operands gradients)
{
    if (op_refused(op)) {
        return;
    }
    if (mask.values[0]) {
        op_require_same_shape(op, gradients.items[0], input);
    }
    if (mask.values[1]) {
        op_require_same_shape(op, gradients.items[1], weight);
    }
    if (mask.values[2]) {
        const Shape channels = op_shape_conv_channels(op, weight, settings.transposed, settings.groups);
        op_require_shape(op, gradients.items[2], &channels);
    }
}

aclnnStatus op_convolution_backward(OpCall *op, const Operand *slopes, const Operand *input, const Operand *weight,
                                    ConvSettings settings, BoolArguments mask, Operands gradients)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const ConvGradients attributes = {convolution_of(input->view.rank - 2, settings), settings.transposed};
    const View absent = us_view_absent();
    PlannedView views[6] = {{slopes, VIEW_READ, NULL}, {input, VIEW_READ, NULL}, {weight, VIEW_READ, NULL}};
    for (int32_t i = 0; i < 3; i++) {
        const Operand *gradient = gradients.items[i];
        const bool wanted = mask.values[i] && !op_empty(gradient);
        views[3 + i] = wanted ? (PlannedView){gradient, VIEW_WRITE, NULL} : (PlannedView){NULL, VIEW_READ, &absent};
    }
    return op_plan_views(op, us_conv_gradients, &attributes, sizeof attributes, 6, views);
}

/* ---- time, batch, channels ---- */

void require_conv_tbc(OpCall *op, const Operand *data, const Operand *weight, int64_t pad)
{
    if (op_refused(op)) {
        return;
    }
    const bool empty = op_size(weight, 0) == 0 || op_size(weight, 1) == 0 || op_size(weight, 2) == 0 || op_size(data, 0) == 0;
    op_require(op, !empty, weight->name, "empty", op->invalid, "%s is %s, %s is %s: only the batch may be 0", weight->name,
               op_shape_text(op, weight), data->name, op_shape_text(op, data));
    op_require(op, places(op_size(data, 0), pad, pad, 1, op_size(weight, 0)) > 0, data->name, "size", op->invalid,
               "%s is %s with its padding shorter than %s, %s", data->name, op_shape_text(op, data), weight->name,
               op_shape_text(op, weight));
}

Shape op_shape_conv_tbc(OpCall *op, const Operand *data, const Operand *weight, int64_t pad)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    return (Shape){3, {places(op_size(data, 0), pad, pad, 1, op_size(weight, 0)), op_size(data, 1), op_size(weight, 2)}};
}

/* The operand's three axes in another order. */
static const View *turned(OpCall *op, const Operand *operand, int32_t first, int32_t second, int32_t third)
{
    View *view = op_take(op, sizeof *view);
    if (view != NULL) {
        const int32_t order[] = {first, second, third};
        *view = operand->view;
        for (int32_t axis = 0; axis < 3; axis++) {
            view->shape[axis] = operand->view.shape[order[axis]];
            view->strides[axis] = operand->view.strides[order[axis]];
        }
    }
    return view;
}

/* [T, N, C] as [N, C, T] */
static PlannedView data_of(OpCall *op, const Operand *operand, ViewAccess access)
{
    return (PlannedView){operand, access, turned(op, operand, 1, 2, 0)};
}

/* [taps, C, K] as [K, C, taps] */
static PlannedView taps_of(OpCall *op, const Operand *operand, ViewAccess access)
{
    return (PlannedView){operand, access, turned(op, operand, 2, 1, 0)};
}

static Convolution along_time(int64_t pad)
{
    return (Convolution){.axes = 1, .groups = 1, .alpha = 1, .stride = {1}, .padding = {pad}, .dilation = {1}};
}

aclnnStatus op_conv_tbc(OpCall *op, const Operand *self, const Operand *weight, const Operand *bias, int64_t pad,
                        const Operand *output)
{
    if (op_refused(op) || op_empty(output)) {
        return op_plan_nothing(op);
    }
    const Convolution conv = along_time(pad);
    const View absent = us_view_absent();
    const PlannedView views[] = {data_of(op, self, VIEW_READ), taps_of(op, weight, VIEW_READ), {bias, VIEW_READ, NULL},
                                 {NULL, VIEW_READ, &absent}, data_of(op, output, VIEW_WRITE)};
    return op_plan_views(op, us_conv_forward, &conv, sizeof conv, 5, views);
}

aclnnStatus op_conv_tbc_backward(OpCall *op, const Operand *slopes, const Operand *input, const Operand *weight, int64_t pad,
                                 Operands gradients)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const ConvGradients attributes = {along_time(pad), false};
    const View absent = us_view_absent();
    const Operand *data = gradients.items[0];
    const PlannedView views[] = {
        data_of(op, slopes, VIEW_READ), data_of(op, input, VIEW_READ), taps_of(op, weight, VIEW_READ),
        op_empty(data) ? (PlannedView){NULL, VIEW_READ, &absent} : data_of(op, data, VIEW_WRITE),
        taps_of(op, gradients.items[1], VIEW_WRITE), {gradients.items[2], VIEW_WRITE, NULL}};
    return op_plan_views(op, us_conv_gradients, &attributes, sizeof attributes, 6, views);
}
