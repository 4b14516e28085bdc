#include "kernels/index/embedding.h"

#include "kernels/index/row_index.h"
#include "kernels/move/past.h"
#include "tensor/parallel.h"

#include <stdatomic.h>

/* Rows are asked for AHEAD rows before they are copied: AHEAD_BYTES of them, from which on the processor sees that they are
 * read in order. */
enum { BATCH = 1024, PIECE_BYTES = 1 << 18, AHEAD = 4, AHEAD_BYTES = 512 };

typedef struct Gather {
    const View *table, *indices, *out;
    int64_t count;      /* of indices */
    int64_t piece_size; /* indices per piece of work */
    int64_t element;    /* bytes */
    bool packed;        /* rows of the table and of the result */
    bool past;          /* the caches */
    _Atomic(int64_t) outside; /* number of the first index that is not in the table; `count`: none */
} Gather;

/* The first of all, whichever thread meets one first. */
static void note_outside(Gather *gather, int64_t number)
{
    int64_t first = atomic_load_explicit(&gather->outside, memory_order_relaxed);
    while (number < first && !atomic_compare_exchange_weak(&gather->outside, &first, number)) {
    }
}

/* Elements to the place with this number, in row-major order over the view's first `rank` axes. */
static int64_t offset_of(const View *view, int32_t rank, int64_t number)
{
    int64_t offset = 0;
    for (int32_t axis = rank - 1; axis >= 0; axis--) {
        offset += number % view->shape[axis] * view->strides[axis];
        number /= view->shape[axis];
    }
    return offset;
}

static KernelStatus fault_of(const Gather *gather)
{
    const View *indices = gather->indices;
    if (gather->outside == gather->count) {
        return KERNEL_OK;
    }
    const int64_t offset = offset_of(indices, indices->rank, gather->outside);
    const int64_t index = indices->dtype == DTYPE_INT32 ? ((const int32_t *)indices->data)[offset]
                                                        : ((const int64_t *)indices->data)[offset];
    return us_kernel_fault("index %lld is outside a table of %lld rows", (long long)index,
                           (long long)gather->table->shape[0]);
}

static char *out_row(const Gather *gather, int64_t number)
{
    return (char *)gather->out->data + offset_of(gather->out, gather->indices->rank, number) * gather->element;
}

static const char *table_row(const Gather *gather, uint32_t row)
{
    return (const char *)gather->table->data + row * gather->table->strides[0] * gather->element;
}

/* The begin of a row that is copied soon. Past the caches, the copy of another row asks for it. */
static void ask_for_row(const Gather *gather, uint32_t row)
{
    const int64_t bytes = gather->table->shape[1] * gather->element;
    for (int64_t at = 0; row != NO_ROW && at < (bytes < AHEAD_BYTES ? bytes : AHEAD_BYTES); at += CACHE_LINE_BYTES) {
        __builtin_prefetch(table_row(gather, row) + at);
    }
}

static void copy_row(const Gather *gather, uint32_t row, uint32_t next, char *to)
{
    const View *table = gather->table;
    const int64_t columns = table->shape[1];
    const int64_t element = gather->element;
    const int64_t to_step = gather->out->strides[gather->out->rank - 1] * element;
    const int64_t from_step = table->strides[1] * element;
    if (row == NO_ROW) {
        for (int64_t i = 0; i < columns; i++) {
            memset(to + i * to_step, 0, (size_t)element);
        }
        return;
    }
    const char *from = table_row(gather, row);
    if (gather->past) {
        us_copy_past(to, from, (size_t)(columns * element), next == NO_ROW ? from : table_row(gather, next));
        return;
    }
    if (gather->packed) {
        memcpy(to, from, (size_t)(columns * element));
        return;
    }
    for (int64_t i = 0; i < columns; i++) {
        memcpy(to + i * to_step, from + i * from_step, (size_t)element);
    }
}

static void gather_piece(void *context, int64_t piece)
{
    Gather *gather = context;
    uint32_t rows[BATCH];
    int64_t end = (piece + 1) * gather->piece_size;
    end = end < gather->count ? end : gather->count;
    for (int64_t first = piece * gather->piece_size; first < end; first += BATCH) {
        int64_t batch = end - first < BATCH ? end - first : BATCH;
        row_index_read(gather->indices, first, batch, (uint32_t)gather->table->shape[0], rows);
        for (int64_t i = 0; i < batch; i++) {
            const uint32_t next = i + AHEAD < batch ? rows[i + AHEAD] : NO_ROW;
            if (gather->packed && !gather->past) {
                ask_for_row(gather, next);
            }
            copy_row(gather, rows[i], next, out_row(gather, first + i));
            if (rows[i] == NO_ROW) {
                note_outside(gather, first + i);
            }
        }
    }
    if (gather->past) {
        us_past_is_done();
    }
}

KernelStatus us_embedding(const View *views, const void *attributes)
{
    (void)attributes;
    Gather gather = {.table = &views[0], .indices = &views[1], .out = &views[2]};
    if (us_view_is_empty(gather.out)) {
        return KERNEL_OK;
    }
    if (gather.table->shape[0] >= NO_ROW) {
        return KERNEL_NO_MEMORY; /* row numbers have 32 bits here */
    }
    gather.count = us_view_elements(gather.indices);
    gather.outside = gather.count;
    gather.element = (int64_t)us_dtype_size(gather.table->dtype);
    gather.packed = gather.table->strides[1] == 1 && gather.out->strides[gather.out->rank - 1] == 1;
    gather.past = gather.packed && us_view_elements(gather.out) * gather.element > PAST_BYTES;
    int64_t row_bytes = gather.table->shape[1] * gather.element;
    gather.piece_size = row_bytes < PIECE_BYTES ? PIECE_BYTES / row_bytes : 1;
    us_parallel((gather.count + gather.piece_size - 1) / gather.piece_size, gather_piece, &gather);
    return fault_of(&gather);
}
