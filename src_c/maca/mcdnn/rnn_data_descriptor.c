/* Descriptors of sequences (mcdnn-cnn 15). */
#include "report/grace.h"
#include "rnn.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static RnnDataDescriptor *descriptor(Call *call, mcdnnRNNDataDescriptor_t rnnDataDesc)
{
    return descriptor_of(call, "rnnDataDesc", rnnDataDesc, HANDLE_RNN_DATA, "an RNN data descriptor");
}

const RnnData *check_rnn_data(Call *call, const char *parameter, mcdnnRNNDataDescriptor_t handle)
{
    RnnDataDescriptor *found = descriptor_of(call, parameter, handle, HANDLE_RNN_DATA, "an RNN data descriptor");
    const RnnData *data = found != NULL ? atomic_load(&found->data) : NULL;
    us_require(call, data != NULL, parameter, "set", MCDNN_STATUS_BAD_PARAM, "%s was given no sizes", parameter);
    return data;
}

bool rnn_is_uniform(const RnnData *data)
{
    int32_t row = 0;
    while (row < data->batch && data->lengths[row] == data->steps)
        row++;
    return row == data->batch;
}

mcdnnStatus_t mcdnnCreateRNNDataDescriptor(mcdnnRNNDataDescriptor_t *rnnDataDesc)
{
    return descriptor_make("mcdnnCreateRNNDataDescriptor", HANDLE_RNN_DATA, "rnnDataDesc", rnnDataDesc,
                           &(const RnnDataDescriptor){NULL}, sizeof(RnnDataDescriptor));
}

/* Takes the new data over; NULL: none. Each of several threads buries what it has replaced itself. */
static void replace(RnnDataDescriptor *target, RnnData *data)
{
    RnnData *before = atomic_exchange(&target->data, data);
    if (before != NULL)
        us_grace_bury(free, before);
}

mcdnnStatus_t mcdnnDestroyRNNDataDescriptor(mcdnnRNNDataDescriptor_t rnnDataDesc)
{
    Call call = us_call_begin("mcdnnDestroyRNNDataDescriptor");
    RnnDataDescriptor *target = us_handle_object(rnnDataDesc, HANDLE_RNN_DATA);
    descriptor_destroy(&call, "rnnDataDesc", rnnDataDesc, HANDLE_RNN_DATA);
    if (call.status == 0 && target != NULL)
        replace(target, NULL);
    return us_call_end(&call);
}

static void check_lengths(Call *call, mcdnnRNNDataLayout_t layout, int steps, int batch, const int *lengths)
{
    for (int row = 0; call->status == 0 && row < batch; row++) {
        check_range(call, "seqLengthArray", lengths[row], 0, steps);
        us_require(call, layout != MCDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED || row == 0 ||
                       lengths[row] <= lengths[row - 1],
                   "seqLengthArray", "order", MCDNN_STATUS_BAD_PARAM,
                   "seqLengthArray holds %d after %d: packed sequences stand in descending order of length",
                   lengths[row], row > 0 ? lengths[row - 1] : 0);
    }
}

mcdnnStatus_t mcdnnSetRNNDataDescriptor(
    mcdnnRNNDataDescriptor_t rnnDataDesc, mcdnnDataType_t dataType, mcdnnRNNDataLayout_t layout,
    int maxSeqLength, int batchSize, int vectorSize, const int seqLengthArray[], void *paddingFill)
{
    Call call = us_call_begin("mcdnnSetRNNDataDescriptor");
    RnnDataDescriptor *target = descriptor(&call, rnnDataDesc);
    check_on_host(&call, "seqLengthArray", seqLengthArray);
    check_range(&call, "layout", layout, MCDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
                MCDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED);
    check_range(&call, "maxSeqLength", maxSeqLength, 1, INT32_MAX);
    check_range(&call, "batchSize", batchSize, 1, INT32_MAX);
    check_range(&call, "vectorSize", vectorSize, 1, INT32_MAX);
    us_require(&call, dataType == MCDNN_DATA_HALF || dataType == MCDNN_DATA_FLOAT || dataType == MCDNN_DATA_DOUBLE,
               "dataType", "unsupported-type", MCDNN_STATUS_NOT_SUPPORTED,
               "dataType is %s, supported are HALF, FLOAT and DOUBLE", type_name(dataType));
    us_require(&call, (double)maxSeqLength * batchSize * vectorSize <= 0x1p40, "rnnDataDesc", "elements",
               MCDNN_STATUS_NOT_SUPPORTED, "%d steps of %d vectors of %d are more than 2^40 elements", maxSeqLength,
               batchSize, vectorSize);
    check_lengths(&call, layout, maxSeqLength, batchSize, seqLengthArray);
    const size_t lengths = call.status == 0 ? (size_t)batchSize * sizeof *seqLengthArray : 0;
    RnnData *wanted = call.status == 0 ? malloc(sizeof *wanted + lengths) : NULL;
    us_require(&call, wanted != NULL, "rnnDataDesc", "memory", MCDNN_STATUS_ALLOC_FAILED,
               "no host memory for the lengths");
    if (call.status != 0)
        return us_call_end(&call);
    *wanted = (RnnData){.fills = paddingFill != NULL, .type = dataType, .layout = layout, .steps = maxSeqLength,
                        .batch = batchSize, .vector = vectorSize};
    memcpy(wanted->lengths, seqLengthArray, lengths);
    if (paddingFill != NULL)
        memcpy(wanted->padding, paddingFill, us_dtype_size(type_dtype(dataType)));
    replace(target, wanted);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetRNNDataDescriptor(
    mcdnnRNNDataDescriptor_t rnnDataDesc, mcdnnDataType_t *dataType, mcdnnRNNDataLayout_t *layout,
    int *maxSeqLength, int *batchSize, int *vectorSize, int arrayLengthRequested, int seqLengthArray[],
    void *paddingFill)
{
    Call call = us_call_begin("mcdnnGetRNNDataDescriptor");
    const RnnData *data = check_rnn_data(&call, "rnnDataDesc", rnnDataDesc);
    check_range(&call, "arrayLengthRequested", arrayLengthRequested, 0, INT32_MAX);
    if (call.status != 0)
        return us_call_end(&call);
    GIVE(dataType, data->type);
    GIVE(layout, data->layout);
    GIVE(maxSeqLength, data->steps);
    GIVE(batchSize, data->batch);
    GIVE(vectorSize, data->vector);
    for (int row = 0; seqLengthArray != NULL && row < data->batch && row < arrayLengthRequested; row++)
        seqLengthArray[row] = data->lengths[row];
    if (paddingFill != NULL && data->fills)
        memcpy(paddingFill, data->padding, us_dtype_size(type_dtype(data->type)));
    return us_call_end(&call);
}
