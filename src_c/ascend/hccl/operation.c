#include "ascend/hccl/operation.h"

#include "device/graph.h"
#include "kernels/reduce/reductions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- checks ---- */

Operation hccl_begin(const char *function, HcclComm comm, aclrtStream stream)
{
    Operation operation = {.call = us_call_begin(function)};
    Call *call = &operation.call;
    Explanation why;
    const Communicator *communicator = hccl_require_communicator(call, comm);
    us_require(call, stream != NULL, "stream", "null", HCCL_E_PTR, "stream is NULL");
    Stream *found = call->status == 0 ? ascend_stream(stream) : NULL;
    us_require(call, found != NULL, "stream", "dead", HCCL_E_PARA, "stream %p has been destroyed, or never existed", stream);
    us_require(call, found->context->device == communicator->device, "stream", "device", HCCL_E_PARA,
               "the stream is device %d's, the communicator device %d's", (int)found->context->device->ordinal,
               (int)communicator->device->ordinal);
    us_require(call, !us_room_has_failed(communicator->room, &why), "comm", "failed", HCCL_E_REMOTE,
               "an operation of %s has failed: %s", communicator->name, why.text);
    if (call->status == 0) {
        operation.communicator = communicator;
        operation.stream = found;
        operation.ranks = communicator->room->ranks;
        operation.rank = communicator->room->rank;
    }
    return operation;
}

HcclResult hccl_end(Operation *operation)
{
    return (HcclResult)us_call_end(&operation->call);
}

typedef struct Type {
    DType dtype;
    bool known;
} Type;

static Type type_of(HcclDataType type)
{
    static const Type types[] = {
        [HCCL_DATA_TYPE_INT8] = {DTYPE_INT8, true},     [HCCL_DATA_TYPE_INT16] = {DTYPE_INT16, true},
        [HCCL_DATA_TYPE_INT32] = {DTYPE_INT32, true},   [HCCL_DATA_TYPE_FP16] = {DTYPE_FLOAT16, true},
        [HCCL_DATA_TYPE_FP32] = {DTYPE_FLOAT32, true},  [HCCL_DATA_TYPE_INT64] = {DTYPE_INT64, true},
        [HCCL_DATA_TYPE_UINT64] = {DTYPE_UINT64, true}, [HCCL_DATA_TYPE_UINT8] = {DTYPE_UINT8, true},
        [HCCL_DATA_TYPE_UINT16] = {DTYPE_UINT16, true}, [HCCL_DATA_TYPE_UINT32] = {DTYPE_UINT32, true},
        [HCCL_DATA_TYPE_FP64] = {DTYPE_FLOAT64, true},  [HCCL_DATA_TYPE_BFP16] = {DTYPE_BFLOAT16, true},
    };
    const unsigned number = (unsigned)type;
    const bool old = ascend_product()->product == PRODUCT_910A;
    return number >= sizeof types / sizeof *types || (old && type == HCCL_DATA_TYPE_BFP16) ? (Type){DTYPE_INT8, false}
                                                                                            : types[number];
}

DType hccl_dtype(HcclDataType type)
{
    return type_of(type).dtype;
}

void hccl_require_type(Operation *operation, const char *parameter, HcclDataType type)
{
    us_require(&operation->call, type_of(type).known, parameter, "type", HCCL_E_NOT_SUPPORT,
               "%s is %d, a type that devices of the %s do not move", parameter, (int)type, ascend_product()->series);
}

void hccl_require_buffer(Operation *operation, const char *parameter, const void *buffer, uint64_t count)
{
    us_require(&operation->call, buffer != NULL || count == 0, parameter, "null", HCCL_E_PTR, "%s is NULL", parameter);
}

void hccl_require_elements(Operation *operation, const char *parameter, uint64_t count, HcclDataType type, uint64_t ranks)
{
    static const uint64_t LIMIT = (uint64_t)1 << 46; /* bytes: more than there are addresses of a device */
    const uint64_t size = us_dtype_size(hccl_dtype(type)) * ranks;
    us_require(&operation->call, count <= LIMIT / size, parameter, "range", HCCL_E_PARA,
               "%s is %llu elements of %zu bytes for each of %llu ranks: more than any memory", parameter,
               (unsigned long long)count, us_dtype_size(hccl_dtype(type)), (unsigned long long)ranks);
}

void hccl_require_rank(Operation *operation, const char *parameter, uint32_t rank)
{
    us_require(&operation->call, rank < (uint32_t)operation->ranks, parameter, "range", HCCL_E_PARA,
               "%s is %u of %d ranks", parameter, (unsigned)rank, (int)operation->ranks);
}

void hccl_require_product(Operation *operation)
{
    us_require(&operation->call, ascend_product()->product != PRODUCT_910A, "comm", "unsupported", HCCL_E_NOT_SUPPORT,
               "devices of the %s do not have this operation", ascend_product()->series);
}

void hccl_require_apart(Operation *operation, const void *sendBuf, const void *recvBuf)
{
    us_require(&operation->call, sendBuf != recvBuf || sendBuf == NULL, "recvBuf", "same", HCCL_E_PARA,
               "recvBuf is sendBuf, %p; this operation needs two buffers", recvBuf);
}

