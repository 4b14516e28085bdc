#include "ascend/common/op_dump.h"

#include "ascend/common/dtype.h"
#include "ascend/common/dump.h"
#include "device/graph.h"
#include "report/descriptor.h"
#include "report/report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TENSOR_LIMIT = 64, CHUNK_BYTES = 1 << 20, HEADER_BYTES = 1024 };

/* ---- where bytes go: a file, or the callback ---- */

typedef struct Sink {
    FILE *file;
    int32_t (*callback)(const acldumpChunk *, int32_t);
    acldumpChunk *chunk;
} Sink;

static bool open_sink(Sink *sink, int32_t (*callback)(const acldumpChunk *, int32_t), const char *path)
{
    *sink = (Sink){.callback = callback};
    if (callback == NULL) {
        sink->file = us_file_to_write(path);
        return sink->file != NULL;
    }
    sink->chunk = calloc(1, sizeof *sink->chunk + CHUNK_BYTES);
    if (sink->chunk != NULL) {
        snprintf(sink->chunk->fileName, sizeof sink->chunk->fileName, "%.4095s", path);
        sink->chunk->offset = -1; /* behind what came before */
    }
    return sink->chunk != NULL;
}

static bool send_chunk(Sink *sink, bool last)
{
    sink->chunk->isLastChunk = last;
    /* The vendor's programs expect this length, although the data begin before the structure's end. */
    int32_t result = sink->callback(sink->chunk, (int32_t)(sizeof *sink->chunk + sink->chunk->bufLen));
    sink->chunk->bufLen = 0;
    return result == 0;
}

static bool put(Sink *sink, const void *bytes, size_t size)
{
    if (sink->file != NULL) {
        return fwrite(bytes, 1, size, sink->file) == size;
    }
    bool taken = sink->chunk->bufLen + size <= CHUNK_BYTES || send_chunk(sink, false);
    memcpy(sink->chunk->dataBuf + sink->chunk->bufLen, bytes, size);
    sink->chunk->bufLen += (uint32_t)size;
    return taken;
}

static bool close_sink(Sink *sink)
{
    bool done = sink->file != NULL ? fclose(sink->file) == 0 : send_chunk(sink, true);
    free(sink->chunk);
    return done;
}

/* ---- a tensor as NumPy's .npy ---- */

/* NumPy has no bfloat16: its bits. */
static const char *numpy_type(DType dtype)
{
    static const char *const names[DTYPE_COUNT] = {
        [DTYPE_FLOAT32] = "<f4", [DTYPE_FLOAT16] = "<f2", [DTYPE_BFLOAT16] = "<u2", [DTYPE_FLOAT64] = "<f8",
        [DTYPE_INT8] = "|i1", [DTYPE_INT16] = "<i2", [DTYPE_INT32] = "<i4", [DTYPE_INT64] = "<i8",
        [DTYPE_UINT8] = "|u1", [DTYPE_UINT16] = "<u2", [DTYPE_UINT32] = "<u4", [DTYPE_UINT64] = "<u8",
        [DTYPE_BOOL] = "|b1", [DTYPE_COMPLEX64] = "<c8", [DTYPE_COMPLEX128] = "<c16",
    };
    return names[dtype];
}

/* The format's magic, the length of the description, and that, padded to 64 bytes with a line's end. */
static bool put_header(Sink *sink, const View *view)
{
    char text[HEADER_BYTES];
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", numpy_type(view->dtype));
    for (int32_t axis = 0; axis < view->rank; axis++) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%lld,", (long long)view->shape[axis]);
    }
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    size_t padded = (10 + (size_t)length + 1 + 63) / 64 * 64 - 10;
    memset(text + length, ' ', padded - (size_t)length);
    text[padded - 1] = '\n';
    const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)padded,
                                   (unsigned char)(padded >> 8)};
    return put(sink, magic, sizeof magic) && put(sink, text, padded);
}

static bool put_elements(Sink *sink, const View *view)
{
    const size_t size = us_dtype_size(view->dtype);
    int64_t index[VIEW_RANK_LIMIT] = {0};
    bool done = true;
    for (int64_t left = us_view_elements(view); left > 0 && done; left--) {
        int64_t place = 0;
        for (int32_t axis = 0; axis < view->rank; axis++) {
            place += index[axis] * view->strides[axis];
        }
        done = put(sink, (const char *)view->data + place * (int64_t)size, size);
        for (int32_t axis = view->rank - 1; axis >= 0 && ++index[axis] == view->shape[axis]; axis--) {
            index[axis] = 0;
        }
    }
    return done;
}

static void write_tensor(int32_t (*callback)(const acldumpChunk *, int32_t), const char *path, const View *view)
{
    Sink sink;
    bool done = open_sink(&sink, callback, path);
    if (done) {
        bool written = put_header(&sink, view) && put_elements(&sink, view);
        done = close_sink(&sink) && written;
    }
    if (!done) {
        us_log(LOG_LEVEL_WARN, "%s could not be dumped", path);
    }
}

/* ---- as work of the stream: a kernel that only reads ---- */

typedef struct DumpJob {
    int32_t (*callback)(const acldumpChunk *, int32_t);
    int32_t count;
    int32_t index[TENSOR_LIMIT];
    const char *kind;
    char path[DUMP_PATH_BYTES]; /* the beginning of the files' names */
} DumpJob;

