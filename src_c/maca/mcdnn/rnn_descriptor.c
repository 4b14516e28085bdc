/* Descriptors of recurrent networks (mcdnn-cnn 15). */
#include "rnn.h"

static RnnDescriptor *descriptor(Call *call, mcdnnRNNDescriptor_t rnnDesc)
{
    return descriptor_of(call, "rnnDesc", rnnDesc, HANDLE_RNN, "an RNN descriptor");
}

const RnnDescriptor *check_rnn(Call *call, mcdnnRNNDescriptor_t rnnDesc)
{
    const RnnDescriptor *rnn = descriptor(call, rnnDesc);
    us_require(call, rnn->set, "rnnDesc", "set", MCDNN_STATUS_BAD_PARAM, "rnnDesc was given no network");
    return rnn;
}

PackedNetwork rnn_network(const RnnDescriptor *rnn, const RnnData *x)
{
    static const CellKind kinds[] = {[MCDNN_RNN_RELU] = CELL_RELU, [MCDNN_RNN_TANH] = CELL_TANH,
                                     [MCDNN_LSTM] = CELL_LSTM, [MCDNN_GRU] = CELL_GRU};
    PackedNetwork network = {
        .recurrent = {.kind = kinds[rnn->cell],
                      .layers = rnn->layers,
                      .directions = rnn->direction == MCDNN_BIDIRECTIONAL ? 2 : 1,
                      .each = PARAMETER_COUNT,
                      .clips = rnn->clip == MCDNN_RNN_CLIP_MINMAX,
                      .drops_nan = rnn->clip_nan == MCDNN_NOT_PROPAGATE_NAN,
                      .lowest = rnn->lowest,
                      .highest = rnn->highest},
        .sizes = {.input = rnn->input_size, .hidden = rnn->hidden_size, .output = rnn->projection_size},
        .skips_input = rnn->input == MCDNN_SKIP_INPUT,
        .has_b_ih = rnn->bias == MCDNN_RNN_SINGLE_INP_BIAS || rnn->bias == MCDNN_RNN_DOUBLE_BIAS,
        .has_b_hh = rnn->bias == MCDNN_RNN_SINGLE_REC_BIAS || rnn->bias == MCDNN_RNN_DOUBLE_BIAS,
        .dtype = type_dtype(rnn->type)};
    if (x != NULL) {
        network.sizes.steps = x->steps;
        network.sizes.batch = x->batch;
        network.recurrent.batch_first = x->layout == MCDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED;
        network.recurrent.packed = x->layout == MCDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED && !rnn_is_uniform(x);
    }
    return network;
}

mcdnnStatus_t mcdnnCreateRNNDescriptor(mcdnnRNNDescriptor_t *rnnDesc)
{
    return descriptor_make("mcdnnCreateRNNDescriptor", HANDLE_RNN, "rnnDesc", rnnDesc,
                           &(const RnnDescriptor){0}, sizeof(RnnDescriptor));
}

mcdnnStatus_t mcdnnDestroyRNNDescriptor(mcdnnRNNDescriptor_t rnnDesc)
{
    return descriptor_end("mcdnnDestroyRNNDescriptor", HANDLE_RNN, "rnnDesc", rnnDesc);
}

/* ---- the network ---- */

static bool is_type_pair(mcdnnDataType_t type, mcdnnDataType_t precision)
{
    return type == MCDNN_DATA_HALF ? precision == MCDNN_DATA_HALF || precision == MCDNN_DATA_FLOAT
                                   : (type == MCDNN_DATA_FLOAT || type == MCDNN_DATA_DOUBLE) && precision == type;
}

/* Above what any memory holds, and with it every product of sizes within int64. */
static bool is_too_large(const RnnDescriptor *rnn)
{
    const double passes = (double)rnn->layers * (rnn->direction == MCDNN_BIDIRECTIONAL ? 2 : 1);
    const double inputs = rnn->input_size > 2.0 * rnn->projection_size ? rnn->input_size : 2.0 * rnn->projection_size;
    const double pass = 4.0 * rnn->hidden_size * (inputs + rnn->projection_size + 2) +
                        (double)rnn->hidden_size * rnn->projection_size;
    return passes * (pass > 4096 ? pass : 4096) > 0x1p40;
}

