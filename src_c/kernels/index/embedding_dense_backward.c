/* The rows of grad are sorted by their index; then every row of out is summed once and written once, so the cost
 * grows with the bytes touched. Work is divided by buckets of rows and by blocks of columns: a row that most indices
 * name is shared too. */
#include "kernels/index/embedding.h"

#include "kernels/index/row_index.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <string.h>

enum {
    GROUP = 4,             /* rows of grad added at a time */
    PART_ROWS = 256,       /* rows added in fp32; more are added up in parts, and the parts in fp64 */
    COLUMN_BLOCK = 4096,   /* columns of a piece of work */
    SHARED_BLOCK = 256,    /* the same in buckets with so many rows that one thread would be long alone with them */
    SHARED_PART = 16,      /* … a sixteenth of all */
    AHEAD_BYTES = 1 << 14, /* rows lie anywhere, so they are asked for early, into the second-level cache: */
    AHEAD_LEAST = 2, AHEAD_MOST = 64,
    PAST_LEAST = 8 << 20, /* bytes of out that are more than caches keep for the next kernel: written past them, … */
    PAST_RUN = 1024,      /* … where so many lie side by side */
};

/* Up to GROUP rows of grad, to be added to each other: all pointers at the first column. */
typedef struct RowGroup {
    const void *rows[GROUP];
    const void *ahead[GROUP]; /* what is asked for meanwhile */
    int row_count;
    float before, after; /* factors of each row and of the sum */
    void *sums;   /* in the compute type */
    bool goes_on; /* adds to what is in sums already */
    void *out;    /* where the sum is written, in grad's type; NULL: back to sums */
    bool past;    /* out is on a line's boundary, and is written past the caches */
} RowGroup;

#define LOOP_FUNCTION __attribute__((unused)) static /* nobody has grad in fp64 */
#define LOOPS "kernels/index/embedding_rows.inc"
#include "tensor/instantiate.inc"

typedef struct RowLoops {
    void (*add)(const RowGroup *group, int64_t count);
    void (*clear)(void *row, size_t bytes, bool past);
    void (*end)(void); /* of what was written past the caches: other threads see it */
} RowLoops;

#define ROW_LOOPS(type) {add_rows_##type, clear_row_##type, end_rows_##type}
static const RowLoops loops[DTYPE_FLOAT64] = {[DTYPE_FLOAT32] = ROW_LOOPS(float), [DTYPE_FLOAT16] = ROW_LOOPS(half),
                                              [DTYPE_BFLOAT16] = ROW_LOOPS(bfloat)};

typedef struct Sum {
    const EmbeddingDenseBackward *attributes;
    const View *grad, *out;
    RowIndex index;
    int64_t columns;
    int64_t grad_size, out_size; /* bytes per element */
    int64_t first_piece[ROW_INDEX_BUCKET_LIMIT + 1]; /* of each bucket: buckets differ in their column blocks */
    int64_t grad_row_stride; /* elements from row to row of grad, when one stride leads through all */
    bool uniform;            /* it does */
    bool lines;              /* rows of grad are added where they lie; otherwise through a buffer */
    bool packs;              /* sums become elements of out at once; otherwise through a buffer */
    bool past;               /* out is large */
    RowLoops row;
} Sum;

/* Columns of the rows of one bucket. */
typedef struct Block {
    int64_t first, count;
    uint32_t ahead, ahead_end; /* how many rows ahead to ask for, and up to which position */
} Block;

static const char *grad_row(const Sum *sum, uint32_t row)
{
    const View *grad = sum->grad;
    int64_t offset = sum->uniform ? (int64_t)row * sum->grad_row_stride : 0;
    int64_t rest = row;
    for (int32_t axis = grad->rank - 2; axis >= 0 && !sum->uniform; axis--) {
        offset += rest % grad->shape[axis] * grad->strides[axis];
        rest /= grad->shape[axis];
    }
    return (const char *)grad->data + offset * sum->grad_size;
}

/* Whether the axes before the last are one axis: then *stride leads from row to row. */
static bool rows_are_uniform(const View *grad, int64_t *stride)
{
    *stride = 0;
    int64_t expected = 0;
    bool first = true;
    for (int32_t axis = grad->rank - 2; axis >= 0; axis--) {
        if (grad->shape[axis] == 1) {
            continue;
        }
        if (first) {
            *stride = grad->strides[axis];
        } else if (grad->strides[axis] != expected) {
            return false;
        }
        first = false;
        if (__builtin_mul_overflow(grad->strides[axis], grad->shape[axis], &expected)) {
            return false;
        }
    }
    return true;
}