static KernelStatus dump_views(const View *views, const void *attributes)
{
    const DumpJob *job = attributes;
    for (int32_t i = 0; i < job->count; i++) {
        char path[DUMP_PATH_BYTES + 64];
        snprintf(path, sizeof path, "%s.%s.%d.npy", job->path, job->kind, (int)job->index[i]);
        write_tensor(job->callback, path, &views[i]);
    }
    return KERNEL_OK;
}

/* What the job needs of the state; false: nothing of this kind is wanted. */
static bool begin_job(DumpState *state, const Executor *plan, const Device *device, uint32_t wanted, DumpJob *job)
{
    pthread_mutex_lock(&state->lock);
    bool dumps = (atomic_load(&state->operators) & wanted) != 0;
    job->callback = state->callback;
    job->count = 0;
    job->kind = wanted == DUMP_INPUTS ? "input" : "output";
    snprintf(job->path, sizeof job->path, "%.4000s%d", state->path, (int)device->ordinal);
    if (dumps && job->callback == NULL) {
        mkdir(job->path, 0777);
    }
    size_t length = strlen(job->path);
    snprintf(job->path + length, sizeof job->path - length, "/%s.%llu", plan->function,
             (unsigned long long)atomic_load(&state->dumps));
    pthread_mutex_unlock(&state->lock);
    return dumps;
}

__attribute__((noinline)) static void dump_tensors(DumpState *state, const Executor *plan, Stream *stream, bool outputs)
{
    DumpJob job;
    const View *views[TENSOR_LIMIT];
    const char *names[TENSOR_LIMIT];
    ViewAccess access[TENSOR_LIMIT];
    bool wanted = begin_job(state, plan, stream->context->device, outputs ? DUMP_OUTPUTS : DUMP_INPUTS, &job);
    int32_t index = 0;
    for (const Operand *operand = plan->operands; wanted && operand != NULL; operand = operand->next) {
        bool of_kind = operand_number(operand, outputs) >= 0;
        if (of_kind && job.count < TENSOR_LIMIT && !us_view_is_absent(&operand->view) &&
            numpy_type(operand->view.dtype) != NULL && operand->view.data != NULL) {
            views[job.count] = &operand->view;
            names[job.count] = operand->name;
            access[job.count] = VIEW_READ;
            job.index[job.count++] = index;
        }
        index += of_kind;
    }
    LaunchTask task = {.function = plan->function, .kernel = dump_views, .view_count = job.count, .views = views,
                       .names = names, .access = access, .attributes = &job, .attribute_size = sizeof job,
                       .unrecorded = true};
    if (job.count > 0 && !us_launch_submit_task(&task, stream)) {
        us_log(LOG_LEVEL_WARN, "%s could not be dumped: no host memory", plan->function);
    }
    if (outputs) {
        atomic_fetch_add(&state->dumps, 1);
    }
}

/* The memory above is taken only when there is something to do: the program's thread may have a small stack. */
void op_dump_tensors(const Executor *plan, Stream *stream, bool outputs)
{
    DumpState *state = ascend_dump_known(stream->context->device->platform);
    if (state != NULL && atomic_load(&state->operators) != 0 && !us_stream_is_recorded(stream)) {
        dump_tensors(state, plan, stream, outputs);
    }
}

/* ---- types and shapes ---- */

static void describe_tensors(const Executor *plan, bool outputs, const char **separator, FILE *text)
{
    for (const Operand *operand = plan->operands; operand != NULL; operand = operand->next) {
        char shape[SHAPE_TEXT_SIZE];
        if (operand_number(operand, outputs) >= 0) {
            fprintf(text, "%s\n  {\"name\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\", \"format\": %d, \"shape\": %s}", *separator,
                    operand->name, outputs ? "output" : "input", acl_dtype_name(operand->dtype), (int)operand->format,
                    us_shape_text(operand->view.rank, operand->view.shape, shape, sizeof shape));
            *separator = ",";
        }
    }
}

static void describe(const Executor *plan, FILE *text)
{
    const char *separator = "";
    fprintf(text, "{\"operator\": \"%s\", \"tensors\": [", plan->function);
    describe_tensors(plan, false, &separator, text);
    describe_tensors(plan, true, &separator, text);
    fputs("\n]}\n", text);
}

/* With the lock held. */
static void remember(DumpState *state, const char *function, const char *text)
{
    for (const DumpedCall *call = state->calls; call != NULL; call = call->next) {
        if (strcmp(call->text, text) == 0) {
            return;
        }
    }
    size_t size = strlen(text) + 1;
    DumpedCall *call = malloc(sizeof *call + size);
    if (call != NULL) {
        call->function = function;
        memcpy(call->text, text, size);
        call->next = state->calls;
        state->calls = call;
    }
}

void op_dump_arguments(const Executor *plan, Platform *platform)
{
    DumpState *state = ascend_dump_known(platform);
    if (state == NULL || !atomic_load(&state->collects)) {
        return;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream != NULL) {
        describe(plan, stream);
    }
    if (stream != NULL && fclose(stream) == 0) {
        pthread_mutex_lock(&state->lock);
        remember(state, plan->function, text);
        pthread_mutex_unlock(&state->lock);
    }
    free(text);
}
