/* Softmax, its logarithm, and their gradients. */
#ifndef ASCEND_OPAPI_SOFTMAX_H
#define ASCEND_OPAPI_SOFTMAX_H

#include "ascend/opapi/families.h"

/* Along one axis; a scalar is an axis of one element. Computed in float32, of float64 in float64. */
aclnnStatus op_softmax(OpCall *op, SoftmaxAlgorithm algorithm, const Operand *self, int32_t axis, const Operand *out);
aclnnStatus op_softmax_backward(OpCall *op, SoftmaxAlgorithm algorithm, const Operand *gradient, const Operand *result,
                                int32_t axis, const Operand *out);

#endif