static void check_network(Call *call, const RnnDescriptor *rnn)
{
    check_range(call, "algo", rnn->algorithm, MCDNN_RNN_ALGO_STANDARD, MCDNN_RNN_ALGO_COUNT - 1);
    check_range(call, "cellMode", rnn->cell, MCDNN_RNN_RELU, MCDNN_GRU);
    check_range(call, "biasMode", rnn->bias, MCDNN_RNN_NO_BIAS, MCDNN_RNN_SINGLE_REC_BIAS);
    check_range(call, "dirMode", rnn->direction, MCDNN_UNIDIRECTIONAL, MCDNN_BIDIRECTIONAL);
    check_range(call, "inputMode", rnn->input, MCDNN_LINEAR_INPUT, MCDNN_SKIP_INPUT);
    check_range(call, "mathType", rnn->math, MCDNN_DEFAULT_MATH, MCDNN_FMA_MATH);
    check_range(call, "inputSize", rnn->input_size, 1, INT32_MAX);
    check_range(call, "hiddenSize", rnn->hidden_size, 1, INT32_MAX);
    check_range(call, "projSize", rnn->projection_size, 1, call->status == 0 ? rnn->hidden_size : 1);
    check_range(call, "numLayers", rnn->layers, 1, INT32_MAX);
    check_range(call, "auxFlags", rnn->flags, MCDNN_RNN_PADDED_IO_DISABLED, MCDNN_RNN_PADDED_IO_ENABLED);
    us_require(call, rnn->input != MCDNN_SKIP_INPUT || rnn->input_size == rnn->hidden_size, "inputSize", "skip",
               MCDNN_STATUS_BAD_PARAM, "inputSize is %d: with SKIP_INPUT it must be hiddenSize, %d",
               (int)rnn->input_size, (int)rnn->hidden_size);
    us_require(call, is_type_pair(rnn->type, rnn->precision), "dataType", "combination", MCDNN_STATUS_NOT_SUPPORTED,
               "dataType %s with mathPrec %s: supported are HALF with HALF or FLOAT, FLOAT and DOUBLE with themselves",
               type_name(rnn->type), type_name(rnn->precision));
    us_require(call, rnn->projection_size == rnn->hidden_size || rnn->cell == MCDNN_LSTM, "projSize", "cell",
               MCDNN_STATUS_NOT_SUPPORTED, "projSize is %d of %d: only an LSTM projects", (int)rnn->projection_size,
               (int)rnn->hidden_size);
    us_require(call, !is_too_large(rnn), "numLayers", "parameters", MCDNN_STATUS_NOT_SUPPORTED,
               "%d layers of hiddenSize %d: more than 2^40 parameters", (int)rnn->layers, (int)rnn->hidden_size);
}

