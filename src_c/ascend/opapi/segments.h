/* Segments of lines. */
#ifndef ASCEND_OPAPI_SEGMENTS_H
#define ASCEND_OPAPI_SEGMENTS_H

#include "ascend/opapi/shapes.h"

/* The last axis twice, and once. */
Shape op_shape_squared(OpCall *op, const Operand *self);
Shape op_shape_of_square(OpCall *op, const Operand *self);
aclnnStatus op_exp_segments(OpCall *op, const Operand *self, const Operand *out);
aclnnStatus op_exp_segments_backward(OpCall *op, const Operand *slope, const Operand *result, const Operand *out);

#endif
