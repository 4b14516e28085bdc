/* aclScalar, aclIntArray, aclFloatArray, aclBoolArray, aclTensorList, aclScalarList: aclnn-base 4 and 5. */
#include "ascend/common/dtype.h"
#include "ascend/common/objects.h"
#include "ascend/common/status.h"
#include "ascend/nnopbase/nnopbase.h"
#include "report/grace.h"

#include <stdlib.h>
#include <string.h>

/* ---- scalars ---- */

static const DTypeSet scalar_dtypes =
    DTYPE_BIT(ACL_FLOAT) | DTYPE_BIT(ACL_FLOAT16) | DTYPE_BIT(ACL_BF16) | DTYPE_BIT(ACL_DOUBLE) | DTYPE_BIT(ACL_INT8) |
    DTYPE_BIT(ACL_INT16) | DTYPE_BIT(ACL_INT32) | DTYPE_BIT(ACL_INT64) | DTYPE_BIT(ACL_UINT8) | DTYPE_BIT(ACL_UINT16) |
    DTYPE_BIT(ACL_UINT32) | DTYPE_BIT(ACL_UINT64) | DTYPE_BIT(ACL_BOOL) | DTYPE_BIT(ACL_COMPLEX64) |
    DTYPE_BIT(ACL_COMPLEX128);

aclScalar *aclCreateScalar(void *value, aclDataType dataType)
{
    Call call = us_call_begin("aclCreateScalar");
    us_require(&call, value != NULL, "value", "null", ACLNN_ERR_PARAM_NULLPTR, "value is NULL");
    us_require(&call, dtype_in(dataType, scalar_dtypes), "dataType", "dtype", ACLNN_ERR_PARAM_INVALID,
               "a scalar cannot have type %s (%d)", acl_dtype_name(dataType), (int)dataType);
    Scalar *scalar = call.status == 0 ? calloc(1, sizeof *scalar) : NULL;
    if (scalar != NULL) {
        scalar->dtype = dataType;
        memcpy(scalar->value, value, acl_dtype_bytes(dataType));
    }
    return created(&call, HANDLE_SCALAR, scalar);
}

aclnnStatus aclDestroyScalar(const aclScalar *scalar)
{
    Call call = us_call_begin("aclDestroyScalar");
    end_object(&call, "scalar", scalar, HANDLE_SCALAR);
    return us_call_end(&call);
}

/* ---- arrays of numbers ---- */

/* NULL when memory, or the address space, does not hold the elements. */
static Array *copy_array(const void *values, uint64_t size, size_t element_size)
{
    uint64_t count = values != NULL ? size : 0;
    size_t bytes;
    if (__builtin_mul_overflow(count, element_size, &bytes) || __builtin_add_overflow(bytes, sizeof(Array), &bytes)) {
        return NULL;
    }
    Array *array = malloc(bytes);
    if (array != NULL) {
        array->size = count;
        if (count > 0) {
            memcpy(array->elements, values, count * element_size);
        }
    }
    return array;
}

aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size)
{
    Call call = us_call_begin("aclCreateIntArray");
    return created(&call, HANDLE_INT_ARRAY, copy_array(value, size, sizeof *value));
}

aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size)
{
    Call call = us_call_begin("aclCreateFloatArray");
    return created(&call, HANDLE_FLOAT_ARRAY, copy_array(value, size, sizeof *value));
}

aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size)
{
    Call call = us_call_begin("aclCreateBoolArray");
    return created(&call, HANDLE_BOOL_ARRAY, copy_array(value, size, sizeof *value));
}

aclnnStatus aclDestroyIntArray(const aclIntArray *array)
{
    Call call = us_call_begin("aclDestroyIntArray");
    end_object(&call, "array", array, HANDLE_INT_ARRAY);
    return us_call_end(&call);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray *array)
{
    Call call = us_call_begin("aclDestroyFloatArray");
    end_object(&call, "array", array, HANDLE_FLOAT_ARRAY);
    return us_call_end(&call);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray *array)
{
    Call call = us_call_begin("aclDestroyBoolArray");
    end_object(&call, "array", array, HANDLE_BOOL_ARRAY);
    return us_call_end(&call);
}

static void give_size(Call *call, const char *parameter, const void *handle, HandleKind kind, uint64_t *size)
{
    const Array *array = require_object(call, parameter, handle, kind);
    require_result(call, "size", size);
    if (call->status == 0) {
        *size = array->size;
    }
}

aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size)
{
    Call call = us_call_begin("aclGetIntArraySize");
    give_size(&call, "array", array, HANDLE_INT_ARRAY, size);
    return us_call_end(&call);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size)
{
    Call call = us_call_begin("aclGetFloatArraySize");
    give_size(&call, "array", array, HANDLE_FLOAT_ARRAY, size);
    return us_call_end(&call);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size)
{
    Call call = us_call_begin("aclGetBoolArraySize");
    give_size(&call, "array", array, HANDLE_BOOL_ARRAY, size);
    return us_call_end(&call);
}

/* ---- lists of handles ---- */

aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size)
{
    Call call = us_call_begin("aclCreateTensorList");
    return created(&call, HANDLE_TENSOR_LIST, copy_array(value, size, sizeof *value));
}

aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size)
{
    Call call = us_call_begin("aclCreateScalarList");
    return created(&call, HANDLE_SCALAR_LIST, copy_array(value, size, sizeof *value));
}

/* The elements belong to the list. One that was destroyed before would be a double free at the vendor's: the call is
 * refused before anything is destroyed. An element that stands twice in the list is destroyed once. */
static void end_list(Call *call, const void *handle, HandleKind list_kind, HandleKind element_kind)
{
    if (handle == NULL) {
        return;
    }
    Array *list = require_object(call, "array", handle, list_kind);
    if (call->status != 0) {
        return;
    }
    void *const *elements = (void *const *)list->elements;
    for (uint64_t i = 0; i < list->size; i++) {
        us_require(call, elements[i] == NULL || us_handle_object(elements[i], element_kind) != NULL, "array", "element",
                   ACLNN_ERR_PARAM_INVALID,
                   "element %llu of the list was destroyed before, although it belongs to the list",
                   (unsigned long long)i);
    }
    us_require(call, us_handle_end(handle, list_kind) != NULL, "array", "handle", ACLNN_ERR_PARAM_INVALID,
               "array (%p) has just been destroyed by another thread", handle);
    if (call->status != 0) {
        return;
    }
    for (uint64_t i = 0; i < list->size; i++) {
        us_handle_release(elements[i], element_kind);
    }
    us_grace_bury(free, list);
}

aclnnStatus aclDestroyTensorList(const aclTensorList *array)
{
    Call call = us_call_begin("aclDestroyTensorList");
    end_list(&call, array, HANDLE_TENSOR_LIST, HANDLE_TENSOR);
    return us_call_end(&call);
}

aclnnStatus aclDestroyScalarList(const aclScalarList *array)
{
    Call call = us_call_begin("aclDestroyScalarList");
    end_list(&call, array, HANDLE_SCALAR_LIST, HANDLE_SCALAR);
    return us_call_end(&call);
}

aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, uint64_t *size)
{
    Call call = us_call_begin("aclGetTensorListSize");
    give_size(&call, "tensorList", tensorList, HANDLE_TENSOR_LIST, size);
    return us_call_end(&call);
}

aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, uint64_t *size)
{
    Call call = us_call_begin("aclGetScalarListSize");
    give_size(&call, "scalarList", scalarList, HANDLE_SCALAR_LIST, size);
    return us_call_end(&call);
}
