/* Tensor descriptors (mcdnn 7.2). */
#include "check.h"

#include <limits.h>
#include <string.h>

/* Most elements of a tensor, and the largest reach: 2 Gi. */
static const int64_t ELEMENT_LIMIT = INT64_C(1) << 31;

static Tensor *tensor_of(Call *call, mcdnnTensorDescriptor_t descriptor)
{
    return descriptor_of(call, "tensorDesc", descriptor, HANDLE_TENSOR, "a tensor descriptor");
}

int64_t tensor_steps(const Tensor *tensor, int32_t axis)
{
    return axis == 1 ? tensor->sizes[axis] / tensor->lanes : tensor->sizes[axis];
}

/* Elements (vectors) from the first to the last one; more than ELEMENT_LIMIT when there are too many. Strides fit in 32
 * bits wherever sizes do, so one term stays below 2^63. */
static int64_t reach_of(const Tensor *tensor)
{
    int64_t reach = 1;
    for (int32_t axis = 0; axis < tensor->rank && reach <= ELEMENT_LIMIT; axis++) {
        int64_t stride = tensor->strides[axis];
        reach += (tensor_steps(tensor, axis) - 1) * (stride < 0 ? -stride : stride);
    }
    return reach;
}

/* Elements (vectors), where strides of 0 may let many lie at one place; more than ELEMENT_LIMIT when there are too many. */
static int64_t count_of(const Tensor *tensor)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < tensor->rank && count <= ELEMENT_LIMIT; axis++)
        count *= tensor_steps(tensor, axis);
    return count;
}

/* BOOLEAN and the FP8 types are refused, INT64 is stored (mcdnn 7.2). */
static void check_type(Call *call, mcdnnDataType_t type)
{
    us_require(call, (unsigned)type <= MCDNN_DATA_INT64, "dataType", "range", MCDNN_STATUS_BAD_PARAM,
               "dataType is %d (%s), which tensors cannot have", (int)type, type_name(type));
}

static void check_format(Call *call, mcdnnTensorFormat_t format, mcdnnDataType_t type)
{
    check_range(call, "format", format, MCDNN_TENSOR_NCHW, MCDNN_TENSOR_NCHW_VECT_C);
    const bool vectors = type_lanes(type) > 1;
    us_require(call, vectors ? format != MCDNN_TENSOR_NHWC : format != MCDNN_TENSOR_NCHW_VECT_C, "format",
               "vector-type", MCDNN_STATUS_BAD_PARAM,
               "dataType %s cannot have the format %s", type_name(type), vectors ? "NHWC" : "NCHW_VECT_C");
}

static void check_size(Call *call, const char *parameter, int64_t value)
{
    us_require(call, value > 0, parameter, "positive", MCDNN_STATUS_BAD_PARAM, "%s is %lld, it must be positive",
               parameter, (long long)value);
}

/* Sizes of an array parameter. The rank has been checked. */
static void set_sizes(Call *call, Tensor *tensor, int rank, const int *sizes)
{
    for (int axis = 0; axis < rank && call->status == 0; axis++) {
        us_require(call, sizes[axis] > 0, "dimA", "positive", MCDNN_STATUS_BAD_PARAM,
                   "dimA[%d] is %d, it must be positive", axis, sizes[axis]);
        tensor->sizes[axis] = sizes[axis];
    }
    tensor->rank = rank;
}

static void check_rank(Call *call, int rank)
{
    us_require(call, rank >= 1, "nbDims", "positive", MCDNN_STATUS_BAD_PARAM, "nbDims is %d, it must be positive",
               rank);
    us_require(call, rank <= MCDNN_DIM_MAX, "nbDims", "limit", MCDNN_STATUS_NOT_SUPPORTED,
               "nbDims is %d, at most %d are supported", rank, MCDNN_DIM_MAX);
}

/* Sets the type; channels of vector types must be whole vectors, except in NCHW, where each channel has its own. */
static void set_type(Call *call, Tensor *tensor, mcdnnDataType_t type, bool is_nchw, const char *size_parameter)
{
    tensor->type = type;
    tensor->lanes = is_nchw ? 1 : type_lanes(type);
    int64_t channels = tensor->rank > 1 ? tensor->sizes[1] : 0;
    us_require(call, tensor->lanes == 1 || (channels > 0 && channels % tensor->lanes == 0), size_parameter, "vectors",
               MCDNN_STATUS_BAD_PARAM, "%lld channels are not a multiple of the %d lanes of %s", (long long)channels,
               tensor->lanes, type_name(type));
}

