/* Distances between rows. */
#ifndef ASCEND_OPAPI_DISTANCES_H
#define ASCEND_OPAPI_DISTANCES_H

#include "ascend/opapi/matmul.h"

/* x1 [..., p, m], x2 [..., r, m]: their batches broadcast (x2/broadcast). */
Shape op_shape_distances(OpCall *op, const Operand *x1, const Operand *x2);
aclnnStatus op_distances(OpCall *op, const Operand *x1, const Operand *x2, double power, const Operand *out);
Shape op_shape_distance_slopes(OpCall *op, const Operand *grad, const Operand *x1);
/* out = slope of the distances [..., p, r] by x1, of its shape, with the slopes of the result in grad. */
aclnnStatus op_distances_backward(OpCall *op, const Operand *grad, const Operand *x1, const Operand *x2,
                                  const Operand *distances, double power, const Operand *out);
/* Of n rows [n (n - 1) / 2]: each with those after it. */
Shape op_shape_pairs(OpCall *op, const Operand *self);
aclnnStatus op_pair_distances(OpCall *op, const Operand *self, double power, const Operand *out);

#endif
