/* Softmax, forward and backward (mcdnn 6.16, 7.3). */
#include "check.h"

/* One group per image, or one per image and position: the group's axes of a view of rank >= 2. */
static Softmax softmax_of(mcdnnSoftmaxAlgorithm_t algorithm, mcdnnSoftmaxMode_t mode, int32_t rank, const void *alpha,
                          const void *beta, const Tensor *output)
{
    static const SoftmaxAlgorithm algorithms[] = {SOFTMAX_FAST, SOFTMAX_ACCURATE, SOFTMAX_LOG};
    return (Softmax){.algorithm = algorithms[algorithm],
                     .first_axis = 1,
                     .last_axis = mode == MCDNN_SOFTMAX_MODE_INSTANCE ? rank - 1 : 1,
                     .alpha = scaling_factor(alpha, output),
                     .beta = scaling_factor(beta, output)};
}

mcdnnStatus_t mcdnnSoftmaxForward(
    mcdnnHandle_t handle, mcdnnSoftmaxAlgorithm_t algo, mcdnnSoftmaxMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y)
{
    enum { X, Y };
    static const TensorRule rules[] = {{SAME_SIZES, Y, X}, {SAME_TYPE, Y, X}, {IN_PLACE, Y, X}, {FLOAT_TYPE, X, 0},
                                       {PACKED_SPACE, X, 0}, {PACKED_SPACE, Y, 0}, {APART, Y, 0}};
    Operand operands[] = {operand("xDesc", xDesc, "x", x), operand("yDesc", yDesc, "y", y)};
    Call call = us_call_begin("mcdnnSoftmaxForward");
    const Dnn *dnn = check_handle(&call, handle);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    check_range(&call, "algo", algo, MCDNN_SOFTMAX_FAST, MCDNN_SOFTMAX_LOG);
    check_range(&call, "mode", mode, MCDNN_SOFTMAX_MODE_INSTANCE, MCDNN_SOFTMAX_MODE_CHANNEL);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, rules, COUNT_OF(rules));
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_operand(&launch, &operands[X], 2);
    launch_result(&launch, &operands[Y], 2, beta);
    const Softmax softmax = softmax_of(algo, mode, launch.views[0].rank, alpha, beta, operands[Y].tensor);
    return run_kernel(&call, dnn, &launch, us_softmax_forward, &softmax, sizeof softmax);
}

mcdnnStatus_t mcdnnSoftmaxBackward(
    mcdnnHandle_t handle, mcdnnSoftmaxAlgorithm_t algorithm, mcdnnSoftmaxMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t yDesc, const void *yData,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx)
{
    enum { Y, DY, DX };
    static const TensorRule rules[] = {
        {SAME_SIZES, DY, Y}, {SAME_SIZES, DX, Y}, {SAME_STRIDES, DY, Y}, {SAME_TYPE, DY, Y}, {SAME_TYPE, DX, Y},
        {IN_PLACE, DX, DY}, {FLOAT_TYPE, Y, 0}, {PACKED_SPACE, Y, 0}, {PACKED_SPACE, DX, 0}, {APART, DX, 0}};
    Operand operands[] = {operand("yDesc", yDesc, "yData", yData), operand("dyDesc", dyDesc, "dy", dy),
                          operand("dxDesc", dxDesc, "dx", dx)};
    Call call = us_call_begin("mcdnnSoftmaxBackward");
    const Dnn *dnn = check_handle(&call, handle);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    check_range(&call, "algorithm", algorithm, MCDNN_SOFTMAX_FAST, MCDNN_SOFTMAX_LOG);
    check_range(&call, "mode", mode, MCDNN_SOFTMAX_MODE_INSTANCE, MCDNN_SOFTMAX_MODE_CHANNEL);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, rules, COUNT_OF(rules));
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_operand(&launch, &operands[Y], 2);
    launch_operand(&launch, &operands[DY], 2);
    launch_result(&launch, &operands[DX], 2, beta);
    const Softmax softmax = softmax_of(algorithm, mode, launch.views[0].rank, alpha, beta, operands[DX].tensor);
    return run_kernel(&call, dnn, &launch, us_softmax_backward, &softmax, sizeof softmax);
}
