/* Shapes that pages write as name(…), beside those of families.h. */
#ifndef ASCEND_OPAPI_SHAPES_H
#define ASCEND_OPAPI_SHAPES_H

#include "ascend/opapi/families.h"

/* The sizes that an array lists. */
Shape op_shape_listed(OpCall *op, IntArguments sizes);
/* The last axes replaced. */
Shape op_shape_resized(OpCall *op, const Operand *self, IntArguments size);

#endif
