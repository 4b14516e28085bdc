/* Shapes that pages write as name(…), beside those of families.h. */
#ifndef ASCEND_OPAPI_SHAPES_H
#define ASCEND_OPAPI_SHAPES_H

#include "ascend/opapi/families.h"

/* The sizes that an array lists. */
Shape op_shape_listed(OpCall *op, IntArguments sizes);
/* The last axes replaced. */
Shape op_shape_resized(OpCall *op, const Operand *self, IntArguments size);
/* The spatial axes replaced: the last ones, or those before the channels. */
Shape op_shape_upsampled(OpCall *op, const Operand *self, IntArguments size);
/* x without its last axis. */
Shape op_shape_rows(OpCall *op, const Operand *x);
/* By the formats NHWC of four dimensions and NDHWC of five. */
bool op_has_channels_last(const Operand *operand);

/* dim as an axis; -1 where there is no such dimension. */
int32_t op_axis(int64_t dim, const Operand *operand);
bool op_sizes_below(const Operand *operand, int64_t limit);
bool op_is_complex(aclDataType dtype);
bool op_has_shape(const Operand *operand, const Shape *shape);

#endif
