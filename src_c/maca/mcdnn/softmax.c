/* Softmax, forward and backward (mcdnn 6.16, 7.3). */
#include "check.h"

/* One group per image, or one per image and position: the group's axes of a view of rank >= 2. */
static Softmax softmax_of(mcdnnSoftmaxAlgorithm_t algorithm, mcdnnSoftmaxMode_t mode, int32_t rank, double alpha,
                          double beta)
{
    static const SoftmaxAlgorithm algorithms[] = {SOFTMAX_FAST, SOFTMAX_ACCURATE, SOFTMAX_LOG};
    return (Softmax){.algorithm = algorithms[algorithm],
                     .first_axis = 1,
                     .last_axis = mode == MCDNN_SOFTMAX_MODE_INSTANCE ? rank - 1 : 1,
                     .alpha = alpha,
                     .beta = beta};
}

mcdnnStatus_t mcdnnSoftmaxForward(
    mcdnnHandle_t handle, mcdnnSoftmaxAlgorithm_t algo, mcdnnSoftmaxMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y)
{
    Call call = us_call_begin("mcdnnSoftmaxForward");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *tx = check_tensor(&call, "xDesc", xDesc);
    const Tensor *ty = check_tensor(&call, "yDesc", yDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "x", x);
    check_given(&call, "y", y);
    check_range(&call, "algo", algo, MCDNN_SOFTMAX_FAST, MCDNN_SOFTMAX_LOG);
    check_range(&call, "mode", mode, MCDNN_SOFTMAX_MODE_INSTANCE, MCDNN_SOFTMAX_MODE_CHANNEL);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "xDesc", tx);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "xDesc", tx);
    check_in_place(&call, "y", y, ty, x, tx);
    check_float_type(&call, "xDesc", tx);
    check_packed_space(&call, "xDesc", tx);
    check_packed_space(&call, "yDesc", ty);
    check_apart(&call, "yDesc", ty);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "x", tx, x, 2);
    launch_output(&launch, "y", ty, y, 2, scaling_factor(beta, ty));
    Softmax softmax =
        softmax_of(algo, mode, launch.views[0].rank, scaling_factor(alpha, ty), scaling_factor(beta, ty));
    us_launch_kernel(&launch, us_softmax_forward, &softmax, sizeof softmax);
    submit(&call, dnn, &launch);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSoftmaxBackward(
    mcdnnHandle_t handle, mcdnnSoftmaxAlgorithm_t algorithm, mcdnnSoftmaxMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t yDesc, const void *yData,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx)
{
    Call call = us_call_begin("mcdnnSoftmaxBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *ty = check_tensor(&call, "yDesc", yDesc);
    const Tensor *tdy = check_tensor(&call, "dyDesc", dyDesc);
    const Tensor *tdx = check_tensor(&call, "dxDesc", dxDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "yData", yData);
    check_given(&call, "dy", dy);
    check_given(&call, "dx", dx);
    check_range(&call, "algorithm", algorithm, MCDNN_SOFTMAX_FAST, MCDNN_SOFTMAX_LOG);
    check_range(&call, "mode", mode, MCDNN_SOFTMAX_MODE_INSTANCE, MCDNN_SOFTMAX_MODE_CHANNEL);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "dyDesc", tdy, "yDesc", ty);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "dxDesc", tdx, "yDesc", ty);
    check_same_strides(&call, MCDNN_STATUS_BAD_PARAM, "dyDesc", tdy, "yDesc", ty);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "dyDesc", tdy, "yDesc", ty);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "dxDesc", tdx, "yDesc", ty);
    check_in_place(&call, "dx", dx, tdx, dy, tdy);
    check_float_type(&call, "yDesc", ty);
    check_packed_space(&call, "yDesc", ty);
    check_packed_space(&call, "dxDesc", tdx);
    check_apart(&call, "dxDesc", tdx);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "yData", ty, yData, 2);
    launch_tensor(&launch, "dy", tdy, dy, 2);
    launch_output(&launch, "dx", tdx, dx, 2, scaling_factor(beta, tdx));
    Softmax softmax =
        softmax_of(algorithm, mode, launch.views[0].rank, scaling_factor(alpha, tdx), scaling_factor(beta, tdx));
    us_launch_kernel(&launch, us_softmax_backward, &softmax, sizeof softmax);
    submit(&call, dnn, &launch);
    return us_call_end(&call);
}
