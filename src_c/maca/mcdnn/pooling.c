/* Pooling, forward and backward (mcdnn 6.15, 7.3). */
#include "pooling.h"

#include "kernels/pool/pooling.h"

/* parameter/rank: not the window's dimensions plus two */
static void check_rank(Call *call, const char *parameter, const Tensor *tensor, const PoolingDescriptor *pooling)
{
    us_require(call, tensor->rank == pooling->axes + 2, parameter, "rank", MCDNN_STATUS_BAD_PARAM,
               "%s has %d dimensions, a window of %d needs %d", parameter, tensor->rank, pooling->axes,
               pooling->axes + 2);
}

/* parameter/output-sizes: images or channels differ, or the window gives other spatial sizes */
static void check_output_sizes(Call *call, const char *parameter, const Tensor *output, const Tensor *input,
                               const PoolingDescriptor *pooling)
{
    if (call->status != 0)
        return;
    Tensor expected = *input;
    bool same = output->rank == input->rank;
    for (int32_t axis = 0; axis < input->rank; axis++) {
        if (axis >= 2)
            expected.sizes[axis] = pooling_output(pooling, axis - 2, input->sizes[axis]);
        same = same && output->sizes[axis] == expected.sizes[axis];
    }
    ShapeText text, wanted;
    us_require(call, same, parameter, "output-sizes", MCDNN_STATUS_BAD_PARAM, "%s is %s, the window gives %s",
               parameter, sizes_text(output, text), sizes_text(&expected, wanted));
}

/* parameter/innermost-stride: the page supports a stride of 1 along the last dimension only */
static void check_innermost_stride(Call *call, const char *parameter, const Tensor *tensor)
{
    us_require(call, tensor->strides[tensor->rank - 1] == 1, parameter, "innermost-stride", MCDNN_STATUS_NOT_SUPPORTED,
               "%s has the stride %lld along its last dimension, supported is 1", parameter,
               (long long)tensor->strides[tensor->rank - 1]);
}

/* parameter/innermost-stride: neither the columns nor the channels are neighbours in memory. The reference asks for a
 * stride of 1 along the last dimension, but the library it describes runs channels-last tensors (mcdnn 7.3). */
static void check_neighbours(Call *call, const char *parameter, const Tensor *tensor)
{
    if (call->status != 0)
        return;
    const int64_t channels = tensor->strides[1], columns = tensor->strides[tensor->rank - 1];
    us_require(call, columns == 1 || channels == 1, parameter, "innermost-stride", MCDNN_STATUS_NOT_SUPPORTED,
               "%s has the stride %lld along its channels and %lld along its last dimension, one of them must be 1",
               parameter, (long long)channels, (long long)columns);
}

static Pooling kernel_of(const PoolingDescriptor *descriptor, double alpha, double beta)
{
    static const PoolingMode modes[] = {
        [MCDNN_POOLING_MAX] = POOLING_MAX,
        [MCDNN_POOLING_MAX_DETERMINISTIC] = POOLING_MAX_BY_RESULT,
        [MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING] = POOLING_AVERAGE,
        [MCDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING] = POOLING_AVERAGE_INSIDE,
    };
    Pooling kernel = {.mode = modes[descriptor->mode],
                      .propagate_nan = descriptor->nan == MCDNN_PROPAGATE_NAN,
                      .window = {1, 1, 1},
                      .stride = {1, 1, 1},
                      .alpha = alpha,
                      .beta = beta};
    for (int axis = 0; axis < descriptor->axes; axis++) {
        int to = POOLING_AXES - descriptor->axes + axis;
        kernel.window[to] = descriptor->window[axis];
        kernel.padding[to] = descriptor->padding[axis];
        kernel.stride[to] = descriptor->stride[axis];
    }
    return kernel;
}

/* Vectors of channels become a channel axis of their lanes, and the number of the vector a spatial axis on which the
 * window has size 1. */
static void add_pooled(Launch *launch, const char *parameter, const Tensor *tensor, const void *data)
{
    if (tensor->lanes == 1) {
        launch_tensor(launch, parameter, tensor, data, 4);
        return;
    }
    const View view = tensor_lanes(tensor, data, tensor->lanes);
    View split = view;
    split.shape[1] = view.shape[2];
    split.strides[1] = view.strides[2];
    split.shape[2] = view.shape[1];
    split.strides[2] = view.strides[1];
    us_launch_view(launch, parameter, &split);
}

