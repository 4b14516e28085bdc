#include "kernels/matmul/bytes.h"

#include "kernels/matmul/bf16.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"

#include <stdlib.h>

enum { SIGN = 0x80 };

bool us_bytes_takes(DType b)
{
    return b == DTYPE_INT8 && us_bf16_takes(DTYPE_UINT16, DTYPE_UINT16);
}

static int64_t pairs_of(int64_t depth)
{
    return (depth + 1) / 2;
}

static size_t tile_bytes(int64_t lines, int64_t depth)
{
    return us_bf16_panel(DTYPE_UINT16, lines, pairs_of(depth));
}

size_t us_bytes_panel(int64_t lines, int64_t depth)
{
    return tile_bytes(lines, depth) + us_scratch_bytes(us_scratch_count(lines, pairs_of(depth)), sizeof(uint16_t));
}

/* Lines of an operand: rows of A or columns of B. */
typedef struct Lines {
    const uint8_t *data;
    int64_t count, depth, line_step, depth_step;
    uint8_t flipped; /* bits */
} Lines;

/* A line of bytes that lie `step` apart. */
US_ALWAYS_INLINE void copy_line(uint8_t *restrict to, const uint8_t *from, int64_t step, int64_t count, uint8_t flipped)
{
    for (int64_t k = 0; k < count; k++) {
        to[k] = from[k * step] ^ flipped;
    }
}

/* Two lines to a line of pairs. */
US_ALWAYS_INLINE void weave(uint8_t *restrict to, const uint8_t *first, const uint8_t *second, int64_t step, int64_t count,
                            uint8_t flipped)
{
    for (int64_t i = 0; i < count; i++) {
        to[2 * i] = first[i * step] ^ flipped;
        to[2 * i + 1] = second[i * step] ^ flipped;
    }
}

/* Pairs of the depth, side by side in a line; of an odd depth the last one is filled up with 0. */
static void pair_lines(const Lines *lines, uint8_t *to)
{
    const int64_t pairs = pairs_of(lines->depth);
    for (int64_t i = 0; i < lines->count; i++, to += 2 * pairs) {
        const uint8_t *from = lines->data + i * lines->line_step;
        to[2 * pairs - 1] = 0;
        if (lines->depth_step == 1) {
            copy_line(to, from, 1, lines->depth, lines->flipped);
        } else {
            copy_line(to, from, lines->depth_step, lines->depth, lines->flipped);
        }
    }
}

/* The same as a line of pairs for each two of the depth. */
static void pair_depth(const Lines *lines, uint8_t *to)
{
    for (int64_t k = 0; k < lines->depth; k += 2, to += 2 * lines->count) {
        const uint8_t *first = lines->data + k * lines->depth_step, *second = first + lines->depth_step;
        if (k + 1 == lines->depth) {
            for (int64_t i = 0; i < lines->count; i++) {
                to[2 * i] = first[i * lines->line_step] ^ lines->flipped;
                to[2 * i + 1] = 0;
            }
        } else if (lines->line_step == 1) {
            weave(to, first, second, 1, lines->count, lines->flipped);
        } else {
            weave(to, first, second, lines->line_step, lines->count, lines->flipped);
        }
    }
}

/* In the order in which the lines lie in memory. */
static Matrix paired(const Lines *lines, bool below, char *memory)
{
    const bool by_lines = llabs(lines->depth_step) <= llabs(lines->line_step);
    if (by_lines) {
        pair_lines(lines, (uint8_t *)memory);
    } else {
        pair_depth(lines, (uint8_t *)memory);
    }
    const int64_t line_step = by_lines ? pairs_of(lines->depth) : 1, depth_step = by_lines ? 1 : lines->count;
    return (Matrix){.data = memory, .dtype = DTYPE_UINT16, .row = below ? depth_step : line_step,
                    .column = below ? line_step : depth_step};
}

/* Sums of up to LINE_ELEMENTS columns. */
US_ALWAYS_INLINE void sum_columns(const int8_t *from, const Lines *columns, int64_t line_step, int64_t depth_step, int64_t count,
                                  int32_t *sums)
{
    if (depth_step == 1) {
        for (int64_t i = 0; i < count; i++) {
            int32_t sum = 0;
            for (int64_t k = 0; k < columns->depth; k++) {
                sum += from[i * line_step + k];
            }
            sums[i] = sum;
        }
        return;
    }
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t k = 0; k < columns->depth; k++) {
        for (int64_t i = 0; i < count; i++) {
            sums[i] += from[i * line_step + k * depth_step];
        }
    }
}

/* Less 128 times the sums of B's columns. */
static void count_offsets(const Lines *columns, int64_t *offsets)
{
    int32_t sums[LINE_ELEMENTS];
    for (int64_t begin = 0; begin < columns->count; begin += LINE_ELEMENTS) {
        const int64_t count = smaller(LINE_ELEMENTS, columns->count - begin);
        const int8_t *from = (const int8_t *)columns->data + begin * columns->line_step;
        if (columns->depth_step == 1) {
            sum_columns(from, columns, columns->line_step, 1, count, sums);
        } else if (columns->line_step == 1) {
            sum_columns(from, columns, 1, columns->depth_step, count, sums);
        } else {
            sum_columns(from, columns, columns->line_step, columns->depth_step, count, sums);
        }
        for (int64_t i = 0; i < count; i++) {
            offsets[begin + i] -= SIGN * (int64_t)sums[i];
        }
    }
}

void us_bytes_multiply(const Sizes *sizes, const Matrix *a, const Matrix *b, char *panel_a, char *panel_b, bool adds,
                       int32_t *c, int64_t *offsets)
{
    const Lines rows = {a->data, sizes->m, sizes->k, a->row, a->column, a->dtype == DTYPE_INT8 ? SIGN : 0};
    const Lines columns = {b->data, sizes->n, sizes->k, b->column, b->row, 0};
    const Matrix left = paired(&rows, false, panel_a + tile_bytes(sizes->m, sizes->k));
    const Matrix right = paired(&columns, true, panel_b + tile_bytes(sizes->n, sizes->k));
    const Sizes of_pairs = {sizes->m, sizes->n, pairs_of(sizes->k)};
    if (!adds) {
        memset(offsets, 0, (size_t)sizes->n * sizeof *offsets);
    }
    if (rows.flipped) {
        count_offsets(&columns, offsets);
    }
    const Bf16Result sums = {.sums = (float *)(void *)c, .stride = sizes->n, .adds = adds};
    us_bf16_multiply(&of_pairs, &left, &right, panel_a, panel_b, &sums);
}

void us_bytes_add(int64_t rows, int64_t columns, const int32_t *c, const int64_t *offsets, int64_t *sums)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < columns; k++) {
            sums[i * columns + k] += c[i * columns + k] + offsets[k];
        }
    }
}
