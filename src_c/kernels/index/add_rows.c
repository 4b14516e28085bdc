#include "kernels/index/rows.h"

#include "kernels/index/row_index.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "kernels/sort/radix.h"
#include "tensor/convert.h"
#include "tensor/lane.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <string.h>

/* Elements of a row that are added at a time: in registers, where there are COLUMNS or more, or in memory. Rows are sorted
 * by target with a number for each target where no more than COUNTED of these come on one row. */
enum { COLUMNS = 64, TILE = 512, PIECE_ROWS = 1024, AHEAD = 32 /* rows */, COUNTED = 4 };

typedef struct Addition {
    const RowSum *sum;
    const uint32_t *positions; /* of the rows, by target */
    int64_t count, row_bytes;
    int64_t tiles;             /* of a row */
    RowIndex index;            /* where each target has a number, else: */
    const WideEntry *moves;    /* key: the target, place: the row */
} Addition;

US_ALWAYS_INLINE const char *row_at(const Addition *work, int64_t k)
{
    return (const char *)work->sum->rows + (int64_t)work->positions[k] * work->row_bytes;
}

/* Rows lie anywhere: the processor does not see by itself which one is next. `first` and `count` in bytes. */
US_ALWAYS_INLINE void ask_for(const Addition *work, int64_t k, int64_t first, int64_t count)
{
    if (k < work->count) {
        const char *from = row_at(work, k) + first, *end = from + count;
        for (from -= (uintptr_t)from % CACHE_LINE_BYTES; from < end; from += CACHE_LINE_BYTES) {
            __builtin_prefetch(from);
        }
    }
}

#define LOOPS "kernels/index/add_rows.inc"
#include "tensor/instantiate.inc"

typedef void AddColumns(const Addition *work, int64_t first, int64_t end, int64_t column, int64_t count, double *sums);

static AddColumns *const loops[DTYPE_FLOAT64 + 1] = {
    [DTYPE_FLOAT32] = add_columns_float, [DTYPE_FLOAT16] = add_columns_half, [DTYPE_BFLOAT16] = add_columns_bfloat,
    [DTYPE_FLOAT64] = add_columns_double,
};

static void accumulate(double *sums, const double *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += row[i];
    }
}

static void add_tile(const Addition *work, int64_t first, int64_t end, int64_t column, int64_t count, double *sums)
{
    const DType dtype = work->sum->dtype;
    const int64_t size = (int64_t)us_dtype_size(dtype);
    double row[TILE];
    for (int64_t k = first; k < end; k++) {
        ask_for(work, k + AHEAD, column * size, count * size);
        us_load_double(row, row_at(work, k) + column * size, dtype, 1, count);
        accumulate(sums, row, count);
    }
}

/* A tile of one target: the rows at positions first … end-1. */
static void add_target(const Addition *work, int64_t target, int64_t first, int64_t end, int64_t tile)
{
    const RowSum *sum = work->sum;
    const int64_t size = (int64_t)us_dtype_size(sum->dtype);
    const int64_t behind = sum->width - tile * TILE < TILE ? sum->width : (tile + 1) * TILE;
    char *out = (char *)sum->out + target * work->row_bytes;
    double sums[TILE];
    for (int64_t i = tile * TILE, count; i < behind; i += count) {
        const int64_t left = behind - i;
        const bool in_registers = left >= COLUMNS && us_dtype_is_float(sum->dtype);
        count = in_registers ? left / COLUMNS * COLUMNS : left;
        if (sum->clears) {
            memset(sums, 0, (size_t)count * sizeof *sums);
        } else {
            us_load_double(sums, out + i * size, sum->dtype, 1, count);
        }
        if (in_registers) {
            loops[sum->dtype](work, first, end, i, count, sums);
        } else {
            add_tile(work, first, end, i, count, sums);
        }
        us_store_double(out + i * size, sum->dtype, 1, sums, count);
    }
}

/* A tile of the targets of one bucket. */
static void add_bucket(void *context, int64_t piece)
{
    const Addition *work = context;
    const RowIndex *index = &work->index;
    const int64_t bucket = piece / work->tiles, tile = piece % work->tiles;
    const uint32_t behind = row_index_first_row(index, bucket + 1);
    uint32_t begin = index->bucket_begin[bucket];
    for (uint32_t target = row_index_first_row(index, bucket); target < behind; target++) {
        if (index->ends[target] > begin || work->sum->clears) {
            add_target(work, target, begin, index->ends[target], tile);
        }
        begin = index->ends[target];
    }
}

