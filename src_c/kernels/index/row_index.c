#include "kernels/index/row_index.h"

#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum {
    BUCKET_BYTES_LEAST = 1 << 15, /* worth a hand-over to another thread */
    CHUNK = 1 << 14,       /* indices handled at a time; fixed, so that nothing depends on the number of threads */
    BATCH = 1024,
};

/* ---- reading indices ---- */

static const char *element_at(const View *view, int64_t number)
{
    int64_t offset = 0;
    for (int32_t axis = view->rank - 1; axis >= 0; axis--) {
        offset += number % view->shape[axis] * view->strides[axis];
        number /= view->shape[axis];
    }
    return (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* As double: exact for every value that could be a row, and what is not exact is no row either way. */
static void read_as_double(const View *indices, int64_t first, int64_t count, double *to)
{
    bool line = indices->rank == 1;
    if (line || us_view_is_contiguous(indices)) {
        us_load_double(to, element_at(indices, first), indices->dtype, line ? indices->strides[0] : 1, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        us_load_double(&to[i], element_at(indices, first + i), indices->dtype, 1, 1);
    }
}

static void read_int32(const int32_t *from, int64_t count, uint32_t rows, uint32_t *to)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = (uint32_t)from[i] < rows && from[i] >= 0 ? (uint32_t)from[i] : NO_ROW;
    }
}

static void read_int64(const int64_t *from, int64_t count, uint32_t rows, uint32_t *to)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = (uint64_t)from[i] < rows ? (uint32_t)from[i] : NO_ROW;
    }
}

void row_index_read(const View *indices, int64_t first, int64_t count, uint32_t rows, uint32_t *to)
{
    const bool is_line = us_view_is_contiguous(indices);
    if (is_line && indices->dtype == DTYPE_INT32) {
        read_int32((const int32_t *)indices->data + first, count, rows, to);
        return;
    }
    if (is_line && indices->dtype == DTYPE_INT64) {
        read_int64((const int64_t *)indices->data + first, count, rows, to);
        return;
    }
    double values[BATCH];
    for (int64_t done = 0; done < count; done += BATCH) {
        int64_t batch = count - done < BATCH ? count - done : BATCH;
        read_as_double(indices, first + done, batch, values);
        for (int64_t i = 0; i < batch; i++) {
            bool inside = values[i] > -1.0 && values[i] < (double)rows;
            to[done + i] = inside ? (uint32_t)values[i] : NO_ROW;
        }
    }
}

/* ---- sorting ---- */

typedef struct Pair {
    uint32_t row, position;
} Pair;

typedef struct Sort {
    RowIndex *index;
    const View *indices;
    int64_t count;
    uint32_t skipped;
    uint32_t *keys;
    /* Per chunk: first counts, then where the next pair of each bucket goes. */
    uint32_t (*cursors)[ROW_INDEX_BUCKET_LIMIT];
    Pair *pairs;                       /* by bucket, in the order of their positions */
} Sort;

