/* Operators that look at points between pixels, which come with the call: src_c/kernels/attention/deformable.h. */
#ifndef ASCEND_OPAPI_DEFORMABLE_H
#define ASCEND_OPAPI_DEFORMABLE_H

#include "ascend/opapi/families.h"

aclnnStatus op_deformable_attention(OpCall *op, const Operand *value, const Operand *sizes, const Operand *starts,
                                    const Operand *places, const Operand *weights, const Operand *out);
/* inputs: the same and the slopes of out; outputs: those of value, places, weights. */
aclnnStatus op_deformable_attention_backward(OpCall *op, Operands inputs, Operands outputs);

#endif
