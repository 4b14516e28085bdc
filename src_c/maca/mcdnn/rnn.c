/* Recurrent networks: sizes, parameters, forward and gradients (mcdnn-cnn 15). */
#include "rnn.h"

#include "kernels/random/dropout.h"
#include "tensor/convert.h"

#include <stdlib.h>
#include <string.h>

/* A state, h or c, with its descriptor and what of it is given: inputs, gradients, outputs. */
typedef struct RnnState {
    const char *descriptor_name;
    mcdnnTensorDescriptor_t descriptor;
    const void *pointers[4];
    const Tensor *tensor;
} RnnState;

/* One call, from its checks to its launch. */
typedef struct RnnCall {
    Call call;
    const Dnn *dnn;
    const RnnDescriptor *rnn;
    const RnnData *x, *y;
    const DropoutDescriptor *dropout; /* NULL: nothing is dropped */
    bool trains;
    PackedNetwork network;
    Launch launch;
} RnnCall;

/* ---- checks ---- */

static void open_call(RnnCall *rnn, const char *function, mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc)
{
    *rnn = (RnnCall){.call = us_call_begin(function)};
    rnn->dnn = check_handle(&rnn->call, handle);
    rnn->rnn = check_rnn(&rnn->call, rnnDesc);
}

/* Above what any memory holds; below, every product of sizes is within int64. */
static bool is_too_large(const PackedNetwork *network)
{
    const RecurrentSizes *sizes = &network->sizes;
    const double passes = (double)network->recurrent.layers * network->recurrent.directions;
    const double row = 12.0 * sizes->hidden + 2.0 * sizes->output + sizes->input;
    return passes * row * (double)sizes->steps * (double)sizes->batch > 0x1p44;
}

static void check_x(RnnCall *rnn)
{
    Call *call = &rnn->call;
    us_require(call, rnn->x->type == rnn->rnn->type, "xDesc", "type", MCDNN_STATUS_BAD_PARAM,
               "xDesc is %s, rnnDesc %s: the types must be equal", type_name(rnn->x->type), type_name(rnn->rnn->type));
    us_require(call, rnn->x->vector == rnn->rnn->input_size, "xDesc", "vector", MCDNN_STATUS_BAD_PARAM,
               "xDesc has vectors of %d, the network takes %d", (int)rnn->x->vector, (int)rnn->rnn->input_size);
    us_require(call, rnn->x->layout == MCDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED ||
                   rnn->rnn->flags == MCDNN_RNN_PADDED_IO_ENABLED,
               "xDesc", "padded", MCDNN_STATUS_NOT_SUPPORTED,
               "xDesc has an unpacked layout, which PADDED_IO_DISABLED does not allow");
    if (call->status == 0)
        rnn->network = rnn_network(rnn->rnn, rnn->x);
    us_require(call, !is_too_large(&rnn->network), "xDesc", "elements", MCDNN_STATUS_NOT_SUPPORTED,
               "%d steps of %d vectors: more than 2^44 intermediate values", (int)rnn->x->steps, (int)rnn->x->batch);
}

static bool same_sequences(const RnnData *a, const RnnData *b)
{
    return a->layout == b->layout && a->steps == b->steps && a->batch == b->batch &&
           memcmp(a->lengths, b->lengths, (size_t)a->batch * sizeof *a->lengths) == 0;
}

static void check_y(RnnCall *rnn)
{
    Call *call = &rnn->call;
    const int64_t width = rnn->network.sizes.output * rnn->network.recurrent.directions;
    us_require(call, rnn->y->type == rnn->x->type, "yDesc", "type", MCDNN_STATUS_BAD_PARAM,
               "yDesc is %s, xDesc %s: the types must be equal", type_name(rnn->y->type), type_name(rnn->x->type));
    us_require(call, rnn->y->vector == width, "yDesc", "vector", MCDNN_STATUS_BAD_PARAM,
               "yDesc has vectors of %d, the network puts out %lld", (int)rnn->y->vector, (long long)width);
    us_require(call, same_sequences(rnn->y, rnn->x), "yDesc", "sequences", MCDNN_STATUS_BAD_PARAM,
               "yDesc and xDesc differ in layout, steps, batch or lengths");
}

