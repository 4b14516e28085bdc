/* Convolutions by name, of 2 and 3 axes, and the samples of deformable ones. Strides and dilations are told of all
 * axes, padding of both sides of those behind the channels. */
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "ascend/op_compiler/calls.h"
#include "kernels/conv/deform.h"

enum { AXES = 3 };

typedef struct Settings {
    aclIntArray *strides, *pads, *dilations, *output_padding;
    int64_t groups;
} Settings;

/* What an attribute that tells of all axes tells of the last ones. */
static aclIntArray *of_axes(AclnnCall *call, const char *attribute, int32_t axes)
{
    int64_t values[AXES + 2] = {0};
    const int32_t count = named_integers(call->named, attribute, values, AXES + 2);
    named_require_attribute(call->named, attribute, count == axes + 2, "a number for each axis");
    return call_array(call, values + 2, (uint64_t)axes);
}

/* One number where both sides of an axis have the same: aclnn takes two only of two axes. */
static aclIntArray *pads_of(AclnnCall *call, int32_t axes)
{
    int64_t given[2 * AXES + 2] = {0}, pads[AXES];
    const int32_t count = named_integers(call->named, "pads", given, 2 * AXES + 2);
    bool even = true;
    named_require_attribute(call->named, "pads", count == 2 * axes, "two numbers for each axis");
    for (int32_t axis = 0; axis < axes; axis++) {
        pads[axis] = given[2 * axis];
        even &= given[2 * axis] == given[2 * axis + 1];
    }
    return even ? call_array(call, pads, (uint64_t)axes) : call_array(call, given, 2 * (uint64_t)axes);
}

static int64_t groups_of(AclnnCall *call)
{
    const int64_t groups = named_integer(call->named, "groups", 1);
    named_require_attribute(call->named, "groups", groups >= 1 && groups <= INT32_MAX, "1 or more");
    return groups;
}

static Settings require_settings(AclnnCall *call, int32_t axes, bool transposed)
{
    static const int64_t NONE[AXES] = {0};
    const bool first = named_is(call->named, "data_format", false, axes == 2 ? "NCHW" : "NCDHW");
    named_require_attribute(call->named, "data_format", first, axes == 2 ? "\"NCHW\"" : "\"NCDHW\"");
    call->format = axes == 2 ? ACL_FORMAT_NCHW : ACL_FORMAT_NCDHW;
    return (Settings){.strides = of_axes(call, "strides", axes), .pads = pads_of(call, axes),
                      .dilations = of_axes(call, "dilations", axes),
                      .output_padding = transposed ? of_axes(call, "output_padding", axes)
                                                   : call_array(call, NONE, (uint64_t)axes),
                      .groups = groups_of(call)};
}

/* x, weights, a bias where it is given, offsets, which are not emulated. Transposed, the size of the result, which it has,
 * comes first. */
static void convolve(Named *named, int32_t axes, bool transposed)
{
    const int32_t first = transposed ? 1 : 0;
    named_require_counts(named, first + 2, first + 4, 1);
    AclnnCall call = {.named = named};
    const Settings how = require_settings(&call, axes, transposed);
    if (named->input_count > first + 3) {
        named_require_absent(named, first + 3);
    }
    aclTensor *x = call_input(&call, first), *weights = call_input(&call, first + 1), *bias = call_input(&call, first + 2);
    aclTensor *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnConvolution, x, weights, bias, how.strides, how.pads, how.dilations, transposed, how.output_padding,
               how.groups, y, 0);
}

void named_conv_2d(Named *named)
{
    convolve(named, 2, false);
}

void named_conv_3d(Named *named)
{
    convolve(named, 3, false);
}

void named_conv_2d_transpose(Named *named)
{
    convolve(named, 2, true);
}

void named_conv_3d_transpose(Named *named)
{
    convolve(named, 3, true);
}

/* ---- gradients ---- */

