/* Clamping to bounds of which one may be missing. */
#ifndef ASCEND_OPAPI_CLAMP_H
#define ASCEND_OPAPI_CLAMP_H

#include "ascend/opapi/families.h"

/* out = max(min(self, high), low), computed in `compute`; a bound that is not given does not count. */
aclnnStatus op_clamp(OpCall *op, const Operand *self, const ScalarArgument *low, const ScalarArgument *high,
                     aclDataType compute, const Operand *out);
aclnnStatus op_clamp_tensor(OpCall *op, const Operand *self, const Operand *low, const Operand *high,
                            aclDataType compute, const Operand *out);

#endif