/* The descriptor may be left out where no pointer needs it. */
static void check_state_given(RnnCall *rnn, RnnState *state)
{
    bool needed = false;
    for (int i = 0; i < 4; i++)
        needed |= state->pointers[i] != NULL;
    if (needed || state->descriptor != NULL)
        state->tensor = check_tensor(&rnn->call, state->descriptor_name, state->descriptor);
}

static void check_state(RnnCall *rnn, const RnnState *state, int64_t size)
{
    Call *call = &rnn->call;
    const Tensor *tensor = state->tensor;
    if (call->status != 0 || tensor == NULL)
        return;
    const Tensor wanted = {.rank = 3, .sizes = {(int64_t)rnn->rnn->layers * rnn->network.recurrent.directions,
                                                rnn->x->batch, size}};
    ShapeText text, wanted_text;
    us_require(call, tensor->rank == 3 && memcmp(tensor->sizes, wanted.sizes, 3 * sizeof *wanted.sizes) == 0,
               state->descriptor_name, "sizes", MCDNN_STATUS_BAD_PARAM, "%s is %s, the network's states are %s",
               state->descriptor_name, sizes_text(tensor, text), sizes_text(&wanted, wanted_text));
    us_require(call, tensor->type == rnn->rnn->type, state->descriptor_name, "type", MCDNN_STATUS_BAD_PARAM,
               "%s is %s, rnnDesc %s: the types must be equal", state->descriptor_name, type_name(tensor->type),
               type_name(rnn->rnn->type));
    const View view = tensor_view(tensor, NULL, 3);
    us_require(call, us_view_is_contiguous(&view), state->descriptor_name, "packed", MCDNN_STATUS_NOT_SUPPORTED,
               "%s has strides %s: states must be packed", state->descriptor_name, strides_text(tensor, text));
}

static size_t weight_bytes(const PackedNetwork *network)
{
    return (size_t)us_network_elements(network) * us_dtype_size(network->dtype);
}

static void check_space(Call *call, const char *parameter, size_t bytes, size_t needed)
{
    us_require(call, bytes >= needed, parameter, "minimum", MCDNN_STATUS_BAD_PARAM, "%s is %zu, %zu are needed",
               parameter, bytes, needed);
}

static void check_spaces(RnnCall *rnn, size_t weights, size_t work, size_t reserve)
{
    Call *call = &rnn->call;
    if (call->status != 0)
        return;
    check_space(call, "weightSpaceSize", weights, weight_bytes(&rnn->network));
    check_space(call, "workSpaceSize", work, us_network_memory(&rnn->network, rnn->trains));
    check_space(call, "reserveSpaceSize", reserve, rnn->trains ? us_network_trace(&rnn->network) : 0);
    us_require(call, rnn->rnn->algorithm != MCDNN_RNN_ALGO_PERSIST_DYNAMIC || rnn->rnn->built_batch == rnn->x->batch,
               "rnnDesc", "built", MCDNN_STATUS_BAD_PARAM,
               "mcdnnBuildRNNDynamic has built the network for batches of %d (0: it was not called), xDesc has %d",
               (int)rnn->rnn->built_batch, (int)rnn->x->batch);
}

/* Between layers, in training: the descriptor that mcdnnSetRNNDescriptor_v8 was given, as it is now. */
static void check_dropout(RnnCall *rnn)
{
    Call *call = &rnn->call;
    if (call->status != 0 || !rnn->trains || rnn->rnn->layers == 1 || rnn->rnn->dropout == NULL)
        return;
    const DropoutDescriptor *dropout = us_handle_object(rnn->rnn->dropout, HANDLE_DROPOUT);
    us_require(call, dropout != NULL, "rnnDesc", "dropout", MCDNN_STATUS_BAD_PARAM,
               "the dropout descriptor of rnnDesc, %p, has been destroyed", (void *)rnn->rnn->dropout);
    if (call->status != 0 || dropout->probability == 0)
        return;
    us_require(call, dropout->states != NULL, "rnnDesc", "dropout-states", MCDNN_STATUS_BAD_PARAM,
               "the dropout descriptor of rnnDesc has no buffer for the generator's state");
    rnn->dropout = dropout;
    rnn->network.recurrent.dropout = call->status == 0 ? dropout->probability : 0;
}

/* ---- launching ---- */

