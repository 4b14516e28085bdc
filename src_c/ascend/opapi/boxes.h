/* Boxes [left, low, right, high], one in a row. */
#ifndef ASCEND_OPAPI_BOXES_H
#define ASCEND_OPAPI_BOXES_H

#include "ascend/opapi/families.h"

/* Of each box with each of the others, or, `aligned`, of pairs. */
Shape op_shape_overlaps(OpCall *op, const Operand *boxes, const Operand *others, bool aligned);
/* The area that two boxes share over that of both, or `of_second` (formula box_overlap). */
aclnnStatus op_box_overlaps(OpCall *op, const Operand *boxes, const Operand *others, bool aligned, bool of_second,
                            double margin, const Operand *out);

#endif
