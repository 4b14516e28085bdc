/* Lines written from positions that a tensor gives. */
#ifndef ASCEND_OPAPI_SPANS_H
#define ASCEND_OPAPI_SPANS_H

#include "ascend/opapi/families.h"

/* Entry i of a batch of targets is written along the axis of updates, from position i of `places` on, which may give lengths
 * too; mask, if given, leaves entries out. Targets: one tensor, or one for each entry, without the first axis. */
aclnnStatus op_put_spans(OpCall *op, Operands targets, bool apart, const Operand *places, const Operand *mask,
                         const Operand *updates, int64_t axis);
/* The same of int8, with updates as levels: step, and zero or NULL, have a number for each column. */
aclnnStatus op_put_levels(OpCall *op, const Operand *target, const Operand *places, const Operand *updates, int64_t axis,
                          const Operand *step, const Operand *zero);
/* updates has a start for each entry and its entries the target's sizes, but along the axis up to that: data is the batch,
 * or the entries are those of a list. */
bool op_spans_fit(const Operand *data, const Operand *places, const Operand *updates, int64_t axis);
bool op_listed_spans_fit(Operands list, const Operand *updates, int64_t axis);

#endif
