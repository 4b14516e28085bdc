#include "ascend/opapi/distances.h"

#include "kernels/linear_algebra/distance.h"

Shape op_shape_distances(OpCall *op, const Operand *x1, const Operand *x2)
{
    Shape batch = {0};
    op_require(op, op_refused(op) || op_joint_batch(x1, x2, &batch), x2->name, "broadcast", op->invalid,
               "%s is %s, %s is %s: their batches do not broadcast", x1->name, op_shape_text(op, x1), x2->name,
               op_shape_text(op, x2));
    return op_shape_in_batch(op, x1, x2, op_size(x1, -2), op_size(x2, -2));
}

aclnnStatus op_distances(OpCall *op, const Operand *x1, const Operand *x2, double power, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Distance attributes = {power};
    const int32_t batch = out->view.rank - 2;
    const View a = op_with_batch(&x1->view, batch, out->view.shape), b = op_with_batch(&x2->view, batch,
        out->view.shape);
    const PlannedView views[] = {{x1, VIEW_READ, &a}, {x2, VIEW_READ, &b}, {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_distance, &attributes, sizeof attributes, 3, views);
}

Shape op_shape_distance_slopes(OpCall *op, const Operand *grad, const Operand *x1)
{
    Shape shape = op_shape(grad);
    if (!op_refused(op)) {
        shape.sizes[shape.rank - 1] = op_size(x1, -1);
    }
    return shape;
}

aclnnStatus op_distances_backward(OpCall *op, const Operand *grad, const Operand *x1, const Operand *x2,
                                  const Operand *distances, double power, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Distance attributes = {power};
    const int32_t batch = grad->view.rank - 2;
    const View a = op_with_batch(&x1->view, batch, grad->view.shape);
    const View b = op_with_batch(&x2->view, batch, grad->view.shape);
    const PlannedView views[] = {{grad, VIEW_READ, NULL}, {x1, VIEW_READ, &a}, {x2, VIEW_READ, &b},
                                 {distances, VIEW_READ, NULL}, {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_distance_gradient, &attributes, sizeof attributes, 5, views);
}

Shape op_shape_pairs(OpCall *op, const Operand *self)
{
    const int64_t rows = op_refused(op) ? 0 : op_size(self, 0);
    int64_t pairs = -1;
    if (!__builtin_mul_overflow(rows, rows > 0 ? rows - 1 : 0, &pairs)) {
        pairs /= 2;
    }
    return op_shape_of(1, &pairs);
}

aclnnStatus op_pair_distances(OpCall *op, const Operand *self, double power, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Distance attributes = {power};
    return op_plan_operands(op, us_pair_distance, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(out));
}