/* Packed strides; NHWC has the channels innermost at any rank from 3 on. Saturates above ELEMENT_LIMIT. */
void tensor_pack(Tensor *tensor, mcdnnTensorFormat_t format)
{
    bool channels_last = format == MCDNN_TENSOR_NHWC && tensor->rank >= 3;
    int64_t stride = 1;
    if (channels_last) {
        tensor->strides[1] = 1;
        stride = tensor_steps(tensor, 1);
    }
    for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
        if (channels_last && axis == 1)
            continue;
        tensor->strides[axis] = stride;
        stride *= tensor_steps(tensor, axis);
        if (stride > ELEMENT_LIMIT)
            stride = ELEMENT_LIMIT + 1;
    }
}

/* The last check and the only write: refused calls leave the descriptor as it was. */
static mcdnnStatus_t store(Call *call, Tensor *descriptor, const Tensor *tensor)
{
    ShapeText sizes, strides;
    us_require(call, reach_of(tensor) <= ELEMENT_LIMIT && count_of(tensor) <= ELEMENT_LIMIT, "tensorDesc", "elements",
               MCDNN_STATUS_NOT_SUPPORTED, "a tensor of %s with strides %s has or reaches over more than 2^31 elements",
               sizes_text(tensor, sizes), strides_text(tensor, strides));
    if (call->status == 0)
        *descriptor = *tensor;
    return us_call_end(call);
}

mcdnnStatus_t mcdnnCreateTensorDescriptor(mcdnnTensorDescriptor_t *tensorDesc)
{
    return descriptor_make("mcdnnCreateTensorDescriptor", HANDLE_TENSOR, "tensorDesc", tensorDesc,
                           &(const Tensor){.lanes = 1}, sizeof(Tensor));
}

mcdnnStatus_t mcdnnDestroyTensorDescriptor(mcdnnTensorDescriptor_t tensorDesc)
{
    return descriptor_end("mcdnnDestroyTensorDescriptor", HANDLE_TENSOR, "tensorDesc", tensorDesc);
}

mcdnnStatus_t mcdnnSetTensor4dDescriptor(
    mcdnnTensorDescriptor_t tensorDesc, mcdnnTensorFormat_t format, mcdnnDataType_t dataType,
    int n, int c, int h, int w)
{
    Call call = us_call_begin("mcdnnSetTensor4dDescriptor");
    Tensor *descriptor = tensor_of(&call, tensorDesc);
    check_type(&call, dataType);
    check_format(&call, format, dataType);
    check_size(&call, "n", n);
    check_size(&call, "c", c);
    check_size(&call, "h", h);
    check_size(&call, "w", w);
    Tensor tensor = {.rank = 4, .sizes = {n, c, h, w}};
    set_type(&call, &tensor, dataType, format == MCDNN_TENSOR_NCHW, "c");
    if (call.status == 0)
        tensor_pack(&tensor, format);
    return store(&call, descriptor, &tensor);
}

mcdnnStatus_t mcdnnSetTensor4dDescriptorEx(
    mcdnnTensorDescriptor_t tensorDesc, mcdnnDataType_t dataType, int n, int c, int h, int w,
    int nStride, int cStride, int hStride, int wStride)
{
    Call call = us_call_begin("mcdnnSetTensor4dDescriptorEx");
    Tensor *descriptor = tensor_of(&call, tensorDesc);
    check_type(&call, dataType);
    check_size(&call, "n", n);
    check_size(&call, "c", c);
    check_size(&call, "h", h);
    check_size(&call, "w", w);
    check_size(&call, "nStride", nStride);
    check_size(&call, "cStride", cStride);
    check_size(&call, "hStride", hStride);
    check_size(&call, "wStride", wStride);
    Tensor tensor = {.rank = 4, .sizes = {n, c, h, w}, .strides = {nStride, cStride, hStride, wStride}};
    set_type(&call, &tensor, dataType, false, "c");
    return store(&call, descriptor, &tensor);
}