static void add_sequences(RnnCall *rnn, const char *name, const RnnData *data, const void *pointer, ViewAccess access)
{
    int64_t steps_in_all = 0;
    for (int32_t row = 0; row < data->batch; row++)
        steps_in_all += data->lengths[row];
    const bool packed = rnn->network.recurrent.packed, batch_first = rnn->network.recurrent.batch_first;
    const int64_t unpacked[] = {batch_first ? data->batch : data->steps, batch_first ? data->steps : data->batch,
                                data->vector};
    const int64_t together[] = {steps_in_all, data->vector};
    const View view = us_view_contiguous((void *)(uintptr_t)pointer, rnn->network.dtype, packed ? 2 : 3,
                                         packed ? together : unpacked);
    us_launch_access(&rnn->launch, name, &view, access);
}

static void add_state(RnnCall *rnn, const char *name, const RnnState *state, const void *pointer, ViewAccess access)
{
    const bool is_there = pointer != NULL && state->tensor != NULL;
    const View view = is_there ? tensor_view(state->tensor, pointer, 3) : us_view_absent();
    us_launch_access(&rnn->launch, name, &view, access);
}

static void add_weights(RnnCall *rnn, const char *name, const void *pointer, ViewAccess access)
{
    const int64_t count = us_network_elements(&rnn->network);
    const View view = us_view_contiguous((void *)(uintptr_t)pointer, rnn->network.dtype, 1, &count);
    us_launch_access(&rnn->launch, name, &view, access);
}

static void add_work(RnnCall *rnn, const void *pointer)
{
    launch_bytes(&rnn->launch, "workSpace", pointer, us_network_memory(&rnn->network, rnn->trains), VIEW_WRITE);
}

static void add_absent(RnnCall *rnn, const char *name)
{
    const View absent = us_view_absent();
    us_launch_view(&rnn->launch, name, &absent);
}

static void add_reserve(RnnCall *rnn, const void *pointer, ViewAccess access)
{
    if (rnn->trains)
        launch_bytes(&rnn->launch, "reserveSpace", pointer, us_network_trace(&rnn->network), access);
    else
        add_absent(rnn, "reserveSpace");
}

/* The end of a call; the lengths go with the launch, as the descriptor may change before it runs. */
static mcdnnStatus_t run_network(RnnCall *rnn, Kernel *kernel)
{
    Call *call = &rnn->call;
    const bool uniform = rnn_is_uniform(rnn->x);
    const size_t lengths = uniform ? 0 : (size_t)rnn->x->batch * sizeof *rnn->x->lengths;
    NetworkRun *run = malloc(sizeof *run + lengths);
    us_require(call, run != NULL, "handle", "launch", MCDNN_STATUS_EXECUTION_FAILED, "no host memory to queue the call");
    if (run == NULL)
        return us_call_end(call);
    run->network = rnn->network;
    run->has_lengths = !uniform;
    if (!uniform)
        memcpy(run->lengths, rnn->x->lengths, lengths);
    const View *views[LAUNCH_VIEW_LIMIT];
    LaunchTask task = us_launch_task(&rnn->launch, views);
    task.kernel = kernel;
    task.attributes = run;
    task.attribute_size = sizeof *run + lengths;
    submit_task(call, rnn->dnn, &task);
    free(run);
    return us_call_end(call);
}

/* ---- sizes and parameters ---- */

mcdnnStatus_t mcdnnGetRNNTempSpaceSizes(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, mcdnnForwardMode_t fMode,
    mcdnnRNNDataDescriptor_t xDesc, size_t *workSpaceSize, size_t *reserveSpaceSize)
{
    RnnCall rnn;
    open_call(&rnn, "mcdnnGetRNNTempSpaceSizes", handle, rnnDesc);
    rnn.x = check_rnn_data(&rnn.call, "xDesc", xDesc);
    check_range(&rnn.call, "fMode", fMode, MCDNN_FWD_MODE_INFERENCE, MCDNN_FWD_MODE_TRAINING);
    check_x(&rnn);
    if (rnn.call.status == 0) {
        const bool trains = fMode == MCDNN_FWD_MODE_TRAINING;
        GIVE(workSpaceSize, us_network_memory(&rnn.network, trains));
        GIVE(reserveSpaceSize, trains ? us_network_trace(&rnn.network) : 0);
    }
    return us_call_end(&rnn.call);
}

