#include "kernels/index/rows.h"

#include "kernels/scratch.h"
#include "kernels/sort/radix.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { PIECE_BYTES = 64 * 1024, TILE = 512, LINE_BYTES = 64, AHEAD = 8 /* rows */ };

static int64_t rows_of_piece(int64_t row_bytes)
{
    return row_bytes >= PIECE_BYTES || row_bytes == 0 ? 1 : PIECE_BYTES / row_bytes;
}

static void pick_piece(void *context, int64_t piece)
{
    const RowPick *pick = context;
    const int64_t rows = rows_of_piece(pick->row_bytes), total = pick->batches * pick->outer * pick->picks;
    const int64_t end = total - piece * rows < rows ? total : (piece + 1) * rows;
    for (int64_t row = piece * rows; row < end; row++) {
        const int64_t plane = row / pick->picks, k = row % pick->picks;
        const int64_t index = pick->index[plane / pick->outer * pick->picks + k];
        char *to = (char *)pick->out + row * pick->row_bytes;
        if (index < 0) {
            memset(to, 0, (size_t)pick->row_bytes);
        } else {
            const char *from = (const char *)pick->in + (plane * pick->axis + index) * pick->row_bytes;
            memcpy(to, from, (size_t)pick->row_bytes);
        }
    }
}

void us_pick_rows(const RowPick *pick)
{
    const int64_t total = pick->batches * pick->outer * pick->picks, rows = rows_of_piece(pick->row_bytes);
    if (pick->row_bytes > 0) {
        us_parallel((total + rows - 1) / rows, pick_piece, (void *)pick);
    }
}

void us_put_rows(void *out, const void *rows, const int64_t *index, int64_t count, int64_t row_bytes)
{
    for (int64_t k = 0; k < count; k++) {
        memcpy((char *)out + index[k] * row_bytes, (const char *)rows + k * row_bytes, (size_t)row_bytes);
    }
}

typedef struct Addition {
    char *out;
    const char *rows;
    const WideEntry *moves; /* key: the target, place: the row */
    int64_t count, width;
    DType dtype;
} Addition;

KERNEL_CLONES static void accumulate(double *sums, const double *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += row[i];
    }
}

KERNEL_CLONES static void accumulate_floats(double *sums, const float *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += (double)row[i];
    }
}

static void accumulate_elements(double *sums, const void *from, DType dtype, int64_t count)
{
    double row[TILE];
    if (dtype == DTYPE_FLOAT32) {
        accumulate_floats(sums, from, count);
        return;
    }
    us_load_double(row, from, dtype, 1, count);
    accumulate(sums, row, count);
}

/* Rows lie anywhere: the processor does not see by itself which one is next. */
static void ask_for(const Addition *work, int64_t move, int64_t first, int64_t count)
{
    const int64_t size = (int64_t)us_dtype_size(work->dtype);
    if (move < work->count) {
        const char *from = work->rows + ((int64_t)work->moves[move].place * work->width + first) * size;
        for (int64_t at = 0; at < count * size; at += LINE_BYTES) {
            __builtin_prefetch(from + at);
        }
    }
}

static void add_target(const Addition *work, int64_t first, int64_t end)
{
    const int64_t size = (int64_t)us_dtype_size(work->dtype);
    double sums[TILE];
    for (int64_t i = 0; i < work->width; i += TILE) {
        const int64_t count = work->width - i < TILE ? work->width - i : TILE;
        char *target = work->out + ((int64_t)work->moves[first].key * work->width + i) * size;
        us_load_double(sums, target, work->dtype, 1, count);
        for (int64_t k = first; k < end; k++) {
            ask_for(work, k + AHEAD, i, count);
            const char *row = work->rows + ((int64_t)work->moves[k].place * work->width + i) * size;
            accumulate_elements(sums, row, work->dtype, count);
        }
        us_store_double(target, work->dtype, 1, sums, count);
    }
}

/* The targets that begin among the moves of a piece. */
static void add_piece(void *context, int64_t piece)
{
    const Addition *work = context;
    const int64_t moves = rows_of_piece(work->width * 8), begin = piece * moves;
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

KernelStatus us_add_rows(void *out, const void *rows, const int64_t *index, int64_t count, int64_t width, DType dtype)
{
    if (dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128) { /* parts are added apart */
        return us_add_rows(out, rows, index, count, 2 * width, dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64);
    }
    WideEntry *entries = us_scratch_take(2 * (size_t)count * sizeof *entries);
    if (!entries) {
        return KERNEL_NO_MEMORY;
    }
    uint64_t highest = 0;
    bool sorted = true;
    for (int64_t k = 0; k < count; k++) {
        entries[k] = (WideEntry){(uint64_t)index[k], (uint64_t)k};
        sorted = sorted && entries[k].key >= highest;
        highest = entries[k].key > highest ? entries[k].key : highest;
    }
    const int bits = highest == 0 ? 1 : 64 - __builtin_clzll(highest);
    const WideEntry *moves = sorted ? entries : us_sort_wide(entries, entries + count, count, bits);
    if (!moves) {
        us_scratch_give_back(entries);
        return KERNEL_NO_MEMORY;
    }
    Addition work = {out, rows, moves, count, width, dtype};
    const int64_t piece = rows_of_piece(width * 8);
    us_parallel((count + piece - 1) / piece, add_piece, &work);
    us_scratch_give_back(entries);
    return KERNEL_OK;
}
