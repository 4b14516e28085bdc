/* Convolution descriptors and output sizes (mcdnn-cnn 5, 8.1). */
#include "convolution.h"

#include "filter.h"

#include <stdatomic.h>

static ConvDescriptor *descriptor(Call *call, mcdnnConvolutionDescriptor_t convDesc)
{
    return descriptor_of(call, "convDesc", convDesc, HANDLE_CONVOLUTION, "a convolution descriptor");
}

const ConvDescriptor *check_convolution(Call *call, mcdnnConvolutionDescriptor_t convDesc)
{
    const ConvDescriptor *conv = descriptor(call, convDesc);
    us_require(call, conv->axes > 0, "convDesc", "set", MCDNN_STATUS_BAD_PARAM,
               "convDesc was given no padding and stride");
    return conv;
}

int64_t convolution_output(const ConvDescriptor *conv, int axis, int64_t in, int64_t taps)
{
    const int64_t room = in + 2 * (int64_t)conv->padding[axis] - ((taps - 1) * conv->dilation[axis] + 1);
    return room < 0 ? 0 : room / conv->stride[axis] + 1;
}

/* Whether the vendor's library mirrors is not known for certain: a client passes CONVOLUTION and expects the filter
 * as it is (mcdnn-cnn 14). */
bool convolution_is_mirrored(const ConvDescriptor *conv, const Tensor *filter)
{
    enum { MIRRORED, PLAIN };
    static const char *const choices[] = {[MIRRORED] = "mirrored", [PLAIN] = "plain", NULL};
    static atomic_bool said;
    int64_t taps = 1;
    for (int32_t axis = 2; axis < filter->rank; axis++)
        taps *= filter->sizes[axis];
    if (conv->mode != MCDNN_CONVOLUTION || taps == 1)
        return false;
    const bool mirrored = us_environment_choice("UNDERSTUDY_MCDNN_CONVOLUTION", choices, MIRRORED) == MIRRORED;
    if (mirrored && !atomic_exchange(&said, true))
        us_log(LOG_LEVEL_WARN, "a descriptor with MCDNN_CONVOLUTION takes filters mirrored; if the program means "
               "MCDNN_CROSS_CORRELATION, say so or set UNDERSTUDY_MCDNN_CONVOLUTION=plain");
    return mirrored;
}

mcdnnStatus_t mcdnnCreateConvolutionDescriptor(mcdnnConvolutionDescriptor_t *convDesc)
{
    return descriptor_make("mcdnnCreateConvolutionDescriptor", HANDLE_CONVOLUTION, "convDesc", convDesc,
                           &(const ConvDescriptor){.groups = 1}, sizeof(ConvDescriptor));
}

mcdnnStatus_t mcdnnDestroyConvolutionDescriptor(mcdnnConvolutionDescriptor_t convDesc)
{
    return descriptor_end("mcdnnDestroyConvolutionDescriptor", HANDLE_CONVOLUTION, "convDesc", convDesc);
}

static void check_kind(Call *call, mcdnnConvolutionMode_t mode, mcdnnDataType_t compute)
{
    check_range(call, "mode", mode, MCDNN_CONVOLUTION, MCDNN_CROSS_CORRELATION);
    check_range(call, "computeType", compute, MCDNN_DATA_FLOAT, MCDNN_DATA_INT64);
}

/* The group count, math type and reorder type stay: clients set them before and after (mcdnn-cnn 5.3). */
static void store(Call *call, ConvDescriptor *target, const ConvDescriptor *wanted)
{
    if (call->status != 0)
        return;
    const ConvDescriptor old = *target;
    *target = *wanted;
    target->groups = old.groups;
    target->math = old.math;
    target->reorder = old.reorder;
}

