/* Which type a mix of types becomes, and which conversions exist: aclnn-base 7, as data. */
#ifndef ASCEND_PROMOTION_H
#define ASCEND_PROMOTION_H

#include "acl/acl_base.h"

#include <stdbool.h>

/* Tensor with tensor. ACL_DT_UNDEFINED: the types do not mix. Symmetric. */
aclDataType acl_promote(aclDataType a, aclDataType b);

/* Tensor with scalar: the tensor's category dominates. ACL_DT_UNDEFINED: the types do not mix. */
aclDataType acl_promote_scalar(aclDataType tensor, aclDataType scalar);

/* Whether a result of type `from` may be written to an output of type `to`. */
bool acl_can_cast(aclDataType from, aclDataType to);

#endif
