#include "batch.h"

#include "kernels/matmul/lines.h"
#include "maca/common/platform.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Sizes and steps are ints, so only the bytes can be too many to count. */
size_t blas_reach(int64_t rows, int64_t columns, int64_t leading, int64_t element)
{
    const int64_t elements = rows == 0 || columns == 0 ? 0 : (columns - 1) * leading + rows;
    int64_t bytes;
    return (size_t)(__builtin_mul_overflow(elements, element, &bytes) ? INT64_MAX : bytes);
}

typedef struct Task {
    const Device *device;
    Batch batch;
    double scalars[2][2];
    char **addresses; /* of matrix i: i * BATCH_TABLE_LIMIT … */
    atomic_bool no_memory, fault;
} Task;

static void run_one(void *context, int64_t index)
{
    Task *task = context;
    const KernelStatus status = task->batch.body(task->batch.attributes, task->addresses + index * BATCH_TABLE_LIMIT,
                                                 (const double (*)[2])task->scalars);
    if (status != KERNEL_OK) {
        atomic_store(status == KERNEL_FAULT ? &task->fault : &task->no_memory, true);
    }
}

static void *open_bytes(const Task *task, const char *name, const void *address, size_t bytes, Explanation *why)
{
    Explanation detail = {{0}};
    void *opened = us_memory_open(task->device->platform, task->device, address, bytes, MEMORY_USER_KERNEL, &detail);
    if (opened == NULL) {
        us_explain(why, "%s: %s", name, detail.text);
    }
    return opened;
}

static bool open_scalars(Task *task, Explanation *why)
{
    for (int i = 0; i < 2; i++) {
        const BlasScalar *scalar = &task->batch.scalars[i];
        memcpy(task->scalars[i], scalar->values[0], sizeof task->scalars[i]);
        if (scalar->on_device) {
            const void *data = open_bytes(task, i == 0 ? "alpha" : "beta", scalar->view.data,
                                          us_dtype_size(task->batch.scale), why);
            if (data == NULL) {
                return false;
            }
            us_line_load(is_complex(task->batch.scale) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, task->scalars[i], data,
                         task->batch.scale, 1, 1, false);
        }
    }
    return true;
}

static bool open_matrices(Task *task, const BatchTable *table, char **addresses, Explanation *why)
{
    void *const *pointers = NULL;
    if (table->table != NULL) {
        pointers = open_bytes(task, table->name, table->table, (size_t)task->batch.count * sizeof(void *), why);
        if (pointers == NULL) {
            return false;
        }
    }
    bool opened = true;
    for (int64_t i = 0; opened && i < task->batch.count; i++) {
        const uintptr_t address = pointers != NULL ? (uintptr_t)pointers[i]
                                                   : (uintptr_t)table->first + (uintptr_t)i * (uintptr_t)table->stride;
        addresses[i * BATCH_TABLE_LIMIT] = open_bytes(task, table->name, (const void *)address, table->bytes, why);
        opened = addresses[i * BATCH_TABLE_LIMIT] != NULL;
    }
    return opened;
}

static bool open_all(Task *task, Explanation *why)
{
    bool opened = open_scalars(task, why);
    for (int t = 0; opened && t < BATCH_TABLE_LIMIT; t++) {
        const BatchTable *table = &task->batch.tables[t];
        opened = (table->table == NULL && table->first == NULL) || open_matrices(task, table, task->addresses + t, why);
    }
    return opened;
}

static DeviceFault run(void *argument, Explanation *why)
{
    Task *task = argument;
    task->addresses = calloc((size_t)task->batch.count * BATCH_TABLE_LIMIT, sizeof *task->addresses);
    if (task->addresses == NULL) {
        us_explain(why, "no host memory for the addresses of a batch");
        return DEVICE_FAULT_NO_MEMORY;
    }
    const bool opened = open_all(task, why);
    if (opened && task->batch.count == 1) {
        run_one(task, 0); /* the product divides itself */
    } else if (opened) {
        us_parallel(task->batch.count, run_one, task);
    }
    free(task->addresses);
    if (task->fault) {
        us_explain(why, "%s", task->batch.fault);
    } else if (task->no_memory) {
        us_explain(why, "no host memory for scratch space");
    }
    return !opened || task->fault ? DEVICE_FAULT_ADDRESS : task->no_memory ? DEVICE_FAULT_NO_MEMORY : DEVICE_FAULT_NONE;
}

void blas_batch_submit(BlasCall *call, const Batch *batch)
{
    Stream *stream = blas_stream(&call->call, call->blas);
    if (stream == NULL) {
        return;
    }
    Task *task = malloc(sizeof *task);
    if (task != NULL) {
        *task = (Task){.device = call->blas->device, .batch = *batch};
    }
    const bool queued = task != NULL && maca_submit(stream, call->call.function, run, free, task);
    if (!queued) {
        free(task);
    }
    us_require(&call->call, queued, "handle", "launch", MCBLAS_STATUS_EXECUTION_FAILED,
               "no host memory to queue the call");
}