mcdnnStatus_t mcdnnSetRNNDescriptor_v8(
    mcdnnRNNDescriptor_t rnnDesc, mcdnnRNNAlgo_t algo, mcdnnRNNMode_t cellMode, mcdnnRNNBiasMode_t biasMode,
    mcdnnDirectionMode_t dirMode, mcdnnRNNInputMode_t inputMode, mcdnnDataType_t dataType,
    mcdnnDataType_t mathPrec, mcdnnMathType_t mathType, int32_t inputSize, int32_t hiddenSize,
    int32_t projSize, int32_t numLayers, mcdnnDropoutDescriptor_t dropoutDesc, uint32_t auxFlags)
{
    Call call = us_call_begin("mcdnnSetRNNDescriptor_v8");
    RnnDescriptor *target = descriptor(&call, rnnDesc);
    if (dropoutDesc != NULL)
        descriptor_of(&call, "dropoutDesc", dropoutDesc, HANDLE_DROPOUT, "a dropout descriptor");
    RnnDescriptor wanted = {.set = true, .algorithm = algo, .cell = cellMode, .bias = biasMode, .direction = dirMode,
                            .input = inputMode, .type = dataType, .precision = mathPrec, .math = mathType,
                            .input_size = inputSize, .hidden_size = hiddenSize, .projection_size = projSize,
                            .layers = numLayers, .dropout = dropoutDesc, .flags = auxFlags};
    check_network(&call, &wanted);
    if (call.status == 0) {
        wanted.clip = target->clip;
        wanted.clip_nan = target->clip_nan;
        wanted.lowest = target->lowest;
        wanted.highest = target->highest;
        *target = wanted;
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetRNNDescriptor_v8(
    mcdnnRNNDescriptor_t rnnDesc, mcdnnRNNAlgo_t *algo, mcdnnRNNMode_t *cellMode,
    mcdnnRNNBiasMode_t *biasMode, mcdnnDirectionMode_t *dirMode, mcdnnRNNInputMode_t *inputMode,
    mcdnnDataType_t *dataType, mcdnnDataType_t *mathPrec, mcdnnMathType_t *mathType, int32_t *inputSize,
    int32_t *hiddenSize, int32_t *projSize, int32_t *numLayers, mcdnnDropoutDescriptor_t *dropoutDesc,
    uint32_t *auxFlags)
{
    Call call = us_call_begin("mcdnnGetRNNDescriptor_v8");
    const RnnDescriptor *rnn = check_rnn(&call, rnnDesc);
    if (call.status == 0) {
        GIVE(algo, rnn->algorithm);
        GIVE(cellMode, rnn->cell);
        GIVE(biasMode, rnn->bias);
        GIVE(dirMode, rnn->direction);
        GIVE(inputMode, rnn->input);
        GIVE(dataType, rnn->type);
        GIVE(mathPrec, rnn->precision);
        GIVE(mathType, rnn->math);
        GIVE(inputSize, rnn->input_size);
        GIVE(hiddenSize, rnn->hidden_size);
        GIVE(projSize, rnn->projection_size);
        GIVE(numLayers, rnn->layers);
        GIVE(dropoutDesc, rnn->dropout);
        GIVE(auxFlags, rnn->flags);
    }
    return us_call_end(&call);
}

/* ---- clipping ---- */

mcdnnStatus_t mcdnnRNNSetClip_v8(
    mcdnnRNNDescriptor_t rnnDesc, mcdnnRNNClipMode_t clipMode, mcdnnNanPropagation_t clipNanOpt, double lclip,
    double rclip)
{
    Call call = us_call_begin("mcdnnRNNSetClip_v8");
    RnnDescriptor *target = descriptor(&call, rnnDesc);
    check_range(&call, "clipMode", clipMode, MCDNN_RNN_CLIP_NONE, MCDNN_RNN_CLIP_MINMAX);
    check_range(&call, "clipNanOpt", clipNanOpt, MCDNN_NOT_PROPAGATE_NAN, MCDNN_PROPAGATE_NAN);
    us_require(&call, clipMode == MCDNN_RNN_CLIP_NONE || lclip <= rclip, "lclip", "order", MCDNN_STATUS_BAD_PARAM,
               "lclip is %g, rclip %g: they span no range", lclip, rclip);
    if (call.status == 0) {
        target->clip = clipMode;
        target->clip_nan = clipNanOpt;
        target->lowest = lclip;
        target->highest = rclip;
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnRNNGetClip_v8(
    mcdnnRNNDescriptor_t rnnDesc, mcdnnRNNClipMode_t *clipMode, mcdnnNanPropagation_t *clipNanOpt,
    double *lclip, double *rclip)
{
    Call call = us_call_begin("mcdnnRNNGetClip_v8");
    const RnnDescriptor *rnn = descriptor(&call, rnnDesc);
    if (call.status == 0) {
        GIVE(clipMode, rnn->clip);
        GIVE(clipNanOpt, rnn->clip_nan);
        GIVE(lclip, rnn->lowest);
        GIVE(rclip, rnn->highest);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnBuildRNNDynamic(mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, int miniBatch)
{
    Call call = us_call_begin("mcdnnBuildRNNDynamic");
    check_handle(&call, handle);
    check_rnn(&call, rnnDesc);
    RnnDescriptor *target = descriptor(&call, rnnDesc);
    check_range(&call, "miniBatch", miniBatch, 1, INT32_MAX);
    us_require(&call, target->algorithm == MCDNN_RNN_ALGO_PERSIST_DYNAMIC, "rnnDesc", "algorithm",
               MCDNN_STATUS_BAD_PARAM, "rnnDesc has algorithm %d, only PERSIST_DYNAMIC is built", target->algorithm);
    if (call.status == 0)
        target->built_batch = miniBatch;
    return us_call_end(&call);
}
