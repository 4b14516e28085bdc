/* Column matrices, the order of INT8x32 filters, folding (mcdnn-cnn 12). */
#include "convolution.h"
#include "filter.h"
#include "kernels/conv/reorder.h"

#include <string.h>

/* What the kernel needs, and the rows and columns that it makes. */
static void check_columns(Call *call, const ConvDescriptor *conv, const Tensor *x, const Tensor *w, ConvColumns *kernel,
                          int64_t *shape)
{
    const int64_t limit = INT64_C(1) << 31;
    if (call->status != 0)
        return;
    *kernel = (ConvColumns){.conv = {.axes = conv->axes, .mirrored = convolution_is_mirrored(conv, w)}};
    shape[0] = x->sizes[1];
    shape[1] = x->sizes[0];
    for (int axis = 0; call->status == 0 && axis < conv->axes; axis++) {
        const int64_t taps = w->sizes[2 + axis], positions = convolution_output(conv, axis, x->sizes[2 + axis], taps);
        us_require(call, positions > 0, "wDesc", "window", MCDNN_STATUS_BAD_PARAM,
                   "the dilated filter is larger than the padded input in spatial dimension %d", axis);
        us_require(call, taps <= limit / shape[0] && positions <= limit / shape[1], "xDesc", "columns",
                   MCDNN_STATUS_NOT_SUPPORTED, "the matrix would have more than 2^31 rows or columns");
        if (call->status == 0) {
            shape[0] *= kernel->taps[axis] = taps;
            shape[1] *= kernel->positions[axis] = positions;
            kernel->conv.stride[axis] = conv->stride[axis];
            kernel->conv.padding[axis] = conv->padding[axis];
            kernel->conv.dilation[axis] = conv->dilation[axis];
        }
    }
}

