/* Operators that look at points between pixels, which come with the call: src_c/kernels/attention/deformable.h
 * and src_c/kernels/conv/deform.h. */
#ifndef ASCEND_OPAPI_DEFORMABLE_H
#define ASCEND_OPAPI_DEFORMABLE_H

#include "ascend/opapi/families.h"

aclnnStatus op_deformable_attention(OpCall *op, const Operand *value, const Operand *sizes, const Operand *starts,
                                    const Operand *places, const Operand *weights, const Operand *out);
/* inputs: the same and the slopes of out; outputs: those of value, places, weights. */
aclnnStatus op_deformable_attention_backward(OpCall *op, Operands inputs, Operands outputs);

/* stride and dilation have four entries, of which the last two count; padding is of top, bottom, left, right. */
Shape op_shape_deformed(OpCall *op, const Operand *x, const Operand *weight, IntArguments stride, IntArguments padding,
                        IntArguments dilation);
aclnnStatus op_deformable_convolution(OpCall *op, const Operand *x, const Operand *weight, const Operand *moves,
                                      const Operand *bias, IntArguments stride, IntArguments padding, IntArguments dilation,
                                      int64_t groups, int64_t parts, const Operand *out, const Operand *samples);

#endif
