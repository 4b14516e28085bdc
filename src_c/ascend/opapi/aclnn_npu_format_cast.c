#include "aclnnop/aclnn_npu_format_cast.h"

#include "ascend/common/given_array.h"
#include "ascend/common/objects.h"
#include "ascend/common/status.h"
#include "ascend/opapi/blocked_formats.h"
#include "device/handles.h"

static const Tensor *require_source(Call *call, const aclTensor *source)
{
    us_require(call, source != NULL, "srcTensor", "null", ACLNN_ERR_PARAM_NULLPTR, "srcTensor is NULL");
    const Tensor *tensor = call->status == 0 ? us_handle_object(source, HANDLE_TENSOR) : NULL;
    us_require(call, tensor != NULL, "srcTensor", "handle", ACLNN_ERR_PARAM_INVALID,
               "srcTensor (%p) is no live aclTensor: destroyed, or never created by this library", (const void *)source);
    if (call->status != 0) {
        return NULL;
    }
    us_require(call, op_is_cast_format(tensor->format), "srcTensor", "format", ACLNN_ERR_PARAM_INVALID,
               "srcTensor has format %d", (int)tensor->format);
    us_require(call, op_is_blocked_type(tensor->dtype), "srcTensor", "dtype", ACLNN_ERR_PARAM_INVALID,
               "srcTensor is %s", acl_dtype_name(tensor->dtype));
    return tensor;
}

static void require_shape(Call *call, const Shape *shape, int plain)
{
    us_require(call, shape->rank >= 2 && shape->rank <= 6, "srcTensor", "rank", ACLNN_ERR_PARAM_INVALID,
               "srcTensor has %d dimensions, not 2 to 6", (int)shape->rank);
    us_require(call, op_rank_has_format(shape->rank, plain), "srcTensor", "axes", ACLNN_ERR_PARAM_INVALID,
               "srcTensor has %d dimensions, which are not the axes of format %d", (int)shape->rank, plain);
    const int64_t elements = call->status == 0 ? us_shape_elements(shape->rank, shape->sizes) : 1;
    us_require(call, elements != 0, "srcTensor", "empty", ACLNN_ERR_PARAM_INVALID, "srcTensor has no elements");
    us_require(call, elements > 0, "srcTensor", "sizes", ACLNN_ERR_PARAM_INVALID,
               "the sizes of srcTensor make no shape");
}

aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor *srcTensor, const int dstFormat, int additionalDtype,
                                                     int64_t **dstShape, uint64_t *dstShapeSize, int *actualFormat)
{
    Call call = us_call_begin("aclnnNpuFormatCastCalculateSizeAndFormat");
    const Tensor *source = require_source(&call, srcTensor);
    us_require(&call, dstShape != NULL, "dstShape", "null", ACLNN_ERR_PARAM_NULLPTR, "dstShape is NULL");
    us_require(&call, dstShapeSize != NULL, "dstShapeSize", "null", ACLNN_ERR_PARAM_NULLPTR, "dstShapeSize is NULL");
    us_require(&call, actualFormat != NULL, "actualFormat", "null", ACLNN_ERR_PARAM_NULLPTR, "actualFormat is NULL");
    us_require(&call, op_is_cast_format(dstFormat), "dstFormat", "value", ACLNN_ERR_PARAM_INVALID, "dstFormat is %d",
               dstFormat);
    us_require(&call, additionalDtype == -1 || op_is_blocked_type((aclDataType)additionalDtype), "additionalDtype",
               "dtype", ACLNN_ERR_PARAM_INVALID, "additionalDtype is %s (%d)",
               acl_dtype_name((aclDataType)additionalDtype), additionalDtype);
    if (call.status != 0) {
        return us_call_end(&call);
    }
    const bool into = acl_format_is_private((aclFormat)dstFormat);
    require_shape(&call, &source->view, into ? (int)source->format : dstFormat);
    us_require(&call, op_formats_cast(source->format, dstFormat), "dstFormat", "cast", ACLNN_ERR_RUNTIME_ERROR,
               "there is no cast from format %d to format %d", (int)source->format, dstFormat);
    BlockedFormat blocked = {.storage = source->view};
    const aclDataType counted = additionalDtype == -1 ? source->dtype : (aclDataType)additionalDtype;
    us_require(&call, call.status != 0 || !into || op_blocked_format(source->format, dstFormat, &source->view,
                                                                     op_block_columns(counted), &blocked),
               "srcTensor", "sizes", ACLNN_ERR_PARAM_INVALID, "its blocks have more than 2^63 - 1 elements");
    if (call.status == 0) {
        give_array(&call, blocked.storage.rank, blocked.storage.sizes, dstShape, dstShapeSize);
    }
    if (call.status == 0) {
        *actualFormat = dstFormat;
    }
    return us_call_end(&call);
}