/* Of x (`weights` are given) or of the weights (x is given): of the other one, the result tells the shape. */
static void backward(Named *named, int32_t axes, bool of_x)
{
    enum { X = 0, WEIGHTS = 1, GRADIENT = 2 };
    AclnnCall call = {.named = named};
    named_require_counts(named, 3, 3, 1);
    const Settings how = require_settings(&call, axes, false);
    named_require_input(named, GRADIENT, axes + 2);
    aclIntArray *channels = call_array(&call, &named->inputs[GRADIENT].shape[1], 1);
    aclTensor *gradient = call_input(&call, GRADIENT), *out = call_output(&call, 0);
    aclTensor *x = of_x ? out : call_input(&call, X), *weights = of_x ? call_input(&call, WEIGHTS) : out;
    const bool wanted[] = {of_x, !of_x, false};
    aclBoolArray *mask = call_bools(&call, wanted, 3);
    CALL_ACLNN(&call, aclnnConvolutionBackward, gradient, x, weights, channels, how.strides, how.pads, how.dilations, false,
               how.output_padding, (int32_t)how.groups, mask, 0, of_x ? out : NULL, of_x ? NULL : out, NULL);
}

/* The size of x, which the result has, the weights, the gradient of y. */
void named_conv_2d_backprop_input(Named *named)
{
    backward(named, 2, true);
}

void named_conv_3d_backprop_input(Named *named)
{
    backward(named, 3, true);
}

/* x, the size of the weights, which the result has, the gradient of y. */
void named_conv_2d_backprop_filter(Named *named)
{
    backward(named, 2, false);
}

void named_conv_3d_backprop_filter(Named *named)
{
    backward(named, 3, false);
}

/* ---- samples between pixels ---- */

/* [n, h, w, c] as [n, c, h, w]. */
static View with_channels_first(const View *view)
{
    static const int8_t axes[] = {0, 3, 1, 2};
    View turned = *view;
    for (int32_t i = 0; i < 4; i++) {
        turned.shape[i] = view->shape[axes[i]];
        turned.strides[i] = view->strides[axes[i]];
    }
    return turned;
}

/* Numbers 1 or more of height and width, between those of images and channels. */
static void of_plane(Named *named, const char *attribute, int64_t *values)
{
    int64_t given[4] = {0};
    const int32_t count = named_integers(named, attribute, given, 4);
    const bool fits = count == 4 && given[0] == 1 && given[1] >= 1 && given[2] >= 1 && given[3] == 1;
    named_require_attribute(named, attribute, fits, "[1, height, width, 1], each 1 or more");
    values[0] = given[1];
    values[1] = given[2];
}

static int64_t places_of(int64_t size, const int64_t *pads, int64_t dilation, int64_t taps, int64_t stride)
{
    int64_t padded, reach;
    const bool fits = !__builtin_add_overflow(size, pads[0], &padded) &&
                      !__builtin_add_overflow(padded, pads[1], &padded) &&
                      !__builtin_mul_overflow(dilation, taps - 1, &reach) && reach < padded;
    return fits ? (padded - reach - 1) / stride + 1 : 0;
}

static DeformableConvolution require_deformation(Named *named, int64_t *taps, int64_t *pads)
{
    DeformableConvolution how = {.groups = 1, .parts = named_integer(named, "deformable_groups", 1)};
    of_plane(named, "strides", how.stride);
    of_plane(named, "dilations", how.dilation);
    int32_t count = named_integers(named, "ksize", taps, 2);
    named_require_attribute(named, "ksize", count == 2 && taps[0] >= 1 && taps[1] >= 1, "two numbers, each 1 or more");
    count = named_integers(named, "pads", pads, 4);
    named_require_attribute(named, "pads", count == 4 && pads[0] >= 0 && pads[1] >= 0 && pads[2] >= 0 && pads[3] >= 0,
                            "four numbers, each 0 or more");
    named_require_attribute(named, "data_format", named_is(named, "data_format", false, "NHWC"), "\"NHWC\"");
    named_require_attribute(named, "modulated", named_bool(named, "modulated", true), "true");
    how.padding[0] = pads[0];
    how.padding[1] = pads[2];
    return how;
}