static int64_t chunk_size(const Sort *sort, int64_t chunk)
{
    int64_t left = sort->count - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static void count_chunk(void *context, int64_t chunk)
{
    Sort *sort = context;
    uint32_t *keys = sort->keys + chunk * CHUNK;
    uint32_t *counts = sort->cursors[chunk];
    uint32_t shift = sort->index->bucket_shift;
    memset(counts, 0, sizeof sort->cursors[chunk]);
    int64_t size = chunk_size(sort, chunk);
    row_index_read(sort->indices, chunk * CHUNK, size, sort->index->rows, keys);
    for (int64_t i = 0; i < size; i++) {
        keys[i] = keys[i] == sort->skipped ? NO_ROW : keys[i];
        if (keys[i] != NO_ROW) {
            counts[keys[i] >> shift]++;
        }
    }
}

static void counts_to_cursors(Sort *sort, int64_t chunks)
{
    uint32_t next = 0;
    for (int64_t bucket = 0; bucket < sort->index->bucket_count; bucket++) {
        sort->index->bucket_begin[bucket] = next;
        for (int64_t chunk = 0; chunk < chunks; chunk++) {
            uint32_t count = sort->cursors[chunk][bucket];
            sort->cursors[chunk][bucket] = next;
            next += count;
        }
    }
    sort->index->bucket_begin[sort->index->bucket_count] = next;
}

static void distribute_chunk(void *context, int64_t chunk)
{
    Sort *sort = context;
    const uint32_t *keys = sort->keys + chunk * CHUNK;
    uint32_t *cursors = sort->cursors[chunk];
    uint32_t shift = sort->index->bucket_shift;
    int64_t size = chunk_size(sort, chunk);
    for (int64_t i = 0; i < size; i++) {
        if (keys[i] != NO_ROW) {
            sort->pairs[cursors[keys[i] >> shift]++] = (Pair){keys[i], (uint32_t)(chunk * CHUNK + i)};
        }
    }
}

/* A counting sort inside one bucket; `ends` serves as counter and cursor on the way. */
static void sort_bucket(void *context, int64_t bucket)
{
    Sort *sort = context;
    RowIndex *index = sort->index;
    uint32_t first_row = row_index_first_row(index, bucket);
    uint32_t last_row = row_index_first_row(index, bucket + 1);
    uint32_t begin = index->bucket_begin[bucket];
    uint32_t end = index->bucket_begin[bucket + 1];
    memset(&index->ends[first_row], 0, (last_row - first_row) * sizeof *index->ends);
    for (uint32_t i = begin; i < end; i++) {
        index->ends[sort->pairs[i].row]++;
    }
    uint32_t next = begin;
    for (uint32_t row = first_row; row < last_row; row++) {
        uint32_t count = index->ends[row];
        index->ends[row] = next;
        next += count;
    }
    for (uint32_t i = begin; i < end; i++) {
        index->positions[index->ends[sort->pairs[i].row]++] = sort->pairs[i].position;
    }
}

static uint32_t shift_for(uint32_t rows, int64_t row_bytes)
{
    uint32_t shift = 0;
    while ((rows - 1) >> shift >= ROW_INDEX_BUCKET_LIMIT || row_bytes << shift < BUCKET_BYTES_LEAST) {
        shift++;
    }
    return shift;
}

/* All arrays in one block of scratch memory. */
static bool take_memory(Sort *sort, int64_t chunks)
{
    RowIndex *index = sort->index;
    const size_t positions = us_scratch_bytes(sort->count, sizeof *index->positions);
    const size_t ends = us_scratch_bytes(index->rows, sizeof *index->ends);
    const size_t begins = us_scratch_bytes((int64_t)index->bucket_count + 1, sizeof *index->bucket_begin);
    const size_t keys = us_scratch_bytes(sort->count, sizeof *sort->keys);
    const size_t cursors = us_scratch_bytes(chunks, sizeof *sort->cursors);
    const size_t pairs = us_scratch_bytes(sort->count, sizeof *sort->pairs);
    index->scratch = us_scratch_take(positions + ends + begins + keys + cursors + pairs);
    if (index->scratch == NULL) {
        return false;
    }
    char *cursor = index->scratch;
    index->positions = us_scratch_part(&cursor, positions);
    index->ends = us_scratch_part(&cursor, ends);
    index->bucket_begin = us_scratch_part(&cursor, begins);
    sort->keys = us_scratch_part(&cursor, keys);
    sort->cursors = us_scratch_part(&cursor, cursors);
    sort->pairs = us_scratch_part(&cursor, pairs);
    return true;
}

bool row_index_make(RowIndex *index, const View *indices, uint32_t rows, int64_t row_bytes, int64_t skipped)
{
    *index = (RowIndex){.rows = rows, .bucket_shift = shift_for(rows, row_bytes)};
    index->bucket_count = (int64_t)((rows - 1) >> index->bucket_shift) + 1;
    Sort sort = {
        .index = index,
        .indices = indices,
        .count = us_view_elements(indices),
        .skipped = skipped >= 0 && skipped < (int64_t)rows ? (uint32_t)skipped : NO_ROW,
    };
    int64_t chunks = (sort.count + CHUNK - 1) / CHUNK;
    if (!take_memory(&sort, chunks)) {
        return false;
    }
    us_parallel(chunks, count_chunk, &sort);
    counts_to_cursors(&sort, chunks);
    us_parallel(chunks, distribute_chunk, &sort);
    us_parallel(index->bucket_count, sort_bucket, &sort);
    return true;
}

void row_index_free(RowIndex *index)
{
    us_scratch_give_back(index->scratch);
}
