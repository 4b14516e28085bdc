#include "ascend/opapi/sort.h"

#include "kernels/sort/sort.h"

static aclnnStatus plan_lines(OpCall *op, Kernel *kernel, const Operand *self, int32_t axis, bool descending,
                              const Operand *values, const Operand *indices)
{
    const SortLines attributes = {.axis = axis, .descending = descending};
    return op_plan_operands(op, kernel, &attributes, sizeof attributes, OPERANDS(self), OPERANDS(values, indices));
}

aclnnStatus op_sort(OpCall *op, const Operand *self, int32_t axis, bool descending, const Operand *values,
                    const Operand *indices)
{
    return plan_lines(op, us_sort, self, axis, descending, values, indices);
}

aclnnStatus op_topk(OpCall *op, const Operand *self, int32_t axis, bool largest, const Operand *values,
                    const Operand *indices)
{
    return plan_lines(op, us_topk, self, axis, largest, values, indices);
}

Shape op_shape_first(OpCall *op, const Operand *self, int32_t axis, int64_t count)
{
    Shape shape = op_shape(self);
    if (!op_refused(op) && axis < shape.rank) {
        shape.sizes[axis] = count;
    }
    return shape;
}
