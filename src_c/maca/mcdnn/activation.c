/* Activation descriptors, forward and backward (mcdnn 6.1, 7.2, 7.3). */
#include "kernels/blend/activation.h"

#include "check.h"

static ActivationDescriptor *descriptor(Call *call, mcdnnActivationDescriptor_t activationDesc)
{
    return descriptor_of(call, "activationDesc", activationDesc, HANDLE_ACTIVATION, "an activation descriptor");
}

mcdnnStatus_t mcdnnCreateActivationDescriptor(mcdnnActivationDescriptor_t *activationDesc)
{
    return descriptor_make("mcdnnCreateActivationDescriptor", HANDLE_ACTIVATION, "activationDesc", activationDesc,
                           &(const ActivationDescriptor){.swish_beta = 1}, sizeof(ActivationDescriptor));
}

mcdnnStatus_t mcdnnDestroyActivationDescriptor(mcdnnActivationDescriptor_t activationDesc)
{
    return descriptor_end("mcdnnDestroyActivationDescriptor", HANDLE_ACTIVATION, "activationDesc", activationDesc);
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
        GIVE(mode, activation->mode);
        GIVE(reluNanOpt, activation->nan);
        GIVE(coef, activation->coefficient);
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

static Activation kernel_of(const ActivationDescriptor *descriptor, const void *alpha, const void *beta,
                            const Tensor *output)
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
                        .alpha = scaling_factor(alpha, output),
                        .beta = scaling_factor(beta, output)};
}

mcdnnStatus_t mcdnnActivationForward(
    mcdnnHandle_t handle, mcdnnActivationDescriptor_t activationDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y)
{
    enum { X, Y };
    static const TensorRule rules[] = {{SAME_SIZES, Y, X}, {SAME_TYPE, Y, X}, {IN_PLACE, Y, X}, {FLOAT_OR_INT8, X, 0},
                                       {PACKED_SPACE, X, 0}, {PACKED_SPACE, Y, 0}, {APART, Y, 0}};
    Operand operands[] = {operand("xDesc", xDesc, "x", x), operand("yDesc", yDesc, "y", y)};
    Call call = us_call_begin("mcdnnActivationForward");
    const Dnn *dnn = check_handle(&call, handle);
    const ActivationDescriptor *activation = check_activation(&call, activationDesc);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    check_mode(&call, activation);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, rules, COUNT_OF(rules));
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_operand(&launch, &operands[X], 1);
    launch_result(&launch, &operands[Y], 1, beta);
    const Activation kernel = kernel_of(activation, alpha, beta, operands[Y].tensor);
    return run_kernel(&call, dnn, &launch, us_activation_forward, &kernel, sizeof kernel);
}

/* The page calls y the input of this step and x its output: rules 2 to 5 compare them in these roles. */
mcdnnStatus_t mcdnnActivationBackward(
    mcdnnHandle_t handle, mcdnnActivationDescriptor_t activationDesc, const void *alpha,
    const mcdnnTensorDescriptor_t yDesc, const void *y, const mcdnnTensorDescriptor_t dyDesc,
    const void *dy, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx)
{
    enum { Y, DY, X, DX };
    static const TensorRule rules[] = {
        {IN_PLACE, DX, DY}, {SAME_SIZES, X, Y}, {SAME_TYPE, X, Y}, {SAME_SIZES, DY, Y}, {SAME_SIZES, DX, X},
        {SAME_TYPE, DY, Y}, {SAME_TYPE, DX, X}, {SAME_STRIDES, DY, Y}, {SAME_STRIDES, DX, X}, {FLOAT_TYPE, Y, 0},
        {PACKED_SPACE, Y, 0}, {PACKED_SPACE, X, 0}, {APART, DX, 0}};
    Operand operands[] = {operand("yDesc", yDesc, "y", y), operand("dyDesc", dyDesc, "dy", dy),
                          operand("xDesc", xDesc, "x", x), operand("dxDesc", dxDesc, "dx", dx)};
    Call call = us_call_begin("mcdnnActivationBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const ActivationDescriptor *activation = check_activation(&call, activationDesc);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    check_mode(&call, activation);
    check_rules(&call, MCDNN_STATUS_NOT_SUPPORTED, operands, rules, COUNT_OF(rules));
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    const Activation kernel = kernel_of(activation, alpha, beta, operands[DX].tensor);
    launch_operand(&launch, &operands[us_activation_backward_reads_x(kernel.function) ? X : Y], 1);
    launch_operand(&launch, &operands[DY], 1);
    launch_result(&launch, &operands[DX], 1, beta);
    return run_kernel(&call, dnn, &launch, us_activation_backward, &kernel, sizeof kernel);
}
