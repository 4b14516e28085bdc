#include "descriptors.h"

#include <stdlib.h>
#include <string.h>

const char *type_name(mcdnnDataType_t type)
{
    static const char *const names[] = {"FLOAT",    "DOUBLE",  "HALF",     "INT8",  "INT32",   "INT8x4",   "UINT8",
                                          "UINT8x4",
                                        "INT8x32",  "BFLOAT16", "INT64",   "BOOLEAN", "FP8_E4M3", "FP8_E5M2",
                                        "FAST_FLOAT_FOR_FP8"};
    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "an unknown type";
}

DType type_dtype(mcdnnDataType_t type)
{
    switch (type) {
    case MCDNN_DATA_FLOAT: return DTYPE_FLOAT32;
    case MCDNN_DATA_DOUBLE: return DTYPE_FLOAT64;
    case MCDNN_DATA_HALF: return DTYPE_FLOAT16;
    case MCDNN_DATA_BFLOAT16: return DTYPE_BFLOAT16;
    case MCDNN_DATA_INT8: return DTYPE_INT8;
    case MCDNN_DATA_UINT8: return DTYPE_UINT8;
    case MCDNN_DATA_INT32: return DTYPE_INT32;
    case MCDNN_DATA_INT64: return DTYPE_INT64;
    default: return DTYPE_NONE;
    }
}

int32_t type_lanes(mcdnnDataType_t type)
{
    return type == MCDNN_DATA_INT8x4 || type == MCDNN_DATA_UINT8x4 ? 4 : type == MCDNN_DATA_INT8x32 ? 32 : 1;
}

const char *sizes_text(const Tensor *tensor, ShapeText buffer)
{
    return us_shape_text(tensor->rank, tensor->sizes, buffer, sizeof(ShapeText));
}

const char *strides_text(const Tensor *tensor, ShapeText buffer)
{
    return us_shape_text(tensor->rank, tensor->strides, buffer, sizeof(ShapeText));
}

int64_t tensor_elements(const Tensor *tensor)
{
    return us_shape_elements(tensor->rank, tensor->sizes);
}

View tensor_view(const Tensor *tensor, const void *data, int32_t rank)
{
    View view = {.data = (void *)(uintptr_t)data, .dtype = type_dtype(tensor->type)};
    view.rank = tensor->rank > rank ? tensor->rank : rank;
    for (int32_t axis = 0; axis < view.rank; axis++) {
        view.shape[axis] = axis < tensor->rank ? tensor->sizes[axis] : 1;
        view.strides[axis] = axis < tensor->rank ? tensor->strides[axis] : 1;
    }
    return view;
}

View tensor_lanes(const Tensor *tensor, const void *data, int32_t lanes)
{
    const int64_t *sizes = tensor->sizes, *strides = tensor->strides;
    const int64_t unit = tensor->lanes > 1 ? lanes : 1, lane = tensor->lanes > 1 ? 1 : strides[1];
    const DType dtype = tensor->lanes == 1                      ? type_dtype(tensor->type)
                        : tensor->type == MCDNN_DATA_UINT8x4 ? DTYPE_UINT8
                                                             : DTYPE_INT8;
    return (View){.data = (void *)(uintptr_t)data, .dtype = dtype, .rank = 5,
                  .shape = {sizes[0], sizes[1] / lanes, lanes, sizes[2], sizes[3]},
                  .strides = {strides[0] * unit, strides[1] * lanes, lane, strides[2] * unit, strides[3] * unit}};
}

void *descriptor_create(Call *call, const char *parameter, const void *result, HandleKind kind, const void *initial,
                        size_t size)
{
    us_require(call, result != NULL, parameter, "null", MCDNN_STATUS_BAD_PARAM, "%s is NULL: a pointer is required",
               parameter);
    if (call->status != 0)
        return NULL;
    void *handle = us_handle_new(kind, initial, size);
    us_require(call, handle != NULL, parameter, "memory", MCDNN_STATUS_ALLOC_FAILED, "no host memory for a descriptor");
    return handle;
}

mcdnnStatus_t descriptor_make(const char *function, HandleKind kind, const char *parameter, void *place,
                              const void *initial, size_t size)
{
    Call call = us_call_begin(function);
    void *made = descriptor_create(&call, parameter, place, kind, initial, size);
    if (made != NULL)
        memcpy(place, &made, sizeof made);
    return us_call_end(&call);
}

void descriptor_destroy(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    if (handle == NULL)
        return;
    us_require(call, us_handle_release(handle, kind), parameter, "alive", MCDNN_STATUS_BAD_PARAM,
               "%s is %p, which is no live descriptor of this kind (destroyed before, or another thing)", parameter,
               handle);
}

mcdnnStatus_t descriptor_end(const char *function, HandleKind kind, const char *parameter, const void *handle)
{
    Call call = us_call_begin(function);
    descriptor_destroy(&call, parameter, handle, kind);
    return us_call_end(&call);
}

void *descriptor_of(Call *call, const char *parameter, const void *handle, HandleKind kind, const char *what)
{
    us_require(call, handle != NULL, parameter, "alive", MCDNN_STATUS_BAD_PARAM, "%s is NULL, not %s", parameter, what);
    if (call->status != 0)
        return NULL;
    void *object = us_handle_object(handle, kind);
    us_require(call, object != NULL, parameter, "alive", MCDNN_STATUS_BAD_PARAM,
               "%s is %p, which is not %s (destroyed before, or another thing)", parameter, handle, what);
    return object;
}