mcdnnStatus_t mcdnnSetConvolution2dDescriptor(
    mcdnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w,
    mcdnnConvolutionMode_t mode, mcdnnDataType_t computeType)
{
    Call call = us_call_begin("mcdnnSetConvolution2dDescriptor");
    ConvDescriptor *target = descriptor(&call, convDesc);
    check_range(&call, "pad_h", pad_h, 0, INT32_MAX);
    check_range(&call, "pad_w", pad_w, 0, INT32_MAX);
    check_range(&call, "u", u, 1, INT32_MAX);
    check_range(&call, "v", v, 1, INT32_MAX);
    check_range(&call, "dilation_h", dilation_h, 1, INT32_MAX);
    check_range(&call, "dilation_w", dilation_w, 1, INT32_MAX);
    check_kind(&call, mode, computeType);
    const ConvDescriptor wanted = {.axes = 2, .mode = mode, .compute = computeType, .padding = {pad_h, pad_w},
                                   .stride = {u, v}, .dilation = {dilation_h, dilation_w}};
    store(&call, target, &wanted);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSetConvolutionNdDescriptor(
    mcdnnConvolutionDescriptor_t convDesc, int arrayLength, const int padA[], const int filterStrideA[],
    const int dilationA[], mcdnnConvolutionMode_t mode, mcdnnDataType_t computeType)
{
    Call call = us_call_begin("mcdnnSetConvolutionNdDescriptor");
    ConvDescriptor *target = descriptor(&call, convDesc);
    check_given(&call, "padA", padA);
    check_given(&call, "filterStrideA", filterStrideA);
    check_given(&call, "dilationA", dilationA);
    us_require(&call, arrayLength >= 1, "arrayLength", "positive", MCDNN_STATUS_BAD_PARAM,
               "arrayLength is %d, it must be positive", arrayLength);
    us_require(&call, arrayLength <= CONVOLUTION_AXES, "arrayLength", "limit", MCDNN_STATUS_NOT_SUPPORTED,
               "arrayLength is %d, at most %d are stored", arrayLength, CONVOLUTION_AXES);
    check_kind(&call, mode, computeType);
    ConvDescriptor wanted = {.axes = arrayLength, .mode = mode, .compute = computeType};
    for (int axis = 0; call.status == 0 && axis < arrayLength; axis++) {
        check_range(&call, "padA", padA[axis], 0, INT32_MAX);
        check_range(&call, "filterStrideA", filterStrideA[axis], 1, INT32_MAX);
        check_range(&call, "dilationA", dilationA[axis], 1, INT32_MAX);
        wanted.padding[axis] = padA[axis];
        wanted.stride[axis] = filterStrideA[axis];
        wanted.dilation[axis] = dilationA[axis];
    }
    store(&call, target, &wanted);
    return us_call_end(&call);
}

static void give_kind(const ConvDescriptor *conv, mcdnnConvolutionMode_t *mode, mcdnnDataType_t *compute)
{
    GIVE(mode, conv->mode);
    GIVE(compute, conv->compute);
}

mcdnnStatus_t mcdnnGetConvolution2dDescriptor(
    const mcdnnConvolutionDescriptor_t convDesc, int *pad_h, int *pad_w, int *u, int *v, int *dilation_h,
    int *dilation_w, mcdnnConvolutionMode_t *mode, mcdnnDataType_t *computeType)
{
    Call call = us_call_begin("mcdnnGetConvolution2dDescriptor");
    const ConvDescriptor *conv = descriptor(&call, convDesc);
    us_require(&call, conv->axes == 2, "convDesc", "dimensions", MCDNN_STATUS_BAD_PARAM,
               "convDesc has %d spatial dimensions, not 2", conv->axes);
    if (call.status == 0) {
        int *const places[] = {pad_h, pad_w, u, v, dilation_h, dilation_w};
        const int32_t values[] = {conv->padding[0], conv->padding[1], conv->stride[0], conv->stride[1],
                                  conv->dilation[0], conv->dilation[1]};
        for (int k = 0; k < 6; k++)
            GIVE(places[k], values[k]);
        give_kind(conv, mode, computeType);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetConvolutionNdDescriptor(
    const mcdnnConvolutionDescriptor_t convDesc, int arrayLengthRequested, int *arrayLength, int padA[],
    int strideA[], int dilationA[], mcdnnConvolutionMode_t *mode, mcdnnDataType_t *computeType)
{
    Call call = us_call_begin("mcdnnGetConvolutionNdDescriptor");
    const ConvDescriptor *conv = descriptor(&call, convDesc);
    us_require(&call, arrayLengthRequested >= 0, "arrayLengthRequested", "negative", MCDNN_STATUS_BAD_PARAM,
               "arrayLengthRequested is %d, negative", arrayLengthRequested);
    us_require(&call, arrayLengthRequested <= CONVOLUTION_AXES, "arrayLengthRequested", "limit",
               MCDNN_STATUS_NOT_SUPPORTED, "arrayLengthRequested is %d, at most %d are stored", arrayLengthRequested,
               CONVOLUTION_AXES);
    if (call.status != 0)
        return us_call_end(&call);
    GIVE(arrayLength, conv->axes);
    for (int axis = 0; axis < conv->axes && axis < arrayLengthRequested; axis++) {
        GIVE(padA != NULL ? &padA[axis] : NULL, conv->padding[axis]);
        GIVE(strideA != NULL ? &strideA[axis] : NULL, conv->stride[axis]);
        GIVE(dilationA != NULL ? &dilationA[axis] : NULL, conv->dilation[axis]);
    }
    give_kind(conv, mode, computeType);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSetConvolutionMathType(mcdnnConvolutionDescriptor_t convDesc, mcdnnMathType_t mathType)
{
    Call call = us_call_begin("mcdnnSetConvolutionMathType");
    ConvDescriptor *conv = descriptor(&call, convDesc);
    check_range(&call, "mathType", mathType, MCDNN_DEFAULT_MATH, MCDNN_FMA_MATH);
    if (call.status == 0)
        conv->math = mathType;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetConvolutionMathType(mcdnnConvolutionDescriptor_t convDesc, mcdnnMathType_t *mathType)
{
    Call call = us_call_begin("mcdnnGetConvolutionMathType");
    const ConvDescriptor *conv = descriptor(&call, convDesc);
    check_given(&call, "mathType", mathType);
    if (call.status == 0)
        *mathType = conv->math;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSetConvolutionGroupCount(mcdnnConvolutionDescriptor_t convDesc, int groupCount)
{
    Call call = us_call_begin("mcdnnSetConvolutionGroupCount");
    ConvDescriptor *conv = descriptor(&call, convDesc);
    check_range(&call, "groupCount", groupCount, 1, INT32_MAX);
    if (call.status == 0)
        conv->groups = groupCount;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetConvolutionGroupCount(mcdnnConvolutionDescriptor_t convDesc, int *groupCount)
{
    Call call = us_call_begin("mcdnnGetConvolutionGroupCount");
    const ConvDescriptor *conv = descriptor(&call, convDesc);
    check_given(&call, "groupCount", groupCount);
    if (call.status == 0)
        *groupCount = conv->groups;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSetConvolutionReorderType(
    mcdnnConvolutionDescriptor_t convDesc, mcdnnReorderType_t reorderType)
{
    Call call = us_call_begin("mcdnnSetConvolutionReorderType");
    ConvDescriptor *conv = descriptor(&call, convDesc);
    check_range(&call, "reorderType", reorderType, MCDNN_DEFAULT_REORDER, MCDNN_NO_REORDER);
    if (call.status == 0)
        conv->reorder = reorderType;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetConvolutionReorderType(
    mcdnnConvolutionDescriptor_t convDesc, mcdnnReorderType_t *reorderType)
{
    Call call = us_call_begin("mcdnnGetConvolutionReorderType");
    const ConvDescriptor *conv = descriptor(&call, convDesc);
    check_given(&call, "reorderType", reorderType);
    if (call.status == 0)
        *reorderType = conv->reorder;
    return us_call_end(&call);
}

/* ---- output sizes ---- */

typedef struct OutputQuery {
    Call call;
    const ConvDescriptor *conv;
    const Tensor *input;
    Tensor filter;
} OutputQuery;

static void open_query(OutputQuery *query, const char *function, mcdnnConvolutionDescriptor_t convDesc,
                       mcdnnTensorDescriptor_t inputTensorDesc, mcdnnFilterDescriptor_t filterDesc)
{
    query->call = us_call_begin(function);
    query->conv = check_convolution(&query->call, convDesc);
    query->input = check_tensor(&query->call, "inputTensorDesc", inputTensorDesc);
    query->filter = check_filter(&query->call, "filterDesc", filterDesc);
}

static void check_query(OutputQuery *query)
{
    Call *call = &query->call;
    const int32_t rank = query->filter.rank;
    us_require(call, query->input->rank == query->conv->axes + 2, "inputTensorDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "inputTensorDesc has %d dimensions, convDesc is for %d", query->input->rank, query->conv->axes + 2);
    us_require(call, rank == query->input->rank, "filterDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "filterDesc has %d dimensions, inputTensorDesc %d", rank, query->input->rank);
    us_require(call, query->input->sizes[1] == query->filter.sizes[1] * query->conv->groups, "filterDesc", "channels",
               MCDNN_STATUS_BAD_PARAM, "the input has %lld channels, the filter %lld in %d groups",
               (long long)query->input->sizes[1], (long long)query->filter.sizes[1], query->conv->groups);
    for (int axis = 0; call->status == 0 && axis < query->conv->axes; axis++)
        us_require(call, convolution_output(query->conv, axis, query->input->sizes[2 + axis],
                                            query->filter.sizes[2 + axis]) > 0,
                   "filterDesc", "window", MCDNN_STATUS_BAD_PARAM,
                   "the dilated filter is larger than the padded input in spatial dimension %d", axis);
}

static int output_size(const OutputQuery *query, int axis)
{
    const int64_t size = axis == 0   ? query->input->sizes[0]
                         : axis == 1 ? query->filter.sizes[0]
                                     : convolution_output(query->conv, axis - 2, query->input->sizes[axis],
                                                          query->filter.sizes[axis]);
    return size_given(size);
}

mcdnnStatus_t mcdnnGetConvolution2dForwardOutputDim(
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t inputTensorDesc,
    const mcdnnFilterDescriptor_t filterDesc, int *n, int *c, int *h, int *w)
{
    OutputQuery query;
    open_query(&query, "mcdnnGetConvolution2dForwardOutputDim", convDesc, inputTensorDesc, filterDesc);
    us_require(&query.call, query.conv->axes == 2, "convDesc", "dimensions", MCDNN_STATUS_BAD_PARAM,
               "convDesc has %d spatial dimensions, not 2", query.conv->axes);
    check_query(&query);
    if (query.call.status == 0) {
        int *const places[] = {n, c, h, w};
        for (int axis = 0; axis < 4; axis++)
            GIVE(places[axis], output_size(&query, axis));
    }
    return us_call_end(&query.call);
}

mcdnnStatus_t mcdnnGetConvolutionNdForwardOutputDim(
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t inputTensorDesc,
    const mcdnnFilterDescriptor_t filterDesc, int nbDims, int tensorOutputDimA[])
{
    OutputQuery query;
    open_query(&query, "mcdnnGetConvolutionNdForwardOutputDim", convDesc, inputTensorDesc, filterDesc);
    check_given(&query.call, "tensorOutputDimA", tensorOutputDimA);
    check_query(&query);
    us_require(&query.call, nbDims >= 0 && nbDims <= query.input->rank, "nbDims", "range", MCDNN_STATUS_BAD_PARAM,
               "nbDims is %d, the output has %d dimensions", nbDims, query.input->rank);
    for (int axis = 0; query.call.status == 0 && axis < nbDims; axis++)
        tensorOutputDimA[axis] = output_size(&query, axis);
    return us_call_end(&query.call);
}