/* ---- tasks ---- */

View hccl_elements(const void *buffer, uint64_t begin, uint64_t count, HcclDataType type)
{
    const DType dtype = hccl_dtype(type);
    const int64_t elements = (int64_t)count;
    return count == 0 ? us_view_absent()
                      : us_view_contiguous((char *)(uintptr_t)buffer + begin * us_dtype_size(dtype), dtype, 1, &elements);
}

/* Queues a kernel of src_c/ranks; `attributes` begin with a RankTask, whose room and caption are set. */
static void submit(Operation *operation, LaunchTask task)
{
    task.function = operation->call.function;
    task.meeting = &us_rank_meeting;
    us_require(&operation->call, us_launch_submit_task(&task, operation->stream), "stream", "resources", HCCL_E_MEMORY,
               "no host memory to queue the operation");
}

Messages hccl_messages(const Operation *operation, ChannelKind kind, int32_t limit)
{
    Messages messages = {.limit = limit};
    if (operation->call.status == 0) {
        messages.exchange = calloc(1, sizeof(Exchange) + (size_t)limit * sizeof(ExchangeItem));
        messages.views = calloc((size_t)limit, sizeof *messages.views);
    }
    if (messages.exchange == NULL || messages.views == NULL) {
        free(messages.exchange);
        free(messages.views);
        return (Messages){0};
    }
    messages.exchange->task.room = operation->communicator->room;
    messages.exchange->task.kind = kind;
    return messages;
}

void hccl_add(Messages *messages, uint32_t peer, bool sends, View view)
{
    Exchange *exchange = messages->exchange;
    if (exchange == NULL || exchange->count == messages->limit) {
        return;
    }
    messages->views[exchange->count] = view;
    exchange->items[exchange->count++] = (ExchangeItem){(int32_t)peer, sends, NO_TURN};
}

/* Names, accesses and pointers of the views, as a task wants them. */
static void send(Operation *operation, const Messages *messages)
{
    const Exchange *exchange = messages->exchange;
    const size_t count = (size_t)exchange->count;
    const View **views = calloc(count + 1, sizeof *views);
    const char **names = calloc(count + 1, sizeof *names);
    ViewAccess *access = calloc(count + 1, sizeof *access);
    if (views != NULL && names != NULL && access != NULL) {
        for (size_t i = 0; i < count; i++) {
            views[i] = &messages->views[i];
            names[i] = exchange->items[i].sends ? "sendBuf" : "recvBuf";
            access[i] = exchange->items[i].sends ? VIEW_READ : VIEW_WRITE;
        }
        submit(operation, (LaunchTask){.kernel = us_exchange_views, .view_count = exchange->count, .views = views,
                                       .names = names, .access = access, .attributes = exchange,
                                       .attribute_size = sizeof *exchange + count * sizeof *exchange->items});
    } else {
        us_refuse(&operation->call, "stream", "resources", HCCL_E_MEMORY, "no host memory to queue the operation");
    }
    free(views);
    free(names);
    free(access);
}

void hccl_send(Operation *operation, Messages *messages, const char *format, ...)
{
    if (operation->call.status == 0) {
        us_require(&operation->call, messages->exchange != NULL, "stream", "resources", HCCL_E_MEMORY,
                   "no host memory to queue the operation");
    }
    if (operation->call.status == 0) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(messages->exchange->task.caption, CAPTION_BYTES, format, arguments);
        va_end(arguments);
        send(operation, messages);
    }
    free(messages->exchange);
    free(messages->views);
}

static const Reduction *reduction_of(HcclReduceOp op)
{
    switch (op) {
    case HCCL_REDUCE_SUM:
        return &us_reduce_sum;
    case HCCL_REDUCE_PROD:
        return &us_reduce_prod;
    case HCCL_REDUCE_MAX:
        return &us_reduce_max;
    default:
        return &us_reduce_min;
    }
}

void hccl_reduce(Operation *operation, const View *parts, const View *result, HcclDataType type, HcclReduceOp op,
                 const char *caption)
{
    const View *views[RANK_LIMIT + 1];
    const char *names[RANK_LIMIT + 1];
    ViewAccess access[RANK_LIMIT + 1];
    if (operation->call.status != 0) {
        return;
    }
    RankReduction how = {.task = {.room = operation->communicator->room}, .reduction = reduction_of(op),
                         .dtype = hccl_dtype(type)};
    snprintf(how.task.caption, CAPTION_BYTES, "%s", caption);
    for (int32_t rank = 0; rank <= operation->ranks; rank++) {
        const bool last = rank == operation->ranks;
        views[rank] = last ? result : &parts[rank];
        names[rank] = last ? "recvBuf" : "sendBuf";
        access[rank] = last ? VIEW_WRITE : VIEW_READ;
    }
    submit(operation, (LaunchTask){.kernel = us_reduce_ranks, .view_count = operation->ranks + 1, .views = views,
                                   .names = names, .access = access, .attributes = &how, .attribute_size = sizeof how});
}
