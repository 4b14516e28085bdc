#include "ascend/common/dtype.h"

#include <string.h>

typedef struct DTypeFacts {
    aclDataType dtype;
    DType internal;
    size_t bytes;
    const char *name;
} DTypeFacts;

static const DTypeFacts facts[] = {
    {ACL_FLOAT, DTYPE_FLOAT32, 4, "ACL_FLOAT"},
    {ACL_FLOAT16, DTYPE_FLOAT16, 2, "ACL_FLOAT16"},
    {ACL_INT8, DTYPE_INT8, 1, "ACL_INT8"},
    {ACL_INT32, DTYPE_INT32, 4, "ACL_INT32"},
    {ACL_UINT8, DTYPE_UINT8, 1, "ACL_UINT8"},
    {ACL_INT16, DTYPE_INT16, 2, "ACL_INT16"},
    {ACL_UINT16, DTYPE_UINT16, 2, "ACL_UINT16"},
    {ACL_UINT32, DTYPE_UINT32, 4, "ACL_UINT32"},
    {ACL_INT64, DTYPE_INT64, 8, "ACL_INT64"},
    {ACL_UINT64, DTYPE_UINT64, 8, "ACL_UINT64"},
    {ACL_DOUBLE, DTYPE_FLOAT64, 8, "ACL_DOUBLE"},
    {ACL_BOOL, DTYPE_BOOL, 1, "ACL_BOOL"},
    {ACL_STRING, DTYPE_NONE, 0, "ACL_STRING"},
    {ACL_COMPLEX64, DTYPE_COMPLEX64, 8, "ACL_COMPLEX64"},
    {ACL_COMPLEX128, DTYPE_COMPLEX128, 16, "ACL_COMPLEX128"},
    {ACL_BF16, DTYPE_BFLOAT16, 2, "ACL_BF16"},
    {ACL_INT4, DTYPE_NONE, 0, "ACL_INT4"},
    {ACL_UINT1, DTYPE_NONE, 0, "ACL_UINT1"},
    {ACL_COMPLEX32, DTYPE_NONE, 4, "ACL_COMPLEX32"},
    {ACL_HIFLOAT8, DTYPE_NONE, 1, "ACL_HIFLOAT8"},
    {ACL_FLOAT8_E5M2, DTYPE_NONE, 1, "ACL_FLOAT8_E5M2"},
    {ACL_FLOAT8_E4M3FN, DTYPE_NONE, 1, "ACL_FLOAT8_E4M3FN"},
    {ACL_FLOAT8_E8M0, DTYPE_NONE, 1, "ACL_FLOAT8_E8M0"},
    {ACL_FLOAT6_E3M2, DTYPE_NONE, 0, "ACL_FLOAT6_E3M2"},
    {ACL_FLOAT6_E2M3, DTYPE_NONE, 0, "ACL_FLOAT6_E2M3"},
    {ACL_FLOAT4_E2M1, DTYPE_NONE, 0, "ACL_FLOAT4_E2M1"},
    {ACL_FLOAT4_E1M2, DTYPE_NONE, 0, "ACL_FLOAT4_E1M2"},
};

static const DTypeFacts *facts_of(aclDataType dtype)
{
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (facts[i].dtype == dtype) {
            return &facts[i];
        }
    }
    return NULL;
}

DType dtype_of_acl(aclDataType dtype)
{
    const DTypeFacts *found = facts_of(dtype);
    return found != NULL ? found->internal : DTYPE_NONE;
}

size_t acl_dtype_bytes(aclDataType dtype)
{
    const DTypeFacts *found = facts_of(dtype);
    return found != NULL ? found->bytes : 0;
}

const char *acl_dtype_name(aclDataType dtype)
{
    const DTypeFacts *found = facts_of(dtype);
    return found != NULL ? found->name : "unknown";
}

bool acl_format_is_private(aclFormat format)
{
    switch ((int)format) {
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z:
    case ACL_FORMAT_NC1HWC0_C04:
    case ACL_FORMAT_FRACTAL_NZ:
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D:
    case ACL_FORMAT_FRACTAL_NZ_C0_16:
    case ACL_FORMAT_FRACTAL_NZ_C0_32:
    case ACL_FORMAT_FRACTAL_NZ_C0_2:
    case ACL_FORMAT_FRACTAL_NZ_C0_4:
    case ACL_FORMAT_FRACTAL_NZ_C0_8:
        return true;
    default:
        return false;
    }
}

const char *dtype_set_text(DTypeSet set, char *buffer)
{
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (!dtype_in(facts[i].dtype, set)) {
            continue;
        }
        if (buffer[0] != '\0') {
            strcat(buffer, ", ");
        }
        strcat(buffer, facts[i].name);
    }
    return buffer;
}
