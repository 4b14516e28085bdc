/* The vendor's element types and formats, and sets of types for rules. */
#ifndef ASCEND_DTYPE_H
#define ASCEND_DTYPE_H

#include "acl/acl_base.h"
#include "tensor/view.h"

/* The type the kernels know; DTYPE_NONE when none handles it. */
DType dtype_of_acl(aclDataType dtype);

/* Bytes of one element; 0 for types packed below a byte, strings and unknown types. */
size_t acl_dtype_bytes(aclDataType dtype);

/* "ACL_FLOAT16", or "unknown": for messages. */
const char *acl_dtype_name(aclDataType dtype);

/* NC1HWC0, FRACTAL_Z and their kin, whose memory is blocked (aclnn-ops 0.4). */
bool acl_format_is_private(aclFormat format);

/* A set of element types, a bit each. */
typedef uint64_t DTypeSet;
#define DTYPE_BIT(dtype) (UINT64_C(1) << (dtype))

static inline bool dtype_in(aclDataType dtype, DTypeSet set)
{
    return (int)dtype >= 0 && (int)dtype < 64 && ((set >> (int)dtype) & 1) != 0;
}

/* "ACL_FLOAT, ACL_FLOAT16" into a buffer that is returned: for messages. */
enum { DTYPE_SET_TEXT_SIZE = 512 };
const char *dtype_set_text(DTypeSet set, char *buffer);

#endif
