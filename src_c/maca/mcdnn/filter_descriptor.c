/* Filter descriptors: k output channels, c input channels, space; always packed (mcdnn 7.2). */
#include "filter.h"

#include "check.h"

/* Vectors of channels need a type that has them; in other formats it is stored, too. */
static void check_format(Call *call, mcdnnTensorFormat_t format, mcdnnDataType_t type)
{
    check_range(call, "format", format, MCDNN_TENSOR_NCHW, MCDNN_TENSOR_NCHW_VECT_C);
    us_require(call, format != MCDNN_TENSOR_NCHW_VECT_C || type_lanes(type) > 1, "format", "vector-type",
               MCDNN_STATUS_BAD_PARAM, "dataType %s cannot have the format NCHW_VECT_C", type_name(type));
}

static FilterDescriptor *descriptor(Call *call, mcdnnFilterDescriptor_t filterDesc)
{
    return descriptor_of(call, "filterDesc", filterDesc, HANDLE_FILTER, "a filter descriptor");
}

Tensor check_filter(Call *call, const char *parameter, mcdnnFilterDescriptor_t filterDesc)
{
    Tensor tensor = {.lanes = 1};
    const FilterDescriptor *filter = descriptor_of(call, parameter, filterDesc, HANDLE_FILTER, "a filter descriptor");
    us_require(call, filter->rank > 0, parameter, "set", MCDNN_STATUS_BAD_PARAM, "%s was given no shape", parameter);
    if (call->status != 0)
        return tensor;
    tensor.type = filter->type;
    tensor.rank = filter->rank;
    for (int axis = 0; axis < filter->rank; axis++)
        tensor.sizes[axis] = filter->sizes[axis];
    tensor.lanes = filter->format == MCDNN_TENSOR_NCHW_VECT_C ? type_lanes(filter->type) : 1;
    tensor_pack(&tensor, filter->format);
    return tensor;
}

mcdnnStatus_t mcdnnCreateFilterDescriptor(mcdnnFilterDescriptor_t *filterDesc)
{
    return descriptor_make("mcdnnCreateFilterDescriptor", HANDLE_FILTER, "filterDesc", filterDesc,
                           &(const FilterDescriptor){0}, sizeof(FilterDescriptor));
}

mcdnnStatus_t mcdnnDestroyFilterDescriptor(mcdnnFilterDescriptor_t filterDesc)
{
    return descriptor_end("mcdnnDestroyFilterDescriptor", HANDLE_FILTER, "filterDesc", filterDesc);
}

/* Checks one size and counts the elements so far. */
static void add_size(Call *call, FilterDescriptor *filter, const char *parameter, int size, int64_t *elements)
{
    us_require(call, size > 0, parameter, "positive", MCDNN_STATUS_BAD_PARAM, "%s holds %d, it must be positive",
               parameter, size);
    if (call->status != 0)
        return;
    filter->sizes[filter->rank++] = size;
    *elements *= size;
    us_require(call, *elements <= INT64_C(1) << 31, "filterDesc", "elements", MCDNN_STATUS_NOT_SUPPORTED,
               "a filter of more than 2^31 elements");
}

static mcdnnStatus_t store(Call *call, FilterDescriptor *descriptor, FilterDescriptor *filter, int64_t elements)
{
    const int32_t lanes = filter->format == MCDNN_TENSOR_NCHW_VECT_C ? type_lanes(filter->type) : 1;
    us_require(call, lanes == 1 || (filter->rank > 1 && filter->sizes[1] % lanes == 0), "filterDesc", "vectors",
               MCDNN_STATUS_BAD_PARAM, "%d input channels are not a multiple of the %d lanes of %s",
               filter->rank > 1 ? filter->sizes[1] : 0, (int)lanes, type_name(filter->type));
    if (call->status == 0) {
        size_t element = us_dtype_size(type_dtype(filter->type));
        filter->bytes = (size_t)elements * (element > 0 ? element : 1); /* vector types: one byte per channel */
        *descriptor = *filter;
    }
    return us_call_end(call);
}

