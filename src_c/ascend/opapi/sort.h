/* Sorting and what sorting makes easy. */
#ifndef ASCEND_OPAPI_SORT_H
#define ASCEND_OPAPI_SORT_H

#include "ascend/opapi/families.h"

/* Stable; NaN is the greatest value. values may be NULL. */
aclnnStatus op_sort(OpCall *op, const Operand *self, int32_t axis, bool descending, const Operand *values,
                    const Operand *indices);
/* The first ones of the sorted line, as many as values has. */
aclnnStatus op_topk(OpCall *op, const Operand *self, int32_t axis, bool largest, const Operand *values,
                    const Operand *indices);
Shape op_shape_first(OpCall *op, const Operand *self, int32_t axis, int64_t count);

#endif
