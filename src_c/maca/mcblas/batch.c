#include "batch.h"

#include "device/check.h"
#include "device/graph.h"
#include "kernels/matmul/lines.h"
#include "launch/view_check.h"
#include "launch/view_use.h"
#include "maca/common/platform.h"
#include "report/grow.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Task {
    const Device *device;
    const char *function;
    Batch batch;
    double scalars[2][2];
    void *const *pointers[BATCH_TABLE_LIMIT]; /* what a table holds, opened; NULL: no table, or not known yet */
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

static void *open_bytes(const Task *task, const void *address, size_t bytes, Explanation *detail)
{
    return us_memory_open(task->device->platform, task->device, address, bytes, MEMORY_USER_KERNEL, detail);
}

static bool open_scalars(Task *task, Explanation *why)
{
    for (int i = 0; i < 2; i++) {
        const BlasScalar *scalar = &task->batch.scalars[i];
        memcpy(task->scalars[i], scalar->values[0], sizeof task->scalars[i]);
        if (scalar->on_device) {
            Explanation detail = {{0}};
            const void *data = open_bytes(task, scalar->view.data, us_dtype_size(task->batch.scale), &detail);
            if (data == NULL) {
                us_explain(why, "%s: %s", i == 0 ? "alpha" : "beta", detail.text);
                return false;
            }
            us_line_load(is_complex(task->batch.scale) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, task->scalars[i], data,
                         task->batch.scale, 1, 1, false);
        }
    }
    return true;
}

static bool is_table_used(const BatchTable *table)
{
    return table->table != NULL || table->first != NULL;
}

static size_t table_bytes(const Task *task)
{
    return (size_t)task->batch.count * sizeof(void *);
}

static bool open_tables(Task *task, Explanation *why)
{
    for (int t = 0; t < BATCH_TABLE_LIMIT; t++) {
        const BatchTable *table = &task->batch.tables[t];
        Explanation detail = {{0}};
        task->pointers[t] = table->table != NULL ? open_bytes(task, table->table, table_bytes(task), &detail) : NULL;
        if (table->table != NULL && task->pointers[t] == NULL) {
            us_explain(why, "%s, the array of pointers: %s", table->name, detail.text);
            return false;
        }
    }
    return true;
}

/* Where the program has matrix i. */
static const void *address_of(const Task *task, int t, int64_t i)
{
    const BatchTable *table = &task->batch.tables[t];
    return task->pointers[t] != NULL ? task->pointers[t][i]
                                     : (const void *)((uintptr_t)table->first + (uintptr_t)i * (uintptr_t)table->stride);
}

/* Bytes from the first to the last element of a matrix; as many as there can be where they are more, which no memory has.
 * Sizes and steps are ints, so only the bytes can be too many to count. */
static size_t reach_of(const BatchTable *table)
{
    const int64_t elements = table->rows == 0 || table->columns == 0 ? 0
                                                                     : (table->columns - 1) * table->leading + table->rows;
    int64_t bytes;
    return (size_t)(__builtin_mul_overflow(elements, (int64_t)us_dtype_size(table->dtype), &bytes) ? INT64_MAX : bytes);
}

/* What messages call matrix i. */
typedef struct MatrixName {
    char text[64];
} MatrixName;

static MatrixName name_of(const Task *task, const BatchTable *table, int64_t i)
{
    MatrixName name;
    if (table->table != NULL) {
        snprintf(name.text, sizeof name.text, "%s[%lld]", table->name, (long long)(table->entry + i));
    } else if (task->batch.count > 1) {
        snprintf(name.text, sizeof name.text, "%s of matrix %lld", table->name, (long long)i);
    } else {
        snprintf(name.text, sizeof name.text, "%s", table->name);
    }
    return name;
}