mcdnnStatus_t mcdnnIm2Col(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnFilterDescriptor_t wDesc, const mcdnnConvolutionDescriptor_t convDesc, void *colBuffer)
{
    Call call = us_call_begin("mcdnnIm2Col");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *tx = check_tensor(&call, "xDesc", xDesc);
    const Tensor w = check_filter(&call, "wDesc", wDesc);
    const ConvDescriptor *conv = check_convolution(&call, convDesc);
    check_given(&call, "x", x);
    check_given(&call, "colBuffer", colBuffer);
    us_require(&call, w.rank == conv->axes + 2, "wDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "wDesc has %d dimensions, convDesc is for %d", w.rank, conv->axes + 2);
    us_require(&call, tx->rank == w.rank, "xDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "xDesc has %d dimensions, convDesc is for %d", tx->rank, w.rank);
    us_require(&call, tx->sizes[1] == w.sizes[1] * conv->groups, "wDesc", "channels", MCDNN_STATUS_BAD_PARAM,
               "xDesc has %lld channels, the filter %lld in %d groups", (long long)tx->sizes[1], (long long)w.sizes[1],
               conv->groups);
    us_require(&call, conv->axes <= CONV_AXES, "xDesc", "dimensions", MCDNN_STATUS_NOT_SUPPORTED,
               "xDesc has %d dimensions, supported are 3 to 5", tx->rank);
    check_float_type(&call, "xDesc", tx);
    ConvColumns kernel = {0};
    int64_t shape[2] = {0};
    check_columns(&call, conv, tx, &w, &kernel, shape);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "x", tx, x, conv->axes + 2);
    const View columns = us_view_contiguous(colBuffer, type_dtype(tx->type), 2, shape);
    us_launch_view(&launch, "colBuffer", &columns);
    us_launch_output(&launch, false);
    return run_kernel(&call, dnn, &launch, us_conv_columns, &kernel, sizeof kernel);
}

/* from, to */
static KernelStatus copy_bytes(const View *views, const void *attributes)
{
    (void)attributes;
    memmove(views[1].data, views[0].data, (size_t)us_view_elements(&views[1]) * us_dtype_size(views[1].dtype));
    return KERNEL_OK;
}

static void queue_move(Call *call, const Dnn *dnn, const char *from_name, const View *from, const char *to_name, void *to,
                       Kernel *kernel)
{
    Launch launch;
    View target = *from;
    target.data = to;
    us_launch_begin(&launch, call->function);
    us_launch_view(&launch, from_name, from);
    us_launch_view(&launch, to_name, &target);
    us_launch_output(&launch, false);
    us_launch_kernel(&launch, kernel, "", 0);
    submit(call, dnn, &launch);
}

/* A convolution whose descriptor says NO_REORDER takes what DEFAULT_REORDER makes. */
mcdnnStatus_t mcdnnReorderFilterAndBias(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t filterDesc, mcdnnReorderType_t reorderType,
    const void *filterData, void *reorderedFilterData, int reorderBias, const void *biasData,
    void *reorderedBiasData)
{
    Call call = us_call_begin("mcdnnReorderFilterAndBias");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor filter = check_filter(&call, "filterDesc", filterDesc);
    check_given(&call, "filterData", filterData);
    check_given(&call, "reorderedFilterData", reorderedFilterData);
    if (reorderBias != 0) {
        check_given(&call, "biasData", biasData);
        check_given(&call, "reorderedBiasData", reorderedBiasData);
    }
    check_range(&call, "reorderType", reorderType, MCDNN_DEFAULT_REORDER, MCDNN_NO_REORDER);
    us_require(&call, filter.type == MCDNN_DATA_INT8x32 && filter.lanes == 32, "filterDesc", "unsupported-type",
               MCDNN_STATUS_NOT_SUPPORTED, "the filter is %s, only INT8x32 in NCHW_VECT_C is reordered",
               type_name(filter.type));
    if (call.status != 0)
        return us_call_end(&call);
    const bool moves = reorderType == MCDNN_DEFAULT_REORDER;
    const int64_t results = filter.sizes[0], shape[] = {results, tensor_elements(&filter) / results};
    const View weights = us_view_contiguous((void *)(uintptr_t)filterData, DTYPE_UINT8, 2, shape);
    queue_move(&call, dnn, "filterData", &weights, "reorderedFilterData", reorderedFilterData,
               moves ? us_conv_reorder_filter : copy_bytes);
    if (reorderBias != 0) {
        const View bias = us_view_contiguous((void *)(uintptr_t)biasData, DTYPE_FLOAT32, 1, &results);
        queue_move(&call, dnn, "biasData", &bias, "reorderedBiasData", reorderedBiasData,
                   moves ? us_conv_reorder_bias : copy_bytes);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetFoldedConvBackwardDataDescriptors(
    const mcdnnHandle_t handle, const mcdnnFilterDescriptor_t filterDesc,
    const mcdnnTensorDescriptor_t diffDesc, const mcdnnConvolutionDescriptor_t convDesc,
    const mcdnnTensorDescriptor_t gradDesc, const mcdnnTensorFormat_t transformFormat,
    mcdnnFilterDescriptor_t foldedFilterDesc, mcdnnTensorDescriptor_t paddedDiffDesc,
    mcdnnConvolutionDescriptor_t foldedConvDesc, mcdnnTensorDescriptor_t foldedGradDesc,
    mcdnnTensorTransformDescriptor_t filterFoldTransDesc, mcdnnTensorTransformDescriptor_t diffPadTransDesc,
    mcdnnTensorTransformDescriptor_t gradFoldTransDesc, mcdnnTensorTransformDescriptor_t gradUnfoldTransDesc)
{
    (void)handle, (void)filterDesc, (void)diffDesc, (void)convDesc, (void)gradDesc, (void)transformFormat;
    (void)foldedFilterDesc, (void)paddedDiffDesc, (void)foldedConvDesc, (void)foldedGradDesc;
    (void)filterFoldTransDesc, (void)diffPadTransDesc, (void)gradFoldTransDesc, (void)gradUnfoldTransDesc;
    Call call = us_call_begin("mcdnnGetFoldedConvBackwardDataDescriptors");
    us_refuse(&call, "function", "emulated", MCDNN_STATUS_NOT_SUPPORTED, "folded gradients are not emulated");
    return us_call_end(&call);
}
