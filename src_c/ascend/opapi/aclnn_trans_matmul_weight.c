#include "aclnnop/aclnn_trans_matmul_weight.h"

#include "ascend/common/dtype.h"
#include "ascend/common/objects.h"
#include "ascend/common/status.h"
#include "ascend/opapi/blocked_formats.h"
#include "device/handles.h"
#include "report/report.h"

static const Array *require_shape(Call *call, const aclIntArray *shape)
{
    us_require(call, shape != NULL, "tensorShape", "null", ACLNN_ERR_PARAM_NULLPTR, "tensorShape is NULL");
    const Array *array = call->status == 0 ? us_handle_object(shape, HANDLE_INT_ARRAY) : NULL;
    us_require(call, array != NULL, "tensorShape", "handle", ACLNN_ERR_PARAM_INVALID,
               "tensorShape (%p) is no live aclIntArray: destroyed, or never created by this library",
               (const void *)shape);
    us_require(call, array->size >= 2 && array->size <= 6, "tensorShape", "rank", ACLNN_ERR_PARAM_INVALID,
               "tensorShape has %llu sizes, not 2 to 6", (unsigned long long)array->size);
    return array;
}

static bool multiply(int64_t *count, int64_t size, int64_t unit)
{
    int64_t whole;
    return size >= 0 && !__builtin_add_overflow(size, unit - 1, &whole) &&
           !__builtin_mul_overflow(*count, whole / unit * unit, count);
}

static aclnnStatus weight_size(Call *call, const aclIntArray *shape, aclDataType dtype, uint64_t *result)
{
    const Array *array = require_shape(call, shape);
    us_require(call, result != NULL, "weightTensorSize", "null", ACLNN_ERR_PARAM_NULLPTR, "weightTensorSize is NULL");
    us_require(call, dtype == ACL_FLOAT16 || dtype == ACL_BF16 || dtype == ACL_INT8 || dtype == ACL_FLOAT, "dataType",
               "dtype", ACLNN_ERR_PARAM_INVALID, "dataType is %s (%d)", acl_dtype_name(dtype), (int)dtype);
    int64_t count = 1;
    for (uint64_t i = 0; call->status == 0 && i < array->size; i++) {
        const int64_t size = ((const int64_t *)array->elements)[i];
        const uint64_t behind = array->size - 1 - i;
        const int64_t unit = behind == 0 ? op_block_columns(dtype) : behind == 1 ? BLOCK_ROWS : 1;
        us_require(call, multiply(&count, size, unit), "tensorShape", "size", ACLNN_ERR_PARAM_INVALID,
                   "size %llu of tensorShape is %lld", (unsigned long long)i, (long long)size);
    }
    if (call->status == 0) {
        *result = (uint64_t)count;
    }
    return us_call_end(call);
}

aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray *tensorShape, uint64_t *weightTensorSize)
{
    Call call = us_call_begin("aclnnCalculateMatmulWeightSize");
    return weight_size(&call, tensorShape, ACL_FLOAT16, weightTensorSize);
}

aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray *tensorShape, aclDataType dataType,
                                             uint64_t *weightTensorSize)
{
    Call call = us_call_begin("aclnnCalculateMatmulWeightSizeV2");
    return weight_size(&call, tensorShape, dataType, weightTensorSize);
}