mcdnnStatus_t mcdnnPoolingForward(
    mcdnnHandle_t handle, const mcdnnPoolingDescriptor_t poolingDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y)
{
    Operand operands[] = {operand("xDesc", xDesc, "x", x), operand("yDesc", yDesc, "y", y)};
    Call call = us_call_begin("mcdnnPoolingForward");
    const Dnn *dnn = check_handle(&call, handle);
    const PoolingDescriptor *pooling = check_pooling(&call, poolingDesc);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    const Tensor *tx = operands[0].tensor, *ty = operands[1].tensor;
    check_rank(&call, "xDesc", tx, pooling);
    check_output_sizes(&call, "yDesc", ty, tx, pooling);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "xDesc", tx);
    check_float_or_int8(&call, "xDesc", tx, call.status == 0 && tx->rank == 4 && ty->lanes == tx->lanes);
    check_neighbours(&call, "xDesc", tx);
    check_neighbours(&call, "yDesc", ty);
    check_apart(&call, "yDesc", ty);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    add_pooled(&launch, "x", tx, x);
    add_pooled(&launch, "y", ty, y);
    us_launch_output(&launch, scaling_factor(beta, ty) != 0.0);
    const Pooling kernel = kernel_of(pooling, scaling_factor(alpha, ty), scaling_factor(beta, ty));
    return run_kernel(&call, dnn, &launch, us_pooling_forward, &kernel, sizeof kernel);
}

/* For averages x, y and their descriptors may be missing: the rules then compare what is there. */
mcdnnStatus_t mcdnnPoolingBackward(
    mcdnnHandle_t handle, const mcdnnPoolingDescriptor_t poolingDesc, const void *alpha,
    const mcdnnTensorDescriptor_t yDesc, const void *y, const mcdnnTensorDescriptor_t dyDesc,
    const void *dy, const mcdnnTensorDescriptor_t xDesc, const void *xData, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx)
{
    Call call = us_call_begin("mcdnnPoolingBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const PoolingDescriptor *pooling = check_pooling(&call, poolingDesc);
    const bool maximum = call.status == 0 && (pooling->mode == MCDNN_POOLING_MAX ||
                                              pooling->mode == MCDNN_POOLING_MAX_DETERMINISTIC);
    const Tensor *ty = maximum || yDesc != NULL ? check_tensor(&call, "yDesc", yDesc) : NULL;
    const Tensor *tdy = check_tensor(&call, "dyDesc", dyDesc);
    const Tensor *tx = maximum || xDesc != NULL ? check_tensor(&call, "xDesc", xDesc) : NULL;
    const Tensor *tdx = check_tensor(&call, "dxDesc", dxDesc);
    check_on_host(&call, "alpha", alpha);
    check_on_host(&call, "beta", beta);
    check_given(&call, "dy", dy);
    check_given(&call, "dx", dx);
    if (maximum) {
        check_given(&call, "y", y);
        check_given(&call, "xData", xData);
    }
    if (ty != NULL) {
        check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "dyDesc", tdy, "yDesc", ty);
        check_same_strides(&call, MCDNN_STATUS_BAD_PARAM, "dyDesc", tdy, "yDesc", ty);
    }
    if (tx != NULL) {
        check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "dxDesc", tdx, "xDesc", tx);
        check_same_strides(&call, MCDNN_STATUS_BAD_PARAM, "dxDesc", tdx, "xDesc", tx);
        check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "xDesc", tx, "dyDesc", tdy);
    }
    if (ty != NULL)
        check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "dyDesc", tdy);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "dxDesc", tdx, "dyDesc", tdy);
    check_rank(&call, "dxDesc", tdx, pooling);
    check_output_sizes(&call, "dyDesc", tdy, tdx, pooling);
    check_float_type(&call, "dyDesc", tdy);
    check_innermost_stride(&call, "dyDesc", tdy);
    check_innermost_stride(&call, "dxDesc", tdx);
    check_apart(&call, "dxDesc", tdx);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    Pooling kernel = kernel_of(pooling, scaling_factor(alpha, tdx), scaling_factor(beta, tdx));
    launch_optional(&launch, "y", kernel.mode == POOLING_MAX_BY_RESULT ? ty : NULL, y, 4);
    launch_tensor(&launch, "dy", tdy, dy, 4);
    launch_optional(&launch, "xData", maximum ? tx : NULL, xData, 4);
    launch_output(&launch, "dx", tdx, dx, 4, scaling_factor(beta, tdx));
    return run_kernel(&call, dnn, &launch, us_pooling_backward, &kernel, sizeof kernel);
}
