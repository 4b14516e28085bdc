#include "ascend/opapi/deformable.h"

#include "kernels/attention/deformable.h"
#include "kernels/conv/deform.h"

aclnnStatus op_deformable_attention(OpCall *op, const Operand *value, const Operand *sizes, const Operand *starts,
                                    const Operand *places, const Operand *weights, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    return op_plan_operands(op, us_deformable_attention, NULL, 0, OPERANDS(value, sizes, starts, places, weights),
                            OPERANDS(out));
}

aclnnStatus op_deformable_attention_backward(OpCall *op, Operands inputs, Operands outputs)
{
    return op_refused(op) ? op_plan_nothing(op)
                          : op_plan_operands(op, us_deformable_attention_gradient, NULL, 0, inputs, outputs);
}

static bool is_small(int64_t size)
{
    return size >= -INT32_MAX && size <= INT32_MAX;
}

/* How many places a filter has along an axis (0: height, 1: width); -1 where there is no sense in it. */
static int64_t places_along(int32_t axis, const Operand *x, const Operand *weight, IntArguments stride, IntArguments padding,
                            IntArguments dilation)
{
    const int64_t *const sides = padding.values + 2 * axis, between = dilation.values[2 + axis];
    const int64_t size = op_size(x, 2 + axis), taps = op_size(weight, 2 + axis);
    if (!is_small(sides[0]) || !is_small(sides[1]) || !is_small(between) || !is_small(size) || !is_small(taps)) {
        return -1;
    }
    const int64_t room = size + sides[0] + sides[1] - (taps - 1) * between - 1;
    return room < 0 ? 0 : room / stride.values[2 + axis] + 1;
}

Shape op_shape_deformed(OpCall *op, const Operand *x, const Operand *weight, IntArguments stride, IntArguments padding,
                        IntArguments dilation)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    return (Shape){4, {op_size(x, 0), op_size(weight, 0), places_along(0, x, weight, stride, padding, dilation),
                       places_along(1, x, weight, stride, padding, dilation)}};
}

aclnnStatus op_deformable_convolution(OpCall *op, const Operand *x, const Operand *weight, const Operand *moves,
                                      const Operand *bias, IntArguments stride, IntArguments padding, IntArguments dilation,
                                      int64_t groups, int64_t parts, const Operand *out, const Operand *samples)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const DeformableConvolution attributes = {{stride.values[2], stride.values[3]}, {padding.values[0], padding.values[2]},
                                              {dilation.values[2], dilation.values[3]}, groups, parts};
    const View absent = us_view_absent();
    const PlannedView none = {NULL, VIEW_READ, &absent};
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {moves, VIEW_READ, NULL}, {weight, VIEW_READ, NULL},
                                 op_given(bias) ? (PlannedView){bias, VIEW_READ, NULL} : none,
                                 op_given(samples) ? (PlannedView){samples, VIEW_READ_WRITE, NULL} : none,
                                 {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_conv_deformable, &attributes, sizeof attributes, 6, views);
}