static void find_rows(const Sum *sum, const Block *block, uint32_t position, RowGroup *group)
{
    const View *grad = sum->grad;
    const uint32_t *positions = sum->index.positions;
    int64_t skip = block->first * grad->strides[grad->rank - 1] * sum->grad_size;
    for (uint32_t k = 0; k < (uint32_t)group->row_count; k++) {
        uint32_t ahead = position + k + block->ahead;
        group->rows[k] = grad_row(sum, positions[position + k]) + skip;
        group->ahead[k] = ahead < block->ahead_end ? grad_row(sum, positions[ahead]) + skip : group->rows[k];
    }
}

/* Rows whose elements are apart are gathered as fp32 first. */
static void gather_rows(const View *grad, int64_t count, RowGroup *group, float (*buffer)[COLUMN_BLOCK])
{
    for (int k = 0; k < group->row_count; k++) {
        us_load_float(buffer[k], group->rows[k], grad->dtype, grad->strides[grad->rank - 1], count);
        group->rows[k] = group->ahead[k] = buffer[k];
    }
}

static bool goes_past(const Sum *sum, const char *target, int64_t elements)
{
    return sum->past && (uintptr_t)target % 64 == 0 && elements * sum->out_size >= PAST_RUN;
}

/* The rows of grad at positions begin … end-1, of which there is one at least, times `after`: to group->sums, or to out. */
static void add_positions(const Sum *sum, const Block *block, uint32_t begin, uint32_t end, RowGroup *group, float after,
                          char *out)
{
    group->after = 1.0f;
    for (uint32_t i = begin; i < end; i += GROUP) {
        bool last = end - i <= GROUP;
        group->row_count = last ? (int)(end - i) : GROUP;
        group->goes_on = i > begin;
        if (last) {
            group->after = after;
            group->out = out;
            group->past = out != NULL && goes_past(sum, out, block->count);
        }
        find_rows(sum, block, i, group);
        if (sum->lines) {
            sum->row.add(group, block->count);
        } else {
            float buffer[GROUP][COLUMN_BLOCK];
            gather_rows(sum->grad, block->count, group, buffer);
            sum->row.add(group, block->count);
        }
    }
}

/* The same for many rows: in parts, so that the last ones are not lost in a large sum. To group->sums. */
static void add_parts(const Sum *sum, const Block *block, uint32_t begin, uint32_t end, RowGroup *group, float after)
{
    double totals[COLUMN_BLOCK];
    float *sums = group->sums;
    memset(totals, 0, (size_t)block->count * sizeof *totals);
    for (uint32_t part = begin; part < end;) {
        const uint32_t part_end = end - part < PART_ROWS ? end : part + PART_ROWS;
        add_positions(sum, block, part, part_end, group, 1.0f, NULL);
        for (int64_t i = 0; i < block->count; i++) {
            totals[i] += sums[i];
        }
        part = part_end;
    }
    for (int64_t i = 0; i < block->count; i++) {
        sums[i] = (float)totals[i] * after;
    }
}

/* The columns of one row of out: the rows of grad at positions begin … end-1. */
static void sum_row(const Sum *sum, const Block *block, uint32_t begin, uint32_t end, char *target)
{
    const View *out = sum->out;
    const float factor = sum->attributes->scale_by_frequency ? 1.0f / (float)(end - begin) : 1.0f;
    const bool scales_rows = sum->attributes->scale_before_sum, in_parts = end - begin > PART_ROWS;
    const float after = scales_rows ? 1.0f : factor;
    float sums[COLUMN_BLOCK];
    RowGroup group = {.before = scales_rows ? factor : 1.0f, .sums = sums};
    if (in_parts) {
        add_parts(sum, block, begin, end, &group, after);
    } else {
        add_positions(sum, block, begin, end, &group, after, sum->packs ? target : NULL);
    }
    if (in_parts || !sum->packs) {
        us_store_float(target, out->dtype, out->strides[1], sums, block->count);
    }
}

/* Columns of neighbouring rows of out. */
static void clear_rows(const Sum *sum, const Block *block, int64_t row_count, char *target)
{
    const View *out = sum->out;
    const int64_t size = sum->out_size;
    int64_t run = block->count;
    if (out->strides[1] == 1 && out->strides[0] == run) {
        run *= row_count;
        row_count = 1;
    }
    for (int64_t row = 0; row < row_count; row++, target += out->strides[0] * size) {
        if (out->strides[1] == 1) {
            sum->row.clear(target, (size_t)(run * size), goes_past(sum, target, run));
            continue;
        }
        const float zero = 0.0f;
        for (int64_t i = 0; i < run; i++) {
            us_store_float(target + i * out->strides[1] * size, out->dtype, 1, &zero, 1);
        }
    }
}

