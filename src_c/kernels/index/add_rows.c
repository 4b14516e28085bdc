#include "kernels/index/rows.h"

#include "kernels/scratch.h"
#include "kernels/sort/radix.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <string.h>

/* Elements of a row that are added at a time: in registers, where there are as many, or in memory. Moves are counted by
 * target where no more than COUNTED targets come on one of them. */
enum { COLUMNS = 64, TILE = 512, PIECE_ELEMENTS = 8192, AHEAD = 16 /* rows */, COUNTED = 4 };

typedef struct Addition {
    char *out;
    const char *rows;
    const WideEntry *moves; /* key: the target, place: the row */
    int64_t count, width, row_bytes;
    DType dtype;
} Addition;

/* Rows lie anywhere: the processor does not see by itself which one is next. `first` and `count` in bytes. */
US_ALWAYS_INLINE void ask_for(const Addition *work, int64_t move, int64_t first, int64_t count)
{
    if (move < work->count) {
        const char *from = work->rows + (int64_t)work->moves[move].place * work->row_bytes + first;
        for (int64_t at = 0; at < count; at += CACHE_LINE_BYTES) {
            __builtin_prefetch(from + at);
        }
    }
}

#define LOOPS "kernels/index/add_rows.inc"
#include "tensor/instantiate.inc"

typedef void AddColumns(const Addition *work, int64_t first, int64_t end, int64_t column, double *sums);

#define LOOPS_OF(level) \
    {[DTYPE_FLOAT32] = add_columns_float_##level, [DTYPE_FLOAT16] = add_columns_half_##level, \
     [DTYPE_BFLOAT16] = add_columns_bfloat_##level, [DTYPE_FLOAT64] = add_columns_double_##level}

static AddColumns *const loops[LEVEL_COUNT][DTYPE_FLOAT64 + 1] = {
    [LEVEL_BASE] = LOOPS_OF(base),
#ifdef US_HAS_LEVELS
    [LEVEL_V3] = LOOPS_OF(v3),
    [LEVEL_V4] = LOOPS_OF(v4),
#endif
};

KERNEL_CLONES static void accumulate(double *sums, const double *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += row[i];
    }
}

static void add_tile(const Addition *work, int64_t first, int64_t end, int64_t column, int64_t count, double *sums)
{
    const int64_t size = (int64_t)us_dtype_size(work->dtype);
    double row[TILE];
    for (int64_t move = first; move < end; move++) {
        const int64_t at = (int64_t)work->moves[move].place * work->width + column;
        ask_for(work, move + AHEAD, column * size, count * size);
        us_load_double(row, work->rows + at * size, work->dtype, 1, count);
        accumulate(sums, row, count);
    }
}

static void add_target(const Addition *work, int64_t first, int64_t end)
{
    double sums[TILE];
    for (int64_t i = 0, count; i < work->width; i += count) {
        const int64_t left = work->width - i, at = (int64_t)work->moves[first].key * work->width + i;
        const bool in_registers = left >= COLUMNS && us_dtype_is_float(work->dtype);
        count = in_registers ? COLUMNS : left < TILE ? left : TILE;
        char *target = work->out + at * (int64_t)us_dtype_size(work->dtype);
        us_load_double(sums, target, work->dtype, 1, count);
        if (in_registers) {
            loops[us_level()][work->dtype](work, first, end, i, sums);
        } else {
            add_tile(work, first, end, i, count, sums);
        }
        us_store_double(target, work->dtype, 1, sums, count);
    }
}

static int64_t moves_of_piece(int64_t width)
{
    return width >= PIECE_ELEMENTS || width == 0 ? 1 : PIECE_ELEMENTS / width;
}

/* The targets that begin among the moves of a piece. */
static void add_piece(void *context, int64_t piece)
{
    const Addition *work = context;
    const int64_t moves = moves_of_piece(work->width), begin = piece * moves;
    const int64_t end = work->count - begin < moves ? work->count : begin + moves;
    for (int64_t first = begin; first < end;) {
        const uint64_t target = work->moves[first].key;
        int64_t behind = first + 1;
        while (behind < work->count && work->moves[behind].key == target) {
            behind++;
        }
        if (first == 0 || work->moves[first - 1].key != target) {
            add_target(work, first, behind);
        }
        first = behind;
    }
}

/* Sorted by target, in the order of the rows; NULL: no memory. */
static const WideEntry *count_by_target(const int64_t *index, int64_t count, int64_t targets, WideEntry *moves)
{
    int64_t *next = us_scratch_take((size_t)(targets + 1) * sizeof *next);
    if (!next) {
        return NULL;
    }
    memset(next, 0, (size_t)(targets + 1) * sizeof *next);
    for (int64_t k = 0; k < count; k++) {
        next[index[k] + 1]++;
    }
    for (int64_t target = 1; target < targets; target++) {
        next[target] += next[target - 1];
    }
    for (int64_t k = 0; k < count; k++) {
        moves[next[index[k]]++] = (WideEntry){(uint64_t)index[k], (uint64_t)k};
    }
    us_scratch_give_back(next);
    return moves;
}

static const WideEntry *sorted_moves(const int64_t *index, int64_t count, WideEntry *memory)
{
    int64_t highest = 0;
    bool sorted = true;
    for (int64_t k = 0; k < count; k++) {
        sorted = sorted && index[k] >= highest;
        highest = index[k] > highest ? index[k] : highest;
    }
    if (!sorted && highest / COUNTED <= count) {
        return count_by_target(index, count, highest + 1, memory);
    }
    for (int64_t k = 0; k < count; k++) {
        memory[k] = (WideEntry){(uint64_t)index[k], (uint64_t)k};
    }
    return sorted ? memory : us_sort_wide(memory, memory + count, count, 64 - __builtin_clzll((uint64_t)highest));
}

KernelStatus us_add_rows(void *out, const void *rows, const int64_t *index, int64_t count, int64_t width, DType dtype)
{
    if (dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128) { /* parts are added apart */
        return us_add_rows(out, rows, index, count, 2 * width, dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64);
    }
    WideEntry *memory = us_scratch_take(2 * (size_t)count * sizeof *memory);
    const WideEntry *moves = memory ? sorted_moves(index, count, memory) : NULL;
    if (moves) {
        Addition work = {out, rows, moves, count, width, width * (int64_t)us_dtype_size(dtype), dtype};
        const int64_t piece = moves_of_piece(width);
        us_parallel((count + piece - 1) / piece, add_piece, &work);
    }
    us_scratch_give_back(memory);
    return moves ? KERNEL_OK : KERNEL_NO_MEMORY;
}
