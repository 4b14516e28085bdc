#include "ascend/opapi/deformable.h"

#include "kernels/attention/deformable.h"

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
