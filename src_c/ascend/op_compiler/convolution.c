/* Convolutions by name, of 2 and 3 axes. Strides and dilations are told of all axes, padding of both sides of those behind
 * the channels. */
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "ascend/op_compiler/calls.h"

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
