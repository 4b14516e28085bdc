/* Activation descriptors, forward and backward (mcdnn 6.1, 7.2, 7.3). */
#include "kernels/activation.h"

#include "check.h"

static ActivationDescriptor *descriptor(Call *call, mcdnnActivationDescriptor_t activationDesc)
{
    return descriptor_of(call, "activationDesc", activationDesc, HANDLE_ACTIVATION, "an activation descriptor");
}

mcdnnStatus_t mcdnnCreateActivationDescriptor(mcdnnActivationDescriptor_t *activationDesc)
{
    Call call = us_call_begin("mcdnnCreateActivationDescriptor");
    ActivationDescriptor initial = {.swish_beta = 1};
    void *made = descriptor_create(&call, "activationDesc", activationDesc, HANDLE_ACTIVATION, &initial,
                                   sizeof initial);
    if (made != NULL)
        *activationDesc = made;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnDestroyActivationDescriptor(mcdnnActivationDescriptor_t activationDesc)
{
    Call call = us_call_begin("mcdnnDestroyActivationDescriptor");
    descriptor_destroy(&call, "activationDesc", activationDesc, HANDLE_ACTIVATION);
    return us_call_end(&call);
}

/* Any mode is stored; the functions that use it refuse what they cannot do (mcdnn 7.2). */
mcdnnStatus_t mcdnnSetActivationDescriptor(
    mcdnnActivationDescriptor_t activationDesc, mcdnnActivationMode_t mode,
    mcdnnNanPropagation_t reluNanOpt, double coef)
{
    Call call = us_call_begin("mcdnnSetActivationDescriptor");
    ActivationDescriptor *activation = descriptor(&call, activationDesc);
    if (call.status == 0) {
        activation->set = true;
        activation->mode = mode;
        activation->nan = reluNanOpt;
        activation->coefficient = coef;
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetActivationDescriptor(
    const mcdnnActivationDescriptor_t activationDesc, mcdnnActivationMode_t *mode,
    mcdnnNanPropagation_t *reluNanOpt, double *coef)
{
    Call call = us_call_begin("mcdnnGetActivationDescriptor");
    const ActivationDescriptor *activation = descriptor(&call, activationDesc);
    if (call.status == 0) {
        if (mode != NULL)
            *mode = activation->mode;
        if (reluNanOpt != NULL)
            *reluNanOpt = activation->nan;
        if (coef != NULL)
            *coef = activation->coefficient;
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSetActivationDescriptorSwishBeta(
    mcdnnActivationDescriptor_t activationDesc, double swish_beta)
{
    Call call = us_call_begin("mcdnnSetActivationDescriptorSwishBeta");
    ActivationDescriptor *activation = descriptor(&call, activationDesc);
    if (call.status == 0)
        activation->swish_beta = swish_beta;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetActivationDescriptorSwishBeta(
    mcdnnActivationDescriptor_t activationDesc, double *swish_beta)
{
    Call call = us_call_begin("mcdnnGetActivationDescriptorSwishBeta");
    const ActivationDescriptor *activation = descriptor(&call, activationDesc);
    check_given(&call, "swish_beta", swish_beta);
    if (call.status == 0)
        *swish_beta = activation->swish_beta;
    return us_call_end(&call);
}

const ActivationDescriptor *check_activation(Call *call, mcdnnActivationDescriptor_t activationDesc)
{
    const ActivationDescriptor *activation = descriptor(call, activationDesc);
    us_require(call, activation->set, "activationDesc", "set", MCDNN_STATUS_BAD_PARAM,
               "activationDesc was given no mode");
    return activation;
}

/* IDENTITY exists for fused convolutions only. */
static void check_mode(Call *call, const ActivationDescriptor *activation)
{
    us_require(call, (unsigned)activation->mode <= MCDNN_ACTIVATION_SWISH &&
                   activation->mode != MCDNN_ACTIVATION_IDENTITY,
               "activationDesc", "mode", MCDNN_STATUS_BAD_PARAM, "the descriptor's mode is %d, which is %s",
               (int)activation->mode,
               activation->mode == MCDNN_ACTIVATION_IDENTITY ? "IDENTITY: only fused convolutions have it" : "unknown");
}

static Activation kernel_of(const ActivationDescriptor *descriptor, double alpha, double beta)
{
    static const ActivationFunction functions[] = {
        [MCDNN_ACTIVATION_SIGMOID] = ACTIVATION_SIGMOID, [MCDNN_ACTIVATION_RELU] = ACTIVATION_RELU,
        [MCDNN_ACTIVATION_TANH] = ACTIVATION_TANH,       [MCDNN_ACTIVATION_CLIPPED_RELU] = ACTIVATION_CLIPPED_RELU,
        [MCDNN_ACTIVATION_ELU] = ACTIVATION_ELU,         [MCDNN_ACTIVATION_SWISH] = ACTIVATION_SWISH,
    };
    bool swish = descriptor->mode == MCDNN_ACTIVATION_SWISH;
    return (Activation){.function = functions[descriptor->mode],
                        .propagate_nan = descriptor->nan == MCDNN_PROPAGATE_NAN,
                        .coefficient = swish ? descriptor->swish_beta : descriptor->coefficient,
                        .alpha = alpha,
                        .beta = beta};
}

mcdnnStatus_t mcdnnActivationForward(
    mcdnnHandle_t handle, mcdnnActivationDescriptor_t activationDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y)
{
    Call call = us_call_begin("mcdnnActivationForward");
    const Dnn *dnn = check_handle(&call, handle);
    const ActivationDescriptor *activation = check_activation(&call, activationDesc);
    const Tensor *tx = check_tensor(&call, "xDesc", xDesc);
    const Tensor *ty = check_tensor(&call, "yDesc", yDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "x", x);
    check_given(&call, "y", y);
    check_mode(&call, activation);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "xDesc", tx);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "xDesc", tx);
    check_in_place(&call, "y", y, ty, x, tx);
    check_float_or_int8(&call, "xDesc", tx, false);
    check_packed_space(&call, "xDesc", tx);
    check_packed_space(&call, "yDesc", ty);
    check_apart(&call, "yDesc", ty);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "x", tx, x, 1);
    launch_output(&launch, "y", ty, y, 1, scaling_factor(beta, ty));
    Activation kernel = kernel_of(activation, scaling_factor(alpha, ty), scaling_factor(beta, ty));
    us_launch_kernel(&launch, us_activation_forward, &kernel, sizeof kernel);
    submit(&call, dnn, &launch);
    return us_call_end(&call);
}

/* The page calls y the input of this step and x its output: rules 2 to 5 compare them in these roles. */
mcdnnStatus_t mcdnnActivationBackward(
    mcdnnHandle_t handle, mcdnnActivationDescriptor_t activationDesc, const void *alpha,
    const mcdnnTensorDescriptor_t yDesc, const void *y, const mcdnnTensorDescriptor_t dyDesc,
    const void *dy, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx)
{
    Call call = us_call_begin("mcdnnActivationBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const ActivationDescriptor *activation = check_activation(&call, activationDesc);
    const Tensor *ty = check_tensor(&call, "yDesc", yDesc);
    const Tensor *tdy = check_tensor(&call, "dyDesc", dyDesc);
    const Tensor *tx = check_tensor(&call, "xDesc", xDesc);
    const Tensor *tdx = check_tensor(&call, "dxDesc", dxDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "beta", beta);
    check_given(&call, "y", y);
    check_given(&call, "dy", dy);
    check_given(&call, "x", x);
    check_given(&call, "dx", dx);
    check_mode(&call, activation);
    check_in_place(&call, "dx", dx, tdx, dy, tdy);
    check_same_sizes(&call, MCDNN_STATUS_NOT_SUPPORTED, "xDesc", tx, "yDesc", ty);
    check_same_type(&call, MCDNN_STATUS_NOT_SUPPORTED, "xDesc", tx, "yDesc", ty);
    check_same_sizes(&call, MCDNN_STATUS_NOT_SUPPORTED, "dyDesc", tdy, "yDesc", ty);
    check_same_sizes(&call, MCDNN_STATUS_NOT_SUPPORTED, "dxDesc", tdx, "xDesc", tx);
    check_same_type(&call, MCDNN_STATUS_NOT_SUPPORTED, "dyDesc", tdy, "yDesc", ty);
    check_same_type(&call, MCDNN_STATUS_NOT_SUPPORTED, "dxDesc", tdx, "xDesc", tx);
    check_same_strides(&call, MCDNN_STATUS_NOT_SUPPORTED, "dyDesc", tdy, "yDesc", ty);
    check_same_strides(&call, MCDNN_STATUS_NOT_SUPPORTED, "dxDesc", tdx, "xDesc", tx);
    check_float_type(&call, "yDesc", ty);
    check_packed_space(&call, "yDesc", ty);
    check_packed_space(&call, "xDesc", tx);
    check_apart(&call, "dxDesc", tdx);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    Activation kernel = kernel_of(activation, scaling_factor(alpha, tdx), scaling_factor(beta, tdx));
    bool reads_x = us_activation_backward_reads_x(kernel.function);
    launch_tensor(&launch, reads_x ? "x" : "y", reads_x ? tx : ty, reads_x ? x : y, 1);
    launch_tensor(&launch, "dy", tdy, dy, 1);
    launch_output(&launch, "dx", tdx, dx, 1, scaling_factor(beta, tdx));
    us_launch_kernel(&launch, us_activation_backward, &kernel, sizeof kernel);
    submit(&call, dnn, &launch);
    return us_call_end(&call);
}