/* NULL strides mean packed: clients of the vendor rely on it (mcdnn 7.2). Strides of any sign are stored. */
mcdnnStatus_t mcdnnSetTensorNdDescriptor(
    mcdnnTensorDescriptor_t tensorDesc, mcdnnDataType_t dataType, int nbDims, const int dimA[],
    const int strideA[])
{
    Call call = us_call_begin("mcdnnSetTensorNdDescriptor");
    Tensor *descriptor = tensor_of(&call, tensorDesc);
    check_given(&call, "dimA", dimA);
    check_type(&call, dataType);
    check_rank(&call, nbDims);
    Tensor tensor = {0};
    set_sizes(&call, &tensor, nbDims, dimA);
    set_type(&call, &tensor, dataType, false, "dimA");
    if (call.status != 0)
        return us_call_end(&call);
    if (strideA == NULL)
        tensor_pack(&tensor, MCDNN_TENSOR_NCHW);
    for (int axis = 0; strideA != NULL && axis < nbDims; axis++)
        tensor.strides[axis] = strideA[axis];
    return store(&call, descriptor, &tensor);
}

mcdnnStatus_t mcdnnSetTensorNdDescriptorEx(
    mcdnnTensorDescriptor_t tensorDesc, mcdnnTensorFormat_t format, mcdnnDataType_t dataType,
    int nbDims, const int dimA[])
{
    Call call = us_call_begin("mcdnnSetTensorNdDescriptorEx");
    Tensor *descriptor = tensor_of(&call, tensorDesc);
    check_given(&call, "dimA", dimA);
    check_type(&call, dataType);
    check_format(&call, format, dataType);
    check_rank(&call, nbDims);
    Tensor tensor = {0};
    set_sizes(&call, &tensor, nbDims, dimA);
    set_type(&call, &tensor, dataType, format == MCDNN_TENSOR_NCHW, "dimA");
    if (call.status != 0)
        return us_call_end(&call);
    tensor_pack(&tensor, format);
    return store(&call, descriptor, &tensor);
}

/* The outermost stride of a dimension of size 1 may be 2^31. */
static int as_int(int64_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

static void give(int *result, int64_t value)
{
    if (result != NULL)
        *result = as_int(value);
}

mcdnnStatus_t mcdnnGetTensor4dDescriptor(
    const mcdnnTensorDescriptor_t tensorDesc, mcdnnDataType_t *dataType, int *n, int *c, int *h,
    int *w, int *nStride, int *cStride, int *hStride, int *wStride)
{
    Call call = us_call_begin("mcdnnGetTensor4dDescriptor");
    const Tensor *tensor = tensor_of(&call, tensorDesc);
    if (call.status != 0)
        return us_call_end(&call);
    View four = tensor_view(tensor, NULL, 4);
    GIVE(dataType, tensor->type);
    int *sizes[] = {n, c, h, w}, *strides[] = {nStride, cStride, hStride, wStride};
    for (int axis = 0; axis < 4; axis++) {
        give(sizes[axis], four.shape[axis]);
        give(strides[axis], four.strides[axis]);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetTensorNdDescriptor(
    const mcdnnTensorDescriptor_t tensorDesc, int nbDimsRequested, mcdnnDataType_t *dataType,
    int *nbDims, int dimA[], int strideA[])
{
    Call call = us_call_begin("mcdnnGetTensorNdDescriptor");
    const Tensor *tensor = tensor_of(&call, tensorDesc);
    if (call.status != 0)
        return us_call_end(&call);
    GIVE(dataType, tensor->type);
    give(nbDims, tensor->rank);
    for (int axis = 0; axis < nbDimsRequested && axis < tensor->rank; axis++) {
        give(dimA != NULL ? &dimA[axis] : NULL, tensor->sizes[axis]);
        give(strideA != NULL ? &strideA[axis] : NULL, tensor->strides[axis]);
    }
    return us_call_end(&call);
}

size_t tensor_bytes(const Tensor *tensor)
{
    const int32_t lanes = type_lanes(tensor->type);
    const size_t element = lanes > 1 ? (size_t)lanes : us_dtype_size(type_dtype(tensor->type));
    return (size_t)reach_of(tensor) * element;
}

mcdnnStatus_t mcdnnGetTensorSizeInBytes(const mcdnnTensorDescriptor_t tensorDesc, size_t *size)
{
    Call call = us_call_begin("mcdnnGetTensorSizeInBytes");
    const Tensor *tensor = tensor_of(&call, tensorDesc);
    check_given(&call, "size", size);
    if (call.status != 0)
        return us_call_end(&call);
    *size = tensor->rank > 0 ? tensor_bytes(tensor) : 0;
    return us_call_end(&call);
}
