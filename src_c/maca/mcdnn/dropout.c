/* Dropout (mcdnn 6.9, 7.4). The generator's state is in the program's device buffer, the mask in the reserve space. */
#include "check.h"
#include "kernels/random/dropout.h"

static DropoutDescriptor *descriptor(Call *call, mcdnnDropoutDescriptor_t dropoutDesc)
{
    return descriptor_of(call, "dropoutDesc", dropoutDesc, HANDLE_DROPOUT, "a dropout descriptor");
}

mcdnnStatus_t mcdnnCreateDropoutDescriptor(mcdnnDropoutDescriptor_t *dropoutDesc)
{
    return descriptor_make("mcdnnCreateDropoutDescriptor", HANDLE_DROPOUT, "dropoutDesc", dropoutDesc,
                           &(const DropoutDescriptor){0}, sizeof(DropoutDescriptor));
}

mcdnnStatus_t mcdnnDestroyDropoutDescriptor(mcdnnDropoutDescriptor_t dropoutDesc)
{
    return descriptor_end("mcdnnDestroyDropoutDescriptor", HANDLE_DROPOUT, "dropoutDesc", dropoutDesc);
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
        GIVE(dropout, source->probability);
        GIVE(states, source->states);
        GIVE(seed, source->seed);
    }
    return us_call_end(&call);
}

/* ---- either direction: from one tensor to another, by a mask that is made or read ---- */

enum { FROM, TO };

static void check_elements(Call *call, const Operand *to, const Tensor *from)
{
    us_require(call, tensor_elements(to->tensor) == tensor_elements(from), to->shape_name, "elements",
               MCDNN_STATUS_BAD_PARAM, "%s has %lld elements, the other tensor %lld", to->shape_name,
               (long long)tensor_elements(to->tensor), (long long)tensor_elements(from));
}

/* Rules 1 to 6 (mcdnn 6.9). */
static void check_dropout(Call *call, const Operand *operands, size_t reserve_bytes, const DropoutDescriptor *dropout)
{
    static const TensorRule same[] = {{SAME_TYPE, TO, FROM}, {IN_PLACE, TO, FROM}},
                            supported[] = {{FLOAT_TYPE, FROM, 0}, {APART, TO, 0}};
    check_elements(call, &operands[TO], operands[FROM].tensor);
    check_rules(call, MCDNN_STATUS_BAD_PARAM, operands, same, COUNT_OF(same));
    us_require(call, reserve_bytes >= mask_bytes(operands[FROM].tensor), "reserveSpaceSizeInBytes", "minimum",
               MCDNN_STATUS_BAD_PARAM, "reserveSpaceSizeInBytes is %zu, the mask needs %zu", reserve_bytes,
               mask_bytes(operands[FROM].tensor));
    us_require(call, dropout->states != NULL, "dropoutDesc", "states", MCDNN_STATUS_BAD_PARAM,
               "mcdnnSetDropoutDescriptor has not given dropoutDesc a buffer for the generator's state");
    check_rules(call, MCDNN_STATUS_BAD_PARAM, operands, supported, COUNT_OF(supported));
}

static mcdnnStatus_t drop(const char *function, mcdnnHandle_t handle, mcdnnDropoutDescriptor_t dropoutDesc,
                          Operand *operands, void *reserve, size_t reserve_bytes, bool forward)
{
    Call call = us_call_begin(function);
    const Dnn *dnn = check_handle(&call, handle);
    const DropoutDescriptor *dropout = descriptor(&call, dropoutDesc);
    check_shapes(&call, operands, 2);
    check_pointers(&call, operands, 2);
    check_given(&call, "reserveSpace", reserve);
    check_dropout(&call, operands, reserve_bytes, dropout);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_operand(&launch, &operands[FROM], 1);
    launch_output(&launch, operands[TO].name, operands[TO].tensor, operands[TO].data, 1, 0.0);
    launch_bytes(&launch, "reserveSpace", reserve, mask_bytes(operands[FROM].tensor), forward ? VIEW_WRITE : VIEW_READ);
    if (forward)
        launch_bytes(&launch, "states", dropout->states, DROPOUT_STATE_BYTES, VIEW_READ_WRITE);
    const Dropout kernel = {.probability = dropout->probability};
    return run_kernel(&call, dnn, &launch, forward ? us_dropout_forward : us_dropout_backward, &kernel, sizeof kernel);
}

mcdnnStatus_t mcdnnDropoutForward(
    mcdnnHandle_t handle, const mcdnnDropoutDescriptor_t dropoutDesc,
    const mcdnnTensorDescriptor_t xdesc, const void *x, const mcdnnTensorDescriptor_t ydesc,
    void *y, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    Operand operands[] = {operand("xdesc", xdesc, "x", x), operand("ydesc", ydesc, "y", y)};
    return drop("mcdnnDropoutForward", handle, dropoutDesc, operands, reserveSpace, reserveSpaceSizeInBytes, true);
}

mcdnnStatus_t mcdnnDropoutBackward(
    mcdnnHandle_t handle, const mcdnnDropoutDescriptor_t dropoutDesc,
    const mcdnnTensorDescriptor_t dydesc, const void *dy, const mcdnnTensorDescriptor_t dxdesc,
    void *dx, void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    Operand operands[] = {operand("dydesc", dydesc, "dy", dy), operand("dxdesc", dxdesc, "dx", dx)};
    return drop("mcdnnDropoutBackward", handle, dropoutDesc, operands, reserveSpace, reserveSpaceSizeInBytes, false);
}
