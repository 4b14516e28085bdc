/* What is behind aclTensorDesc * and aclopAttr *: libascendcl makes and ends them, libacl_op_compiler reads them. */
#ifndef ASCEND_DESCRIPTIONS_H
#define ASCEND_DESCRIPTIONS_H

#include "acl/acl_op.h"
#include "device/handles.h"

enum { HANDLE_TENSOR_DESCRIPTION = 0x2e, HANDLE_OPERATOR_ATTRIBUTES = 0x2d };

/* Attributes as one text, "axis=1, keep_dims=true"; NULL until one is set. */
typedef struct OperatorAttributes {
    char *text;
} OperatorAttributes;

#endif