mcdnnStatus_t mcdnnGetRNNWeightSpaceSize(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, size_t *weightSpaceSize)
{
    RnnCall rnn;
    open_call(&rnn, "mcdnnGetRNNWeightSpaceSize", handle, rnnDesc);
    check_given(&rnn.call, "weightSpaceSize", weightSpaceSize);
    if (rnn.call.status == 0) {
        rnn.network = rnn_network(rnn.rnn, NULL);
        *weightSpaceSize = weight_bytes(&rnn.network);
    }
    return us_call_end(&rnn.call);
}

/* One gate's part of a parameter whose rows are those of all gates; no columns: there is none. */
static void give_part(const PackedNetwork *network, ParameterPlace place, int64_t gate, int64_t rows, const void *space,
                      mcdnnDataType_t type, Tensor *tensor, void **address)
{
    *tensor = (Tensor){.type = type, .lanes = 1};
    *address = NULL;
    if (place.rows == 0)
        return;
    tensor->rank = 3;
    tensor->sizes[0] = 1;
    tensor->sizes[1] = rows;
    tensor->sizes[2] = place.columns;
    tensor_pack(tensor, MCDNN_TENSOR_NCHW);
    *address = (char *)(uintptr_t)space +
               (size_t)(place.first + gate * rows * place.columns) * us_dtype_size(network->dtype);
}

mcdnnStatus_t mcdnnGetRNNWeightParams(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, int32_t pseudoLayer, size_t weightSpaceSize,
    const void *weightSpace, int32_t linLayerID, mcdnnTensorDescriptor_t mDesc, void **mAddr,
    mcdnnTensorDescriptor_t bDesc, void **bAddr)
{
    RnnCall rnn;
    Call *call = &rnn.call;
    open_call(&rnn, "mcdnnGetRNNWeightParams", handle, rnnDesc);
    Tensor *matrix = descriptor_of(call, "mDesc", mDesc, HANDLE_TENSOR, "a tensor descriptor");
    Tensor *bias = descriptor_of(call, "bDesc", bDesc, HANDLE_TENSOR, "a tensor descriptor");
    check_given(call, "weightSpace", weightSpace);
    check_given(call, "mAddr", mAddr);
    check_given(call, "bAddr", bAddr);
    if (call->status != 0)
        return us_call_end(call);
    const PackedNetwork network = rnn_network(rnn.rnn, NULL);
    const int64_t passes = (int64_t)rnn.rnn->layers * network.recurrent.directions;
    const int32_t gates = us_recurrent_gates(network.recurrent.kind);
    check_range(call, "pseudoLayer", pseudoLayer, 0, passes - 1);
    check_range(call, "linLayerID", linLayerID, 0, 2 * gates - (rnn.rnn->cell != MCDNN_LSTM));
    check_space(call, "weightSpaceSize", weightSpaceSize, weight_bytes(&network));
    if (call->status != 0)
        return us_call_end(call);
    const bool projection = linLayerID == 2 * gates, recurrent = linLayerID >= gates;
    const int64_t gate = projection ? 0 : linLayerID % gates;
    const ParameterPlace none = {0};
    const int of_matrix = projection ? PARAMETER_W_HR : recurrent ? PARAMETER_W_HH : PARAMETER_W_IH;
    const int of_bias = recurrent ? PARAMETER_B_HH : PARAMETER_B_IH;
    give_part(&network, us_network_parameter(&network, pseudoLayer, of_matrix), gate,
              projection ? network.sizes.output : network.sizes.hidden, weightSpace, rnn.rnn->type, matrix, mAddr);
    give_part(&network, projection ? none : us_network_parameter(&network, pseudoLayer, of_bias), gate,
              network.sizes.hidden, weightSpace, rnn.rnn->type, bias, bAddr);
    return us_call_end(call);
}

/* ---- runs ---- */

/* x and y, and the states. */
static void check_data(RnnCall *rnn, const RnnState *h, const RnnState *c)
{
    check_x(rnn);
    check_y(rnn);
    check_state(rnn, h, rnn->network.sizes.output);
    if (c != NULL)
        check_state(rnn, c, rnn->network.sizes.hidden);
}

/* c belongs to LSTM only: with other cells nothing of it is looked at. */
static RnnState state_of_cells(const RnnCall *rnn, RnnState state)
{
    return rnn->call.status == 0 && rnn->rnn->cell == MCDNN_LSTM ? state
                                                                  : (RnnState){.descriptor_name = "cDesc"};
}