typedef struct Deformed {
    DeformableConvolution how;
    int64_t moves[4], samples[4]; /* shapes */
} Deformed;

/* From x, which is input `index`, and the attributes; moves are the input behind it. */
static Deformed require_deformed(Named *named, int32_t index)
{
    int64_t taps[2] = {0}, pads[4] = {0}, channels = 0, pixels = 0;
    Deformed made = {.how = require_deformation(named, taps, pads)};
    named_require_input(named, index, 4);
    named_require_input(named, index + 1, 4);
    if (named->call.status != 0) {
        return made;
    }
    const View *x = &named->inputs[index];
    const bool divides = made.how.parts >= 1 && x->shape[3] % made.how.parts == 0;
    named_require_attribute(named, "deformable_groups", divides, "a divisor of the channels");
    bool counted = !__builtin_mul_overflow(taps[0], taps[1], &channels) &&
                   !__builtin_mul_overflow(channels, 3, &channels) &&
                   !__builtin_mul_overflow(channels, made.how.parts, &channels) &&
                   !__builtin_mul_overflow(x->shape[1], x->shape[2], &pixels) && pixels <= INT32_MAX;
    for (int32_t axis = 0; axis < 2; axis++) {
        const int64_t places = places_of(x->shape[1 + axis], pads + 2 * axis, made.how.dilation[axis], taps[axis],
                                         made.how.stride[axis]);
        made.moves[1 + axis] = places;
        counted = counted && places > 0 && !__builtin_mul_overflow(places, taps[axis], &made.samples[1 + axis]);
    }
    us_require(&named->call, counted, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "the filter of %s does not fit its image, or the image has too many pixels", named->type);
    us_require(&named->call, us_dtype_is_float(x->dtype) && x->dtype != DTYPE_FLOAT64, "inputDesc", "type",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "input %d of %s is of type %s; it must be float32, float16 or bfloat16",
               (int)index, named->type, us_dtype_name(x->dtype));
    made.moves[0] = made.samples[0] = x->shape[0];
    made.moves[3] = channels;
    made.samples[3] = x->shape[3];
    named_require_shape(named, true, index + 1, x->dtype, 4, made.moves);
    return made;
}

/* x [n, h, w, c] and moves [n, p, q, 3 * groups * taps]; y [n, p * rows, q * columns, c]. */
void named_deformable_offsets(Named *named)
{
    named_require_counts(named, 2, 2, 1);
    const Deformed made = require_deformed(named, 0);
    named_require_shape(named, false, 0, named->inputs[0].dtype, 4, made.samples);
    const View turned[] = {with_channels_first(&named->inputs[0]), with_channels_first(&named->inputs[1]),
                           with_channels_first(&named->outputs[0])};
    NamedViews views = {.count = 0};
    named_read(&views, &turned[0]);
    named_read(&views, &turned[1]);
    named_write(&views, &turned[2]);
    named_run(named, us_deformed_samples, &views, &made.how, sizeof made.how);
}

/* Slopes of the samples, x and moves; slopes of these. */
void named_deformable_offsets_grad(Named *named)
{
    enum { SLOPES, X };
    named_require_counts(named, 3, 3, 2);
    named_require_input(named, SLOPES, 4);
    const Deformed made = require_deformed(named, X);
    named_require_shape(named, true, SLOPES, named->inputs[X].dtype, 4, made.samples);
    for (int32_t i = 0; i < 2; i++) {
        named_require_shape(named, false, i, named->inputs[X].dtype, 4, named->inputs[X + i].shape);
    }
    View turned[5];
    NamedViews views = {.count = 0};
    for (int32_t i = 0; i < 5; i++) {
        turned[i] = with_channels_first(i < 3 ? &named->inputs[i] : &named->outputs[i - 3]);
        (i < 3 ? named_read : named_write)(&views, &turned[i]);
    }
    named_run(named, us_deformed_samples_gradient, &views, &made.how, sizeof made.how);
}
