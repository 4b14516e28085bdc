#include "ascend/opapi/segments.h"

#include "kernels/scan/segments.h"

Shape op_shape_squared(OpCall *op, const Operand *self)
{
    Shape shape = op_shape(self);
    if (!op_refused(op)) {
        shape.sizes[shape.rank] = shape.sizes[shape.rank - 1];
        shape.rank++;
    }
    return shape;
}

Shape op_shape_of_square(OpCall *op, const Operand *self)
{
    Shape shape = op_shape(self);
    shape.rank -= !op_refused(op);
    return shape;
}

aclnnStatus op_exp_segments(OpCall *op, const Operand *self, const Operand *out)
{
    return op_plan_operands(op, us_exp_segments, NULL, 0, OPERANDS(self), OPERANDS(out));
}

aclnnStatus op_exp_segments_backward(OpCall *op, const Operand *slope, const Operand *result, const Operand *out)
{
    return op_plan_operands(op, us_exp_segments_backward, NULL, 0, OPERANDS(slope, result), OPERANDS(out));
}
