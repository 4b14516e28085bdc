/* The rows of grad are sorted by their index; then every row of out is summed once and written once, so the cost
 * grows with the bytes touched. Work is divided by buckets of rows and by blocks of columns: a row that most indices
 * name is shared too. */
#include "kernels/embedding.h"

#include "kernels/row_index.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <string.h>

enum {
    COLUMN_BLOCK = 1024,  /* columns of a piece of work: what stays in the first-level cache as fp32 */
    SHARED_BLOCK = 256,   /* the same in buckets with so many rows that one thread would be long alone with them */
    SHARED_PART = 32,     /* … a thirty-second of all */
    PREFETCH_BYTES = 2048, /* rows lie anywhere, so their beginnings are asked for early, some rows ahead: */
    PREFETCH_NEAR = 512,   /* … into the first-level cache, the rest into the second */
    PREFETCH_DISTANCE = 8192, PREFETCH_LEAST = 4, PREFETCH_MOST = 16, /* about so many bytes, between these numbers */
};

#define LOOPS "kernels/embedding_rows.inc"
#include "tensor/instantiate.inc"

/* Sets, or adds to, `count` fp32 sums from a row of a type (of fp64: fp64 sums). */
typedef void AddRow(void *sum, const void *row, int64_t count);
typedef struct RowLoops {
    AddRow *first, *next;
} RowLoops;

typedef struct LevelLoops {
    RowLoops single, twice, half, bfloat; /* twice: fp64, which no caller has */
} LevelLoops;

#define ROW_LOOPS(type, level) {first_row_##type##_##level, add_row_##type##_##level}
#define LEVEL_LOOPS(level) {ROW_LOOPS(float, level), ROW_LOOPS(double, level), ROW_LOOPS(half, level), \
                            ROW_LOOPS(bfloat, level)}
#ifdef US_HAS_LEVELS
static const LevelLoops loops[LEVEL_COUNT] = {LEVEL_LOOPS(base), LEVEL_LOOPS(v3), LEVEL_LOOPS(v4)};
#else
static const LevelLoops loops[LEVEL_COUNT] = {LEVEL_LOOPS(base), LEVEL_LOOPS(base), LEVEL_LOOPS(base)};
#endif

typedef struct Sum {
    const EmbeddingDenseBackward *attributes;
    const View *grad, *out;
    RowIndex index;
    int64_t columns;
    uint32_t prefetch_ahead;
    int64_t first_piece[ROW_INDEX_BUCKET_LIMIT + 1]; /* of each bucket: buckets differ in their column blocks */
    int64_t grad_row_stride; /* elements from row to row of grad, when one stride leads through all */
    bool uniform;            /* it does */
    bool direct;             /* rows of grad are added where they lie; otherwise through a buffer */
    RowLoops row;
} Sum;

static const char *grad_row(const Sum *sum, uint32_t row)
{
    const View *grad = sum->grad;
    int64_t offset = sum->uniform ? (int64_t)row * sum->grad_row_stride : 0;
    int64_t rest = row;
    for (int32_t axis = grad->rank - 2; axis >= 0 && !sum->uniform; axis--) {
        offset += rest % grad->shape[axis] * grad->strides[axis];
        rest /= grad->shape[axis];
    }
    return (const char *)grad->data + offset * (int64_t)us_dtype_size(grad->dtype);
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

KERNEL_CLONES static void scale_row(float *row, float factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] *= factor;
    }
}

static void prefetch_row(const Sum *sum, uint32_t row, int64_t column, int64_t count)
{
    int64_t element = (int64_t)us_dtype_size(sum->grad->dtype);
    const char *start = grad_row(sum, row) + column * element;
    int64_t bytes = count * element < PREFETCH_BYTES ? count * element : PREFETCH_BYTES;
    for (int64_t byte = 0; byte < bytes; byte += 64) {
        if (byte < PREFETCH_NEAR) {
            __builtin_prefetch(start + byte, 0, 3);
        } else {
            __builtin_prefetch(start + byte, 0, 2);
        }
    }
}

