#include "ascend/opapi/clamp.h"

#include "kernels/map/formulas.h"

aclnnStatus op_clamp(OpCall *op, const Operand *self, const ScalarArgument *low, const ScalarArgument *high,
                     aclDataType compute, const Operand *out)
{
    if (low->given && high->given) {
        return op_map(op, &us_map_clamp, compute, OPERANDS(self, NULL, NULL), OPERANDS(out),
                      NUMBERS(op_number(low, compute), op_number(high, compute)));
    }
    return op_map(op, low->given ? &us_map_maximum : &us_map_minimum, compute, OPERANDS(self, NULL), OPERANDS(out),
                  NUMBERS(op_number(low->given ? low : high, compute)));
}

aclnnStatus op_clamp_tensor(OpCall *op, const Operand *self, const Operand *low, const Operand *high,
                            aclDataType compute, const Operand *out)
{
    if (op_given(low) && op_given(high)) {
        return op_map(op, &us_map_clamp, compute, OPERANDS(self, low, high), OPERANDS(out), NO_NUMBERS);
    }
    return op_map(op, op_given(low) ? &us_map_maximum : &us_map_minimum, compute,
                  OPERANDS(self, op_given(low) ? low : high), OPERANDS(out), NO_NUMBERS);
}