/* How rows of grad are added, and their sums written: in place where elements are of unit stride. */
static void choose_loops(Sum *sum)
{
    const View *grad = sum->grad, *out = sum->out;
    sum->lines = grad->strides[grad->rank - 1] == 1;
    DType added = sum->lines ? grad->dtype : DTYPE_FLOAT32;
    sum->packs = out->strides[1] == 1 && out->dtype == added;
    sum->past = us_view_elements(out) >= PAST_LEAST / sum->out_size;
    sum->row = loops[added];
}

static uint32_t rows_ahead(const Sum *sum, int64_t columns)
{
    int64_t rows = AHEAD_BYTES / (columns * sum->grad_size);
    return (uint32_t)(rows < AHEAD_LEAST ? AHEAD_LEAST : rows > AHEAD_MOST ? AHEAD_MOST : rows);
}

static int64_t column_block(const Sum *sum, int64_t bucket)
{
    const uint32_t *begin = sum->index.bucket_begin;
    uint32_t all = begin[sum->index.bucket_count];
    return begin[bucket + 1] - begin[bucket] > all / SHARED_PART ? SHARED_BLOCK : COLUMN_BLOCK;
}

static void divide_work(Sum *sum)
{
    sum->first_piece[0] = 0;
    for (int64_t bucket = 0; bucket < sum->index.bucket_count; bucket++) {
        int64_t block = column_block(sum, bucket);
        sum->first_piece[bucket + 1] = sum->first_piece[bucket] + (sum->columns + block - 1) / block;
    }
}

static int64_t bucket_of_piece(const Sum *sum, int64_t piece)
{
    int64_t bucket = 0;
    while (sum->first_piece[bucket + 1] <= piece) {
        bucket++;
    }
    return bucket;
}

static void sum_piece(void *context, int64_t piece)
{
    const Sum *sum = context;
    const RowIndex *index = &sum->index;
    const View *out = sum->out;
    const int64_t bucket = bucket_of_piece(sum, piece);
    const int64_t width = column_block(sum, bucket);
    Block block = {.first = (piece - sum->first_piece[bucket]) * width};
    block.count = sum->columns - block.first < width ? sum->columns - block.first : width;
    block.ahead = rows_ahead(sum, block.count);
    block.ahead_end = index->bucket_begin[bucket + 1];
    const uint32_t last_row = row_index_first_row(index, bucket + 1);
    uint32_t begin = index->bucket_begin[bucket];
    for (uint32_t row = row_index_first_row(index, bucket), next; row < last_row; row = next) {
        int64_t offset = (int64_t)row * out->strides[0] + block.first * out->strides[1];
        char *target = (char *)out->data + offset * sum->out_size;
        next = row;
        while (next < last_row && index->ends[next] == begin) {
            next++;
        }
        if (next > row) {
            clear_rows(sum, &block, next - row, target);
        } else {
            next++;
            sum_row(sum, &block, begin, index->ends[row], target);
            begin = index->ends[row];
        }
    }
    sum->row.end();
}

KernelStatus us_embedding_dense_backward(const View *views, const void *attributes)
{
    const EmbeddingDenseBackward *parameters = attributes;
    const View *indices = &views[1];
    Sum sum = {.attributes = parameters, .grad = &views[0], .out = &views[2], .columns = views[2].shape[1]};
    if (us_view_is_empty(sum.out)) {
        return KERNEL_OK;
    }
    sum.grad_size = (int64_t)us_dtype_size(sum.grad->dtype);
    sum.out_size = (int64_t)us_dtype_size(sum.out->dtype);
    /* More rows or indices would need more scratch memory than a host has. */
    if (sum.out->shape[0] >= NO_ROW || us_view_elements(indices) >= NO_ROW ||
        !row_index_make(&sum.index, indices, (uint32_t)sum.out->shape[0],
                        sum.columns * sum.grad_size, parameters->padding)) {
        return KERNEL_NO_MEMORY;
    }
    sum.uniform = rows_are_uniform(sum.grad, &sum.grad_row_stride);
    choose_loops(&sum);
    divide_work(&sum);
    us_parallel(sum.first_piece[sum.index.bucket_count], sum_piece, &sum);
    row_index_free(&sum.index);
    return KERNEL_OK;
}
