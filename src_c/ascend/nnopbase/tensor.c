/* aclTensor: aclnn-base 4 and 5. */
#include "ascend/common/dtype.h"
#include "ascend/common/objects.h"
#include "ascend/common/status.h"
#include "ascend/nnopbase/nnopbase.h"
#include "report/report.h"

#include <stdlib.h>

static void set_shape(Shape *shape, const int64_t *sizes, uint64_t count)
{
    shape->rank = (int32_t)count;
    for (uint64_t i = 0; i < count; i++) {
        shape->sizes[i] = sizes[i];
    }
}

/* Arguments of the two functions that describe a tensor. The vendor checks NULL arrays only; a rank that its shape
 * class cannot hold is refused here instead of writing past it. */
static void require_shape_arguments(Call *call, const int64_t *viewDims, uint64_t viewDimsNum,
                                    const int64_t *storageDims, uint64_t storageDimsNum)
{
    us_require(call, viewDims != NULL || viewDimsNum == 0, "viewDims", "null", ACLNN_ERR_PARAM_NULLPTR,
               "viewDims is NULL although viewDimsNum is %llu", (unsigned long long)viewDimsNum);
    us_require(call, storageDims != NULL || storageDimsNum == 0, "storageDims", "null", ACLNN_ERR_PARAM_NULLPTR,
               "storageDims is NULL although storageDimsNum is %llu", (unsigned long long)storageDimsNum);
    us_require(call, viewDimsNum <= VIEW_RANK_LIMIT, "viewDimsNum", "rank", ACLNN_ERR_PARAM_INVALID,
               "viewDimsNum is %llu, a tensor has at most %d dimensions", (unsigned long long)viewDimsNum,
               VIEW_RANK_LIMIT);
    us_require(call, storageDimsNum <= VIEW_RANK_LIMIT, "storageDimsNum", "rank", ACLNN_ERR_PARAM_INVALID,
               "storageDimsNum is %llu, a tensor has at most %d dimensions", (unsigned long long)storageDimsNum,
               VIEW_RANK_LIMIT);
}

static void set_strides(Tensor *tensor, const int64_t *stride)
{
    if (stride == NULL) {
        us_strides_contiguous(tensor->view.rank, tensor->view.sizes, tensor->strides);
        return;
    }
    for (int32_t i = 0; i < tensor->view.rank; i++) {
        tensor->strides[i] = stride[i];
    }
}

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride,
                           int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                           void *tensorData)
{
    Call call = us_call_begin("aclCreateTensor");
    require_shape_arguments(&call, viewDims, viewDimsNum, storageDims, storageDimsNum);
    Tensor *tensor = call.status == 0 ? malloc(sizeof *tensor) : NULL;
    if (tensor != NULL) {
        tensor->dtype = dataType;
        tensor->format = format;
        tensor->offset = offset;
        tensor->address = tensorData;
        set_shape(&tensor->view, viewDims, viewDimsNum);
        set_shape(&tensor->storage, storageDims, storageDimsNum);
        set_strides(tensor, stride);
        if (acl_format_is_private(format)) {
            us_log(LOG_LEVEL_WARN, "aclCreateTensor: format %d is private; only operators whose pages name it read it",
                   (int)format);
        }
    }
    return created(&call, HANDLE_TENSOR, tensor);
}

aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
                          const int64_t *stride, int64_t offset, aclFormat format, const int64_t *storageDims,
                          uint64_t storageDimsNum, void *tensorDataAddr)
{
    Call call = us_call_begin("aclInitTensor");
    Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    us_require(&call, viewDims == NULL || viewDimsNum <= VIEW_RANK_LIMIT, "viewDimsNum", "rank",
               ACLNN_ERR_PARAM_INVALID, "viewDimsNum is %llu, a tensor has at most %d dimensions",
               (unsigned long long)viewDimsNum, VIEW_RANK_LIMIT);
    us_require(&call, storageDims == NULL || storageDimsNum <= VIEW_RANK_LIMIT, "storageDimsNum", "rank",
               ACLNN_ERR_PARAM_INVALID, "storageDimsNum is %llu, a tensor has at most %d dimensions",
               (unsigned long long)storageDimsNum, VIEW_RANK_LIMIT);
    if (call.status != 0) {
        return us_call_end(&call);
    }

    if (viewDims != NULL && viewDimsNum > 0) {
        set_shape(&object->view, viewDims, viewDimsNum);
    }
    if (storageDims != NULL && storageDimsNum > 0) {
        set_shape(&object->storage, storageDims, storageDimsNum);
    }
    if (tensorDataAddr != NULL) {
        object->address = tensorDataAddr;
    }
    object->dtype = dataType;
    object->format = format;
    object->offset = offset;
    set_strides(object, stride);
    return us_call_end(&call);
}

aclnnStatus aclDestroyTensor(const aclTensor *tensor)
{
    Call call = us_call_begin("aclDestroyTensor");
    end_object(&call, "tensor", tensor, HANDLE_TENSOR);
    return us_call_end(&call);
}

/* ---- getters ---- */

aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum)
{
    Call call = us_call_begin("aclGetViewShape");
    const Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    require_result(&call, "viewDims", viewDims);
    require_result(&call, "viewDimsNum", viewDimsNum);
    if (call.status == 0) {
        give_array(&call, object->view.rank, object->view.sizes, viewDims, viewDimsNum);
    }
    return us_call_end(&call);
}

aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims, uint64_t *storageDimsNum)
{
    Call call = us_call_begin("aclGetStorageShape");
    const Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    require_result(&call, "storageDims", storageDims);
    require_result(&call, "storageDimsNum", storageDimsNum);
    if (call.status == 0) {
        give_array(&call, object->storage.rank, object->storage.sizes, storageDims, storageDimsNum);
    }
    return us_call_end(&call);
}

aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue, uint64_t *stridesNum)
{
    Call call = us_call_begin("aclGetViewStrides");
    const Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    require_result(&call, "stridesValue", stridesValue);
    require_result(&call, "stridesNum", stridesNum);
    if (call.status == 0) {
        give_array(&call, object->view.rank, object->strides, stridesValue, stridesNum);
    }
    return us_call_end(&call);
}

aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset)
{
    Call call = us_call_begin("aclGetViewOffset");
    const Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    require_result(&call, "offset", offset);
    if (call.status == 0) {
        *offset = object->offset;
    }
    return us_call_end(&call);
}

aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format)
{
    Call call = us_call_begin("aclGetFormat");
    const Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    require_result(&call, "format", format);
    if (call.status == 0) {
        *format = object->format;
    }
    return us_call_end(&call);
}

aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType)
{
    Call call = us_call_begin("aclGetDataType");
    const Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    require_result(&call, "dataType", dataType);
    if (call.status == 0) {
        *dataType = object->dtype;
    }
    return us_call_end(&call);
}

aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr)
{
    Call call = us_call_begin("aclGetRawTensorAddr");
    const Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    require_result(&call, "addr", addr);
    if (call.status == 0) {
        *addr = object->address;
    }
    return us_call_end(&call);
}

aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr)
{
    Call call = us_call_begin("aclSetRawTensorAddr");
    Tensor *object = require_object(&call, "tensor", tensor, HANDLE_TENSOR);
    us_require(&call, addr != NULL, "addr", "null", ACLNN_ERR_PARAM_NULLPTR, "addr is NULL");
    if (call.status == 0) {
        object->address = addr;
    }
    return us_call_end(&call);
}
