/* What is behind aclTensorDesc * and aclopAttr *: libascendcl makes and ends them, libacl_op_compiler reads them. */
#ifndef ASCEND_DESCRIPTIONS_H
#define ASCEND_DESCRIPTIONS_H

#include "acl/acl_op.h"
#include "device/handles.h"

enum { HANDLE_TENSOR_DESCRIPTION = 0x2e, HANDLE_OPERATOR_ATTRIBUTES = 0x2d };

enum { DESCRIPTION_RANK_LIMIT = 64, UNKNOWN_SIZE = -1, UNKNOWN_RANK = -2 };

typedef struct Dimensions {
    int count;
    int64_t sizes[DESCRIPTION_RANK_LIMIT];
    int64_t ranges[DESCRIPTION_RANK_LIMIT][ACL_TENSOR_SHAPE_RANGE_NUM];
} Dimensions;

struct aclTensorDesc {
    aclDataType type;
    aclFormat format, storage_format;
    aclMemType memory_type;
    Dimensions dimensions;
    char *name;
    void *constant;
    size_t constant_size;
};

/* Attributes as one text, "axis=1, keep_dims=true"; NULL until one is set. */
typedef struct OperatorAttributes {
    char *text;
} OperatorAttributes;

#endif