mcdnnStatus_t mcdnnSetFilter4dDescriptor(
    mcdnnFilterDescriptor_t filterDesc, mcdnnDataType_t dataType, mcdnnTensorFormat_t format,
    int k, int c, int h, int w)
{
    Call call = us_call_begin("mcdnnSetFilter4dDescriptor");
    FilterDescriptor *target = descriptor(&call, filterDesc);
    check_range(&call, "dataType", dataType, MCDNN_DATA_FLOAT, MCDNN_DATA_INT64);
    check_format(&call, format, dataType);
    FilterDescriptor filter = {.type = dataType, .format = format};
    int64_t elements = 1;
    add_size(&call, &filter, "k", k, &elements);
    add_size(&call, &filter, "c", c, &elements);
    add_size(&call, &filter, "h", h, &elements);
    add_size(&call, &filter, "w", w, &elements);
    return store(&call, target, &filter, elements);
}

mcdnnStatus_t mcdnnSetFilterNdDescriptor(
    mcdnnFilterDescriptor_t filterDesc, mcdnnDataType_t dataType, mcdnnTensorFormat_t format,
    int nbDims, const int filterDimA[])
{
    Call call = us_call_begin("mcdnnSetFilterNdDescriptor");
    FilterDescriptor *target = descriptor(&call, filterDesc);
    check_given(&call, "filterDimA", filterDimA);
    check_range(&call, "dataType", dataType, MCDNN_DATA_FLOAT, MCDNN_DATA_INT64);
    check_format(&call, format, dataType);
    us_require(&call, nbDims >= 1, "nbDims", "positive", MCDNN_STATUS_BAD_PARAM, "nbDims is %d, it must be positive",
               nbDims);
    us_require(&call, nbDims <= MCDNN_DIM_MAX, "nbDims", "limit", MCDNN_STATUS_NOT_SUPPORTED,
               "nbDims is %d, at most %d are supported", nbDims, MCDNN_DIM_MAX);
    FilterDescriptor filter = {.type = dataType, .format = format};
    int64_t elements = 1;
    for (int axis = 0; call.status == 0 && axis < nbDims; axis++)
        add_size(&call, &filter, "filterDimA", filterDimA[axis], &elements);
    return store(&call, target, &filter, elements);
}

static void give_type(const FilterDescriptor *filter, mcdnnDataType_t *type, mcdnnTensorFormat_t *format)
{
    GIVE(type, filter->type);
    GIVE(format, filter->format);
}

/* The first four sizes; missing ones are 1. */
mcdnnStatus_t mcdnnGetFilter4dDescriptor(
    const mcdnnFilterDescriptor_t filterDesc, mcdnnDataType_t *dataType,
    mcdnnTensorFormat_t *format, int *k, int *c, int *h, int *w)
{
    Call call = us_call_begin("mcdnnGetFilter4dDescriptor");
    const FilterDescriptor *filter = descriptor(&call, filterDesc);
    if (call.status == 0) {
        int *results[] = {k, c, h, w};
        give_type(filter, dataType, format);
        for (int axis = 0; axis < 4; axis++)
            if (results[axis] != NULL)
                *results[axis] = axis < filter->rank ? filter->sizes[axis] : 1;
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetFilterNdDescriptor(
    const mcdnnFilterDescriptor_t filterDesc, int nbDimsRequested, mcdnnDataType_t *dataType,
    mcdnnTensorFormat_t *format, int *nbDims, int filterDimA[])
{
    Call call = us_call_begin("mcdnnGetFilterNdDescriptor");
    const FilterDescriptor *filter = descriptor(&call, filterDesc);
    if (call.status == 0) {
        give_type(filter, dataType, format);
        GIVE(nbDims, filter->rank);
        for (int axis = 0; filterDimA != NULL && axis < nbDimsRequested && axis < filter->rank; axis++)
            filterDimA[axis] = filter->sizes[axis];
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetFilterSizeInBytes(const mcdnnFilterDescriptor_t filterDesc, size_t *size)
{
    Call call = us_call_begin("mcdnnGetFilterSizeInBytes");
    const FilterDescriptor *filter = descriptor(&call, filterDesc);
    check_given(&call, "size", size);
    if (call.status == 0)
        *size = filter->bytes;
    return us_call_end(&call);
}
