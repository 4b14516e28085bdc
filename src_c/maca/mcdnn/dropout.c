/* Dropout (mcdnn 6.9, 7.4). The generator's state is in the program's device buffer, the mask in the reserve space. */
#include "check.h"
#include "kernels/random/dropout.h"

static DropoutDescriptor *descriptor(Call *call, mcdnnDropoutDescriptor_t dropoutDesc)
{
    return descriptor_of(call, "dropoutDesc", dropoutDesc, HANDLE_DROPOUT, "a dropout descriptor");
}

mcdnnStatus_t mcdnnCreateDropoutDescriptor(mcdnnDropoutDescriptor_t *dropoutDesc)
{
    Call call = us_call_begin("mcdnnCreateDropoutDescriptor");
    DropoutDescriptor initial = {0};
    void *made = descriptor_create(&call, "dropoutDesc", dropoutDesc, HANDLE_DROPOUT, &initial, sizeof initial);
    if (made != NULL)
        *dropoutDesc = made;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnDestroyDropoutDescriptor(mcdnnDropoutDescriptor_t dropoutDesc)
{
    Call call = us_call_begin("mcdnnDestroyDropoutDescriptor");
    descriptor_destroy(&call, "dropoutDesc", dropoutDesc, HANDLE_DROPOUT);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnDropoutGetStatesSize(mcdnnHandle_t handle, size_t *sizeInBytes)
{
    Call call = us_call_begin("mcdnnDropoutGetStatesSize");
    check_handle(&call, handle);
    check_given(&call, "sizeInBytes", sizeInBytes);
    if (call.status == 0)
        *sizeInBytes = DROPOUT_STATE_BYTES;
    return us_call_end(&call);
}

static size_t mask_bytes(const Tensor *tensor)
{
    return (size_t)us_dropout_mask_bytes(tensor_elements(tensor));
}

mcdnnStatus_t mcdnnDropoutGetReserveSpaceSize(mcdnnTensorDescriptor_t xdesc, size_t *sizeInBytes)
{
    Call call = us_call_begin("mcdnnDropoutGetReserveSpaceSize");
    const Tensor *x = check_tensor(&call, "xdesc", xdesc);
    check_given(&call, "sizeInBytes", sizeInBytes);
    if (call.status == 0)
        *sizeInBytes = mask_bytes(x);
    return us_call_end(&call);
}

static void check_states_size(Call *call, size_t bytes)
{
    us_require(call, bytes >= DROPOUT_STATE_BYTES, "stateSizeInBytes", "minimum", MCDNN_STATUS_INVALID_VALUE,
               "stateSizeInBytes is %zu, the generator needs %d", bytes, DROPOUT_STATE_BYTES);
}

/* NULL states change only the probability. */
mcdnnStatus_t mcdnnSetDropoutDescriptor(
    mcdnnDropoutDescriptor_t dropoutDesc, mcdnnHandle_t handle, float dropout, void *states,
    size_t stateSizeInBytes, unsigned long long seed)
{
    Call call = us_call_begin("mcdnnSetDropoutDescriptor");
    DropoutDescriptor *target = descriptor(&call, dropoutDesc);
    const Dnn *dnn = check_handle(&call, handle);
    if (states != NULL) {
        check_states_size(&call, stateSizeInBytes);
        Launch launch;
        us_launch_begin(&launch, call.function);
        launch_bytes(&launch, "states", states, DROPOUT_STATE_BYTES, VIEW_WRITE);
        Dropout kernel = {.seed = seed};
        us_launch_kernel(&launch, us_dropout_seed, &kernel, sizeof kernel);
        submit(&call, dnn, &launch);
    }
    if (call.status == 0) {
        target->probability = dropout;
        target->states = states != NULL ? states : target->states;
        target->seed = states != NULL ? seed : target->seed;
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnRestoreDropoutDescriptor(
    mcdnnDropoutDescriptor_t dropoutDesc, mcdnnHandle_t handle, float dropout, void *states,
    size_t stateSizeInBytes, unsigned long long seed)
{
    Call call = us_call_begin("mcdnnRestoreDropoutDescriptor");
    DropoutDescriptor *target = descriptor(&call, dropoutDesc);
    check_handle(&call, handle);
    check_given(&call, "states", states);
    check_states_size(&call, stateSizeInBytes);
    if (call.status == 0)
        *target = (DropoutDescriptor){dropout, states, seed};
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetDropoutDescriptor(
    mcdnnDropoutDescriptor_t dropoutDesc, mcdnnHandle_t handle, float *dropout, void **states,
    unsigned long long *seed)
{
    Call call = us_call_begin("mcdnnGetDropoutDescriptor");
    const DropoutDescriptor *source = descriptor(&call, dropoutDesc);
    check_handle(&call, handle);
    if (call.status == 0) {
        if (dropout != NULL)
            *dropout = source->probability;
        if (states != NULL)
            *states = source->states;
        if (seed != NULL)
            *seed = source->seed;
    }
    return us_call_end(&call);
}

/* Rules 1 to 6 of either direction; parameters of the input's and the output's side are named by the caller. */
static void check_elements(Call *call, const char *parameter, const Tensor *output, const Tensor *input)
{
    us_require(call, tensor_elements(output) == tensor_elements(input), parameter, "elements", MCDNN_STATUS_BAD_PARAM,
               "%s has %lld elements, the other tensor %lld", parameter, (long long)tensor_elements(output),
               (long long)tensor_elements(input));
}

static void check_reserve(Call *call, size_t bytes, const Tensor *tensor)
{
    us_require(call, bytes >= mask_bytes(tensor), "reserveSpaceSizeInBytes", "minimum", MCDNN_STATUS_BAD_PARAM,
               "reserveSpaceSizeInBytes is %zu, the mask needs %zu", bytes, mask_bytes(tensor));
}

static void check_states(Call *call, const DropoutDescriptor *dropout)
{
    us_require(call, dropout->states != NULL, "dropoutDesc", "states", MCDNN_STATUS_BAD_PARAM,
               "mcdnnSetDropoutDescriptor has not given dropoutDesc a buffer for the generator's state");
}

mcdnnStatus_t mcdnnDropoutForward(
    mcdnnHandle_t handle, const mcdnnDropoutDescriptor_t dropoutDesc,
    const mcdnnTensorDescriptor_t xdesc, const void *x, const mcdnnTensorDescriptor_t ydesc,
    void *y, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    Call call = us_call_begin("mcdnnDropoutForward");
    const Dnn *dnn = check_handle(&call, handle);
    const DropoutDescriptor *dropout = descriptor(&call, dropoutDesc);
    const Tensor *tx = check_tensor(&call, "xdesc", xdesc);
    const Tensor *ty = check_tensor(&call, "ydesc", ydesc);
    check_given(&call, "x", x);
    check_given(&call, "y", y);
    check_given(&call, "reserveSpace", reserveSpace);
    check_elements(&call, "ydesc", ty, tx);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "ydesc", ty, "xdesc", tx);
    check_in_place(&call, "y", y, ty, x, tx);
    check_reserve(&call, reserveSpaceSizeInBytes, tx);
    check_states(&call, dropout);
    check_float_type(&call, "xdesc", tx);
    check_apart(&call, "ydesc", ty);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "x", tx, x, 1);
    launch_output(&launch, "y", ty, y, 1, 0.0);
    launch_bytes(&launch, "reserveSpace", reserveSpace, mask_bytes(tx), VIEW_WRITE);
    launch_bytes(&launch, "states", dropout->states, DROPOUT_STATE_BYTES, VIEW_READ_WRITE);
    Dropout kernel = {.probability = dropout->probability};
    return run_kernel(&call, dnn, &launch, us_dropout_forward, &kernel, sizeof kernel);
}

mcdnnStatus_t mcdnnDropoutBackward(
    mcdnnHandle_t handle, const mcdnnDropoutDescriptor_t dropoutDesc,
    const mcdnnTensorDescriptor_t dydesc, const void *dy, const mcdnnTensorDescriptor_t dxdesc,
    void *dx, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    Call call = us_call_begin("mcdnnDropoutBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const DropoutDescriptor *dropout = descriptor(&call, dropoutDesc);
    const Tensor *tdy = check_tensor(&call, "dydesc", dydesc);
    const Tensor *tdx = check_tensor(&call, "dxdesc", dxdesc);
    check_given(&call, "dy", dy);
    check_given(&call, "dx", dx);
    check_given(&call, "reserveSpace", reserveSpace);
    check_elements(&call, "dxdesc", tdx, tdy);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "dxdesc", tdx, "dydesc", tdy);
    check_in_place(&call, "dx", dx, tdx, dy, tdy);
    check_reserve(&call, reserveSpaceSizeInBytes, tdy);
    check_states(&call, dropout);
    check_float_type(&call, "dydesc", tdy);
    check_apart(&call, "dxdesc", tdx);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "dy", tdy, dy, 1);
    launch_output(&launch, "dx", tdx, dx, 1, 0.0);
    launch_bytes(&launch, "reserveSpace", reserveSpace, mask_bytes(tdy), VIEW_READ);
    Dropout kernel = {.probability = dropout->probability};
    return run_kernel(&call, dnn, &launch, us_dropout_backward, &kernel, sizeof kernel);
}
