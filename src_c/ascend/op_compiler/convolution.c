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

static Settings require_settings(AclnnCall *call, int32_t axes, bool transposed)
{
    static const int64_t NONE[AXES] = {0};
    const bool first = named_is(call->named, "data_format", axes == 2 ? "NCHW" : "NCDHW", false);
    named_require_attribute(call->named, "data_format", first, axes == 2 ? "\"NCHW\"" : "\"NCDHW\"");
    call->format = axes == 2 ? ACL_FORMAT_NCHW : ACL_FORMAT_NCDHW;
    return (Settings){.strides = of_axes(call, "strides", axes), .pads = pads_of(call, axes),
                      .dilations = of_axes(call, "dilations", axes),
                      .output_padding = transposed ? of_axes(call, "output_padding", axes)
                                                   : call_array(call, NONE, (uint64_t)axes),
                      .groups = named_integer(call->named, "groups", 1)};
}

/* x, weights and, where it is given, a bias. */
static void forward(Named *named, int32_t axes)
{
    named_require_counts(named, 2, 4, 1);
    AclnnCall call = {.named = named};
    const Settings how = require_settings(&call, axes, false);
    if (named->call.status == 0 && named->input_count > 3) {
        named_require_absent(named, 3); /* offset_w */
    }
    aclTensor *x = call_input(&call, 0), *weights = call_input(&call, 1), *bias = call_input(&call, 2), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnConvolution, x, weights, bias, how.strides, how.pads, how.dilations, false, how.output_padding, how.groups,
               y, 0);
}

void named_conv_2d(Named *named)
{
    forward(named, 2);
}

void named_conv_3d(Named *named)
{
    forward(named, 3);
}

/* The result's size, which it has, then as above. */
static void transposed(Named *named, int32_t axes)
{
    named_require_counts(named, 3, 5, 1);
    AclnnCall call = {.named = named};
    const Settings how = require_settings(&call, axes, true);
    if (named->call.status == 0 && named->input_count > 4) {
        named_require_absent(named, 4);
    }
    aclTensor *x = call_input(&call, 1), *weights = call_input(&call, 2), *bias = call_input(&call, 3), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnConvolution, x, weights, bias, how.strides, how.pads, how.dilations, true, how.output_padding, how.groups,
               y, 0);
}

void named_conv_2d_transpose(Named *named)
{
    transposed(named, 2);
}

void named_conv_3d_transpose(Named *named)
{
    transposed(named, 3);
}

/* ---- gradients ---- */

static void backward(AclnnCall *call, const Settings *how, aclTensor *gradient, aclTensor *x, aclTensor *weights, bool of_x,
                     aclTensor *out)
{
    const bool wanted[] = {of_x, !of_x, false};
    aclBoolArray *mask = call->named->call.status == 0 ? aclCreateBoolArray(wanted, 3) : NULL;
    us_require(&call->named->call, mask != NULL, "opType", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for %s",
               call->named->type);
    CALL_ACLNN(call, aclnnConvolutionBackward, gradient, x, weights, NULL, how->strides, how->pads, how->dilations, false,
               how->output_padding, (int32_t)how->groups, mask, 0, of_x ? out : NULL, of_x ? NULL : out, NULL);
    if (mask != NULL) {
        (void)aclDestroyBoolArray(mask);
    }
}

/* The size of x, which the result has, the weights, the gradient of y. */
static void of_x(Named *named, int32_t axes)
{
    named_require_counts(named, 3, 3, 1);
    AclnnCall call = {.named = named};
    const Settings how = require_settings(&call, axes, false);
    aclTensor *weights = call_input(&call, 1), *gradient = call_input(&call, 2), *out = call_output(&call, 0);
    backward(&call, &how, gradient, out, weights, true, out); /* of x, only the shape counts */
}

void named_conv_2d_backprop_input(Named *named)
{
    of_x(named, 2);
}

void named_conv_3d_backprop_input(Named *named)
{
    of_x(named, 3);
}

/* x, the size of the weights, which the result has, the gradient of y. */
static void of_weights(Named *named, int32_t axes)
{
    named_require_counts(named, 3, 3, 1);
    AclnnCall call = {.named = named};
    const Settings how = require_settings(&call, axes, false);
    aclTensor *x = call_input(&call, 0), *gradient = call_input(&call, 2), *out = call_output(&call, 0);
    backward(&call, &how, gradient, x, out, false, out); /* of the weights, only the shape counts */
}

void named_conv_2d_backprop_filter(Named *named)
{
    of_weights(named, 2);
}

void named_conv_3d_backprop_filter(Named *named)
{
    of_weights(named, 3);
}
