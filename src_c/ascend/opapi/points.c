#include "ascend/opapi/points.h"

#include "kernels/index/points.h"

Shape op_shape_of_points(OpCall *op, const Operand *slopes, int64_t m)
{
    Shape shape = op_shape(slopes);
    if (!op_refused(op)) {
        shape.sizes[2] = m;
    }
    return shape;
}

/* Without the last of four axes, which is 1. */
static View three_axes(const Operand *operand)
{
    View view = operand->view;
    view.rank = 3;
    return view;
}

aclnnStatus op_three_points_backward(OpCall *op, const Operand *slopes, const Operand *indices, const Operand *weights,
                                     const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View given = three_axes(slopes), result = three_axes(out);
    const PlannedView views[] = {{slopes, VIEW_READ, &given}, {indices, VIEW_READ, NULL}, {weights, VIEW_READ, NULL},
                                 {out, VIEW_WRITE, &result}};
    return op_plan_views(op, us_three_points_gradient, NULL, 0, 4, views);
}

aclnnStatus op_nearest_points_backward(OpCall *op, Operands inputs, Operands outputs)
{
    return op_refused(op) ? op_plan_nothing(op)
                          : op_plan_operands(op, us_nearest_points_gradient, NULL, 0, inputs, outputs);
}