mcdnnStatus_t mcdnnRNNForward(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, mcdnnForwardMode_t fwdMode,
    const int32_t devSeqLengths[], mcdnnRNNDataDescriptor_t xDesc, const void *x,
    mcdnnRNNDataDescriptor_t yDesc, void *y, mcdnnTensorDescriptor_t hDesc, const void *hx, void *hy,
    mcdnnTensorDescriptor_t cDesc, const void *cx, void *cy, size_t weightSpaceSize, const void *weightSpace,
    size_t workSpaceSize, void *workSpace, size_t reserveSpaceSize, void *reserveSpace)
{
    (void)devSeqLengths;
    RnnCall rnn;
    Call *call = &rnn.call;
    open_call(&rnn, "mcdnnRNNForward", handle, rnnDesc);
    RnnState h = {.descriptor_name = "hDesc", .descriptor = hDesc, .pointers = {hx, hy}};
    RnnState c = state_of_cells(&rnn, (RnnState){.descriptor_name = "cDesc", .descriptor = cDesc,
                                                 .pointers = {cx, cy}});
    rnn.trains = fwdMode == MCDNN_FWD_MODE_TRAINING;
    rnn.x = check_rnn_data(call, "xDesc", xDesc);
    rnn.y = check_rnn_data(call, "yDesc", yDesc);
    check_state_given(&rnn, &h);
    check_state_given(&rnn, &c);
    check_given(call, "x", x);
    check_given(call, "y", y);
    check_given(call, "weightSpace", weightSpace);
    check_given(call, "workSpace", workSpace);
    if (rnn.trains)
        check_given(call, "reserveSpace", reserveSpace);
    check_range(call, "fwdMode", fwdMode, MCDNN_FWD_MODE_INFERENCE, MCDNN_FWD_MODE_TRAINING);
    check_data(&rnn, &h, &c);
    check_spaces(&rnn, weightSpaceSize, workSpaceSize, reserveSpaceSize);
    check_dropout(&rnn);
    if (call->status != 0)
        return us_call_end(call);

    rnn.network.recurrent.fills = rnn.y->fills;
    us_load_double(&rnn.network.recurrent.fill, rnn.y->padding, rnn.network.dtype, 1, 1);
    us_launch_begin(&rnn.launch, call->function);
    add_sequences(&rnn, "x", rnn.x, x, VIEW_READ);
    add_state(&rnn, "hx", &h, hx, VIEW_READ);
    add_state(&rnn, "cx", &c, cx, VIEW_READ);
    add_weights(&rnn, "weightSpace", weightSpace, VIEW_READ);
    add_work(&rnn, workSpace);
    if (rnn.dropout != NULL)
        launch_bytes(&rnn.launch, "states", rnn.dropout->states, DROPOUT_STATE_BYTES, VIEW_READ_WRITE);
    else
        add_absent(&rnn, "states");
    add_sequences(&rnn, "y", rnn.y, y, VIEW_WRITE);
    add_state(&rnn, "hy", &h, hy, VIEW_WRITE);
    add_state(&rnn, "cy", &c, cy, VIEW_WRITE);
    add_reserve(&rnn, reserveSpace, VIEW_WRITE);
    return run_network(&rnn, us_network_forward);
}

