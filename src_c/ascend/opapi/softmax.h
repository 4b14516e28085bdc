/* Softmax, its logarithm, and their gradients. */
#ifndef ASCEND_OPAPI_SOFTMAX_H
#define ASCEND_OPAPI_SOFTMAX_H

#include "ascend/opapi/families.h"

/* Along one axis; a scalar is an axis of one element. Computed in float32, of float64 in float64. */
aclnnStatus op_softmax(OpCall *op, SoftmaxAlgorithm algorithm, const Operand *self, int32_t axis, const Operand *out);
aclnnStatus op_softmax_backward(OpCall *op, SoftmaxAlgorithm algorithm, const Operand *gradient, const Operand *result,
                                int32_t axis, const Operand *out);

/* mask [n or 1, c or 1, h, w] of x [n, c, h, w]. */
bool op_masks_planes(const Operand *mask, const Operand *x);
aclnnStatus op_masked_softmax(OpCall *op, const Operand *x, const Operand *mask, double scale, const Operand *y);
aclnnStatus op_masked_softmax_backward(OpCall *op, const Operand *gradient, const Operand *result, const Operand *mask,
                                       double scale, const Operand *out);

#endif
