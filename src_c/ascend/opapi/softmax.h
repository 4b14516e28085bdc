/* Softmax, its logarithm, and their gradients. */
#ifndef ASCEND_OPAPI_SOFTMAX_H
#define ASCEND_OPAPI_SOFTMAX_H

#include "ascend/opapi/families.h"

#include <math.h>

/* Along one axis; a scalar is an axis of one element. Computed in float32, of float64 in float64. */
aclnnStatus op_softmax(OpCall *op, SoftmaxAlgorithm algorithm, const Operand *self, int32_t axis, const Operand *out);
aclnnStatus op_softmax_backward(OpCall *op, SoftmaxAlgorithm algorithm, const Operand *gradient, const Operand *result,
                                int32_t axis, const Operand *out);

/* mask [n or 1, c or 1, h, w] of x [n, c, h, w]. */
bool op_masks_planes(const Operand *mask, const Operand *x);
aclnnStatus op_masked_softmax(OpCall *op, const Operand *x, const Operand *mask, double scale, const Operand *y);
aclnnStatus op_masked_softmax_backward(OpCall *op, const Operand *gradient, const Operand *result, const Operand *mask,
                                       double scale, const Operand *out);

/* Windows of an image: x [B * W, N, H, W'] or [B, W, N, H, W']; mask [W, H, W'], [W, 1, H, W'] or [1, W, 1, H, W'], or not
 * given; bias [N, H, W'], [1, N, H, W'] or [1, 1, N, H, W']. */
bool op_masks_windows(const Operand *mask, const Operand *x);
bool op_shifts_heads(const Operand *bias, const Operand *x);
aclnnStatus op_shifted_softmax(OpCall *op, const Operand *x, const Operand *mask, const Operand *bias, double scale,
                               const Operand *out);

#endif