static KernelStatus add_by_number(Addition *work)
{
    const RowSum *sum = work->sum;
    const int64_t bytes_of_target = (work->count / sum->targets + 1) * work->row_bytes;
    if (!row_index_make(&work->index, sum->index, (uint32_t)sum->targets, bytes_of_target, -1)) {
        return KERNEL_NO_MEMORY;
    }
    work->positions = work->index.positions;
    us_parallel(work->index.bucket_count * work->tiles, add_bucket, work);
    row_index_free(&work->index);
    return KERNEL_OK;
}

/* A tile of the targets that begin in a piece of the moves. */
static void add_moves(void *context, int64_t piece)
{
    const Addition *work = context;
    const int64_t begin = piece / work->tiles * PIECE_ROWS, tile = piece % work->tiles;
    const int64_t end = work->count - begin < PIECE_ROWS ? work->count : begin + PIECE_ROWS;
    for (int64_t first = begin; first < end;) {
        const uint64_t target = work->moves[first].key;
        int64_t behind = first + 1;
        while (behind < work->count && work->moves[behind].key == target) {
            behind++;
        }
        if (first == 0 || work->moves[first - 1].key != target) {
            add_target(work, (int64_t)target, first, behind, tile);
        }
        first = behind;
    }
}

static KernelStatus add_by_moves(Addition *work)
{
    const size_t count = (size_t)work->count;
    WideEntry *moves = us_scratch_array(work->count, 2 * sizeof *moves + sizeof *work->positions);
    uint32_t *positions = (uint32_t *)(void *)(moves + 2 * count);
    const View *index = work->sum->index;
    for (int64_t k = 0; moves && k < work->count; k++) {
        const int64_t target = index->dtype == DTYPE_INT32 ? ((const int32_t *)index->data)[k]
                                                           : ((const int64_t *)index->data)[k];
        moves[k] = (WideEntry){(uint64_t)target, (uint64_t)k};
    }
    work->moves = moves ? us_sort_wide(moves, moves + count, work->count, 64 - __builtin_clzll((uint64_t)work->sum->targets))
                        : NULL;
    if (work->moves) {
        for (int64_t k = 0; k < work->count; k++) {
            positions[k] = (uint32_t)work->moves[k].place;
        }
        work->positions = positions;
        us_parallel((work->count + PIECE_ROWS - 1) / PIECE_ROWS * work->tiles, add_moves, work);
    }
    us_scratch_give_back(moves);
    return work->moves ? KERNEL_OK : KERNEL_NO_MEMORY;
}

/* ---- narrow rows, in the order in which they lie ---- */

/* Elements of such a row, and converted at a time; bytes of the sums, eight for each element of the targets, of which there
 * are at most SPREAD for each row; parts of the targets. */
enum { NARROW = 64, CONVERTED = 2048, SUM_BYTES = 1 << 22, SPREAD = 8, PARTS = 8 };

typedef struct NarrowAddition {
    const RowSum *sum;
    int64_t count, row_bytes;
    int64_t of_part; /* targets */
    Lane lane; /* of the sums */
    void *sums;
} NarrowAddition;

US_ALWAYS_INLINE int64_t target_of(const View *index, int64_t k)
{
    return index->dtype == DTYPE_INT32 ? ((const int32_t *)index->data)[k] : ((const int64_t *)index->data)[k];
}

/* Rows first … first + rows - 1 to their targets, as far as these are among `targets` from begin on. */
US_ALWAYS_INLINE void add_values(const NarrowAddition *work, const void *values, int64_t first, int64_t rows, int64_t begin,
                                 int64_t targets, int64_t width, bool whole)
{
    const View *index = work->sum->index;
    double *const sums = work->sums;
    uint64_t *const whole_sums = work->sums;
    for (int64_t k = 0; k < rows; k++) {
        const int64_t target = target_of(index, first + k);
        if ((uint64_t)(target - begin) >= (uint64_t)targets) {
            continue;
        }
        for (int64_t i = 0; i < width; i++) {
            if (whole) {
                whole_sums[target * width + i] += ((const uint64_t *)values)[k * width + i];
            } else {
                sums[target * width + i] += ((const double *)values)[k * width + i];
            }
        }
    }
}

