/* Borders made from the inside. `padding` has two numbers for each padded dimension, the last dimension first. */
#ifndef ASCEND_OPAPI_PAD_H
#define ASCEND_OPAPI_PAD_H

#include "ascend/opapi/families.h"
#include "kernels/index/pad.h"

/* Two numbers for each of `axes` dimensions (padding/length); only a batch may be empty (self/empty); each below the
 * size of its dimension, and the result not negative (padding/range). */
void require_padding(OpCall *op, const Operand *self, IntArguments padding, int32_t axes);
aclnnStatus op_border_pad(OpCall *op, const Operand *self, IntArguments padding, BorderMode mode, const Operand *out);
aclnnStatus op_border_pad_gradient(OpCall *op, const Operand *grad_output, IntArguments padding, BorderMode mode,
                                   const Operand *grad_input);
/* No number above 7: a limit of pages for BF16. */
bool op_padding_small(IntArguments padding);

#endif