mcdnnStatus_t mcdnnRNNBackwardData_v8(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, const int32_t devSeqLengths[],
    mcdnnRNNDataDescriptor_t yDesc, const void *y, const void *dy, mcdnnRNNDataDescriptor_t xDesc, void *dx,
    mcdnnTensorDescriptor_t hDesc, const void *hx, const void *dhy, void *dhx, mcdnnTensorDescriptor_t cDesc,
    const void *cx, const void *dcy, void *dcx, size_t weightSpaceSize, const void *weightSpace,
    size_t workSpaceSize, void *workSpace, size_t reserveSpaceSize, void *reserveSpace)
{
    (void)devSeqLengths;
    RnnCall rnn;
    Call *call = &rnn.call;
    open_call(&rnn, "mcdnnRNNBackwardData_v8", handle, rnnDesc);
    RnnState h = {.descriptor_name = "hDesc", .descriptor = hDesc, .pointers = {hx, dhy, dhx}};
    RnnState c = state_of_cells(&rnn, (RnnState){.descriptor_name = "cDesc", .descriptor = cDesc,
                                                 .pointers = {cx, dcy, dcx}});
    rnn.trains = true;
    rnn.y = check_rnn_data(call, "yDesc", yDesc);
    rnn.x = check_rnn_data(call, "xDesc", xDesc);
    check_state_given(&rnn, &h);
    check_state_given(&rnn, &c);
    check_given(call, "y", y);
    check_given(call, "dy", dy);
    check_given(call, "dx", dx);
    check_given(call, "weightSpace", weightSpace);
    check_given(call, "workSpace", workSpace);
    check_given(call, "reserveSpace", reserveSpace);
    check_data(&rnn, &h, &c);
    check_spaces(&rnn, weightSpaceSize, workSpaceSize, reserveSpaceSize);
    check_dropout(&rnn);
    if (call->status != 0)
        return us_call_end(call);

    us_launch_begin(&rnn.launch, call->function);
    add_sequences(&rnn, "y", rnn.y, y, VIEW_READ);
    add_sequences(&rnn, "dy", rnn.y, dy, VIEW_READ);
    add_state(&rnn, "hx", &h, hx, VIEW_READ);
    add_state(&rnn, "dhy", &h, dhy, VIEW_READ);
    add_state(&rnn, "cx", &c, cx, VIEW_READ);
    add_state(&rnn, "dcy", &c, dcy, VIEW_READ);
    add_weights(&rnn, "weightSpace", weightSpace, VIEW_READ);
    add_work(&rnn, workSpace);
    add_sequences(&rnn, "dx", rnn.x, dx, VIEW_WRITE);
    add_state(&rnn, "dhx", &h, dhx, VIEW_WRITE);
    add_state(&rnn, "dcx", &c, dcx, VIEW_WRITE);
    add_reserve(&rnn, reserveSpace, VIEW_READ_WRITE);
    return run_network(&rnn, us_network_data_gradients);
}

mcdnnStatus_t mcdnnRNNBackwardWeights_v8(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, mcdnnWgradMode_t addGrad,
    const int32_t devSeqLengths[], mcdnnRNNDataDescriptor_t xDesc, const void *x,
    mcdnnTensorDescriptor_t hDesc, const void *hx, mcdnnRNNDataDescriptor_t yDesc, const void *y,
    size_t weightSpaceSize, void *dweightSpace, size_t workSpaceSize, void *workSpace,
    size_t reserveSpaceSize, void *reserveSpace)
{
    (void)devSeqLengths;
    RnnCall rnn;
    Call *call = &rnn.call;
    open_call(&rnn, "mcdnnRNNBackwardWeights_v8", handle, rnnDesc);
    RnnState h = {.descriptor_name = "hDesc", .descriptor = hDesc, .pointers = {hx}};
    rnn.trains = true;
    rnn.x = check_rnn_data(call, "xDesc", xDesc);
    check_state_given(&rnn, &h);
    rnn.y = check_rnn_data(call, "yDesc", yDesc);
    check_given(call, "x", x);
    check_given(call, "y", y);
    check_given(call, "dweightSpace", dweightSpace);
    check_given(call, "workSpace", workSpace);
    check_given(call, "reserveSpace", reserveSpace);
    check_range(call, "addGrad", addGrad, MCDNN_WGRAD_MODE_ADD, MCDNN_WGRAD_MODE_SET);
    check_data(&rnn, &h, NULL);
    check_spaces(&rnn, weightSpaceSize, workSpaceSize, reserveSpaceSize);
    check_dropout(&rnn);
    us_require(call, addGrad == MCDNN_WGRAD_MODE_ADD, "addGrad", "mode", MCDNN_STATUS_NOT_SUPPORTED,
               "addGrad is SET, gradients are only added to what is there");
    if (call->status != 0)
        return us_call_end(call);

    us_launch_begin(&rnn.launch, call->function);
    add_sequences(&rnn, "x", rnn.x, x, VIEW_READ);
    add_state(&rnn, "hx", &h, hx, VIEW_READ);
    add_sequences(&rnn, "y", rnn.y, y, VIEW_READ);
    add_reserve(&rnn, reserveSpace, VIEW_READ);
    add_work(&rnn, workSpace);
    add_weights(&rnn, "dweightSpace", dweightSpace, VIEW_READ_WRITE);
    return run_network(&rnn, us_network_parameter_gradients);
}