US_ALWAYS_INLINE void add_values_of_width(const NarrowAddition *work, const void *values, int64_t first, int64_t rows,
                                          int64_t begin, int64_t targets, bool whole)
{
    const int64_t width = work->sum->width;
    switch (width) {
    case 1: add_values(work, values, first, rows, begin, targets, 1, whole); break;
    case 2: add_values(work, values, first, rows, begin, targets, 2, whole); break;
    case 3: add_values(work, values, first, rows, begin, targets, 3, whole); break;
    case 4: add_values(work, values, first, rows, begin, targets, 4, whole); break;
    default: add_values(work, values, first, rows, begin, targets, width, whole);
    }
}

static void add_part(void *context, int64_t part)
{
    const NarrowAddition *work = context;
    const RowSum *sum = work->sum;
    const int64_t width = sum->width, begin = part * work->of_part, targets = smaller(work->of_part, sum->targets - begin);
    const int64_t at_once = CONVERTED / width;
    char *out = (char *)sum->out + begin * work->row_bytes, *own = (char *)work->sums + begin * width * 8;
    _Alignas(64) char values[CONVERTED * sizeof(double)];
    if (sum->clears) {
        memset(own, 0, (size_t)(targets * width) * sizeof(double));
    } else {
        us_lane_load(work->lane, own, out, sum->dtype, 1, targets * width);
    }
    for (int64_t k = 0, rows; k < work->count; k += rows) {
        rows = smaller(at_once, work->count - k);
        us_lane_load(work->lane, values, (const char *)sum->rows + k * work->row_bytes, sum->dtype, 1, rows * width);
        if (work->lane == LANE_DOUBLE) {
            add_values_of_width(work, values, k, rows, begin, targets, false);
        } else {
            add_values_of_width(work, values, k, rows, begin, targets, true);
        }
    }
    us_lane_store(work->lane, out, sum->dtype, 1, own, targets * width);
}

bool us_adds_narrow_rows(const RowSum *sum)
{
    const int64_t count = sum->index->shape[0];
    return (us_dtype_is_float(sum->dtype) || sum->wraps) && sum->width < NARROW && sum->targets / SPREAD <= count &&
           sum->targets <= SUM_BYTES / (int64_t)sizeof(double) / sum->width;
}

/* Every part goes over all rows: they are added in the same order, however many parts there are. */
static KernelStatus add_narrow(const Addition *rows)
{
    const RowSum *sum = rows->sum;
    NarrowAddition work = {.sum = sum, .count = rows->count, .row_bytes = rows->row_bytes};
    work.lane = us_lane_of(us_wide_dtype(sum->dtype));
    work.of_part = ceiling(sum->targets, smaller(us_parallel_threads(), PARTS));
    work.sums = us_scratch_array(sum->targets * sum->width, sizeof(double));
    if (work.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    us_parallel(ceiling(sum->targets, work.of_part), add_part, &work);
    us_scratch_give_back(work.sums);
    return KERNEL_OK;
}

KernelStatus us_add_rows(const RowSum *given)
{
    RowSum sum = *given;
    if (sum.dtype == DTYPE_COMPLEX64 || sum.dtype == DTYPE_COMPLEX128) { /* parts are added apart */
        sum.dtype = sum.dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
        sum.width *= 2;
    }
    const int64_t row_bytes = sum.width * (int64_t)us_dtype_size(sum.dtype), count = sum.index->shape[0];
    Addition work = {.sum = &sum, .count = count, .row_bytes = row_bytes, .tiles = (sum.width + TILE - 1) / TILE};
    if (row_bytes == 0 || sum.targets == 0) {
        return KERNEL_OK;
    }
    if (us_adds_narrow_rows(&sum)) {
        return add_narrow(&work);
    }
    if (count >= NO_ROW) { /* takes more scratch memory than a host has */
        return KERNEL_NO_MEMORY;
    }
    if (sum.targets < NO_ROW && sum.targets / COUNTED <= count) {
        return add_by_number(&work);
    }
    if (sum.clears) {
        memset(sum.out, 0, (size_t)(sum.targets * row_bytes));
    }
    return count > 0 ? add_by_moves(&work) : KERNEL_OK;
}