/* Columns first … first+count-1 of the rows at positions begin … end-1, added up into `total`. */
static void sum_rows(const Sum *sum, uint32_t begin, uint32_t end, uint32_t prefetch_end, int64_t first, int64_t count,
                     float factor, float *total)
{
    const View *grad = sum->grad;
    int64_t stride = grad->strides[grad->rank - 1];
    int64_t skip = first * stride * (int64_t)us_dtype_size(grad->dtype);
    float buffer[COLUMN_BLOCK];
    for (uint32_t i = begin; i < end; i++) {
        if (i + sum->prefetch_ahead < prefetch_end) {
            prefetch_row(sum, sum->index.positions[i + sum->prefetch_ahead], first, count);
        }
        const void *row = grad_row(sum, sum->index.positions[i]) + skip;
        if (!sum->direct) {
            us_load_float(buffer, row, grad->dtype, stride, count);
            row = buffer;
        }
        if (sum->attributes->scale_before_sum && factor != 1.0f) {
            scale_row(buffer, factor, count);
        }
        (i == begin ? sum->row.first : sum->row.next)(total, row, count);
    }
    if (factor != 1.0f && !sum->attributes->scale_before_sum) {
        scale_row(total, factor, count);
    }
}

/* How rows of grad are added: in place when they are of unit stride and need no scaling first. */
static void choose_loops(Sum *sum)
{
    const View *grad = sum->grad;
    const LevelLoops *level = &loops[us_level()];
    sum->direct = grad->strides[grad->rank - 1] == 1 && !sum->attributes->scale_before_sum;
    sum->row = sum->direct && grad->dtype == DTYPE_FLOAT16    ? level->half
               : sum->direct && grad->dtype == DTYPE_BFLOAT16 ? level->bfloat
                                                              : level->single;
}

static uint32_t rows_ahead(const Sum *sum)
{
    int64_t rows = PREFETCH_DISTANCE / (sum->columns * (int64_t)us_dtype_size(sum->grad->dtype));
    return (uint32_t)(rows < PREFETCH_LEAST ? PREFETCH_LEAST : rows > PREFETCH_MOST ? PREFETCH_MOST : rows);
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
    const View *out = sum->out;
    int64_t bucket = bucket_of_piece(sum, piece);
    int64_t block = column_block(sum, bucket);
    int64_t first = (piece - sum->first_piece[bucket]) * block;
    int64_t count = sum->columns - first < block ? sum->columns - first : block;
    bool direct = out->dtype == DTYPE_FLOAT32 && out->strides[1] == 1;
    float buffer[COLUMN_BLOCK];
    uint32_t begin = sum->index.bucket_begin[bucket];
    uint32_t bucket_end = sum->index.bucket_begin[bucket + 1];
    uint32_t last_row = row_index_first_row(&sum->index, bucket + 1);
    for (uint32_t row = row_index_first_row(&sum->index, bucket); row < last_row; row++) {
        uint32_t end = sum->index.ends[row];
        int64_t offset = (int64_t)row * out->strides[0] + first * out->strides[1];
        char *target = (char *)out->data + offset * (int64_t)us_dtype_size(out->dtype);
        float *total = direct ? (float *)target : buffer;
        if (begin == end && out->strides[1] == 1) {
            memset(target, 0, (size_t)count * us_dtype_size(out->dtype)); /* 0 is all bits 0 in every type */
            continue;
        }
        if (begin == end) {
            memset(total, 0, (size_t)count * sizeof *total);
        } else {
            float factor = sum->attributes->scale_by_frequency ? 1.0f / (float)(end - begin) : 1.0f;
            sum_rows(sum, begin, end, bucket_end, first, count, factor, total);
        }
        if (!direct) {
            us_store_float(target, out->dtype, out->strides[1], total, count);
        }
        begin = end;
    }
}

KernelStatus us_embedding_dense_backward(const View *views, const void *attributes)
{
    const EmbeddingDenseBackward *parameters = attributes;
    const View *indices = &views[1];
    Sum sum = {.attributes = parameters, .grad = &views[0], .out = &views[2], .columns = views[2].shape[1]};
    if (us_view_is_empty(sum.out)) {
        return KERNEL_OK;
    }
    /* More rows or indices would need more scratch memory than a host has. */
    if (sum.out->shape[0] >= NO_ROW || us_view_elements(indices) >= NO_ROW ||
        !row_index_make(&sum.index, indices, (uint32_t)sum.out->shape[0], parameters->padding)) {
        return KERNEL_NO_MEMORY;
    }
    sum.uniform = rows_are_uniform(sum.grad, &sum.grad_row_stride);
    sum.prefetch_ahead = rows_ahead(&sum);
    choose_loops(&sum);
    divide_work(&sum);
    us_parallel(sum.first_piece[sum.index.bucket_count], sum_piece, &sum);
    row_index_free(&sum.index);
    return KERNEL_OK;
}