static bool open_matrices(Task *task, int t, Explanation *why)
{
    const BatchTable *table = &task->batch.tables[t];
    const size_t bytes = reach_of(table);
    for (int64_t i = 0; i < task->batch.count; i++) {
        Explanation detail = {{0}};
        char *opened = open_bytes(task, address_of(task, t, i), bytes, &detail);
        if (opened == NULL) {
            us_explain(why, "%s: %s", name_of(task, table, i).text, detail.text);
            return false;
        }
        task->addresses[i * BATCH_TABLE_LIMIT + t] = opened;
    }
    return true;
}

static bool open_all(Task *task, Explanation *why)
{
    bool opened = open_scalars(task, why) && open_tables(task, why);
    for (int t = 0; opened && t < BATCH_TABLE_LIMIT; t++) {
        opened = !is_table_used(&task->batch.tables[t]) || open_matrices(task, t, why);
    }
    return opened;
}

/* ---- for the checks ---- */

static View view_of(const Task *task, int t, int64_t i)
{
    const BatchTable *table = &task->batch.tables[t];
    return blas_matrix(address_of(task, t, i), table->dtype, table->rows, table->columns, table->leading);
}

static bool reads(const Task *task, const BatchTable *table)
{
    return (table->access & VIEW_READ) != 0 &&
           (table->factor == BATCH_FACTOR_NONE || !is_zero(task->scalars[table->factor - BATCH_FACTOR_ALPHA]));
}

static void check_inputs(const Task *task, int t)
{
    const BatchTable *table = &task->batch.tables[t];
    bool is_written = true; /* one finding tells enough */
    for (int64_t i = 0; is_written && reads(task, table) && i < task->batch.count; i++) {
        const View view = view_of(task, t, i);
        is_written = us_check_view_is_written(task->device->platform, &view, &table->part, task->function,
                                              name_of(task, table, i).text);
    }
}

static void mark_outputs(const Task *task, int t)
{
    const BatchTable *table = &task->batch.tables[t];
    for (int64_t i = 0; (table->access & VIEW_WRITE) != 0 && i < task->batch.count; i++) {
        const View view = view_of(task, t, i);
        us_check_mark_view_written(task->device->platform, &view, &table->part);
    }
}

/* UNDERSTUDY_CHECK=init: scalars, arrays of pointers and inputs must have been written, outputs count as written. */
static void check_contents(const Task *task)
{
    Platform *platform = task->device->platform;
    if ((us_checks() & CHECK_INIT) == 0) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        const View *view = &task->batch.scalars[i].view;
        if (task->batch.scalars[i].on_device) {
            us_check_view_is_written(platform, view, NULL, task->function, i == 0 ? "alpha" : "beta");
        }
    }
    for (int t = 0; t < BATCH_TABLE_LIMIT; t++) {
        if (task->pointers[t] != NULL) {
            const View view = blas_array(task->batch.tables[t].table, DTYPE_INT64, task->batch.count);
            us_check_view_is_written(platform, &view, NULL, task->function, task->batch.tables[t].name);
        }
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < BATCH_TABLE_LIMIT; t++) {
            if (is_table_used(&task->batch.tables[t])) {
                (pass == 0 ? check_inputs : mark_outputs)(task, t);
            }
        }
    }
}

typedef struct UseList {
    Use *first;
    size_t count, capacity;
    bool no_memory;
} UseList;

static void add_uses(UseList *list, const Use *uses, size_t count)
{
    for (size_t i = 0; i < count && !list->no_memory; i++) {
        Use *grown = us_grown(list->first, list->count, &list->capacity, sizeof *grown);
        list->no_memory = grown == NULL;
        if (grown != NULL) {
            list->first = grown;
            list->first[list->count++] = uses[i];
        }
    }
}

/* How many whole matrices lie at one distance, in elements, from this one on: they are one use. */
static int64_t count_even(const Task *task, int t, int64_t first, int64_t *distance)
{
    const BatchTable *table = &task->batch.tables[t];
    const int64_t element = (int64_t)us_dtype_size(table->dtype);
    const uintptr_t begin = (uintptr_t)address_of(task, t, first);
    int64_t count = 1, bytes = 0;
    while (us_part_is_all(&table->part) && first + count < task->batch.count) {
        const int64_t next = (int64_t)((uintptr_t)address_of(task, t, first + count) - begin);
        bytes = count == 1 ? next : bytes;
        if (next != count * bytes || bytes % element != 0) {
            break;
        }
        count++;
    }
    *distance = count > 1 ? bytes / element : 0;
    return count;
}

