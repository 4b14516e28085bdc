/* Gradients of operators on sets of points: src_c/kernels/index/points.h. */
#ifndef ASCEND_OPAPI_POINTS_H
#define ASCEND_OPAPI_POINTS_H

#include "ascend/opapi/families.h"

/* slopes [b, c, n] or [b, c, n, 1], indices and weights [b, n, 3]; out has m in n's place. */
Shape op_shape_of_points(OpCall *op, const Operand *slopes, int64_t m);
aclnnStatus op_three_points_backward(OpCall *op, const Operand *slopes, const Operand *indices, const Operand *weights,
                                     const Operand *out);
/* inputs: both sets, the indices of both, the slopes of the distances of both; outputs: the slopes of both sets. */
aclnnStatus op_nearest_points_backward(OpCall *op, Operands inputs, Operands outputs);

#endif