static void add_uses_of_matrices(UseList *list, const Task *task, int t)
{
    const BatchTable *table = &task->batch.tables[t];
    int64_t distance = 0, count = 0;
    for (int64_t i = 0; i < task->batch.count; i += count) {
        count = count_even(task, t, i, &distance);
        View view = view_of(task, t, i);
        if (count > 1) {
            const int64_t shape[] = {count, table->columns, table->rows}, strides[] = {distance, table->leading, 1};
            view.rank = 3;
            memcpy(view.shape, shape, sizeof shape);
            memcpy(view.strides, strides, sizeof strides);
        }
        if (!us_view_is_empty(&view) && view.data != NULL) {
            Use found[USES_OF_A_VIEW];
            add_uses(list, found, us_uses_of_view(&view, &table->part, (table->access & VIEW_WRITE) != 0, found));
        }
    }
}

/* What an array of pointers holds is known at the call unless work that the host has not waited for writes it; of a call that
 * is recorded nobody knows when it runs. */
static bool knows_pointers(Task *task, int t, bool is_recorded)
{
    const BatchTable *table = &task->batch.tables[t];
    Explanation detail = {{0}};
    const bool known = table->table != NULL && !is_recorded && us_check_is_settled(table->table, table_bytes(task));
    task->pointers[t] = known ? open_bytes(task, table->table, table_bytes(task), &detail) : NULL;
    return task->pointers[t] != NULL;
}

/* Nothing when no check wants them. */
static UseList find_uses(Task *task, const Stream *stream)
{
    UseList list = {NULL, 0, 0, false};
    const bool is_recorded = us_checks() != 0 && us_stream_is_recorded(stream);
    for (int i = 0; i < 2 && us_checks() != 0; i++) {
        const BlasScalar *scalar = &task->batch.scalars[i];
        const Use use = {.address = (uintptr_t)scalar->view.data, .size = us_dtype_size(task->batch.scale)};
        add_uses(&list, &use, scalar->on_device ? 1 : 0);
    }
    for (int t = 0; t < BATCH_TABLE_LIMIT && us_checks() != 0; t++) {
        const BatchTable *table = &task->batch.tables[t];
        const Use use = {.address = (uintptr_t)table->table, .size = table_bytes(task)};
        add_uses(&list, &use, table->table != NULL ? 1 : 0);
        if (table->first != NULL || knows_pointers(task, t, is_recorded)) {
            add_uses_of_matrices(&list, task, t);
        }
    }
    return list;
}

/* ---- the task ---- */

static DeviceFault run(void *argument, Explanation *why)
{
    Task *task = argument;
    task->addresses = calloc((size_t)task->batch.count * BATCH_TABLE_LIMIT, sizeof *task->addresses);
    if (task->addresses == NULL) {
        us_explain(why, "no host memory for the addresses of a batch");
        return DEVICE_FAULT_NO_MEMORY;
    }
    const bool opened = open_all(task, why);
    if (opened) {
        check_contents(task);
    }
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
    UseList uses = {NULL, 0, 0, false};
    Task *task = malloc(sizeof *task);
    if (task != NULL) {
        *task = (Task){.device = call->blas->device, .function = call->call.function, .batch = *batch};
        uses = find_uses(task, stream);
    }
    const bool queued = task != NULL && !uses.no_memory &&
                        maca_submit_kernel(stream, call->call.function, (Uses){uses.first, uses.count}, run, free, task);
    free(uses.first);
    if (!queued) {
        free(task);
    }
    us_require(&call->call, queued, "handle", "launch", MCBLAS_STATUS_EXECUTION_FAILED,
               "no host memory to queue the call");
}
