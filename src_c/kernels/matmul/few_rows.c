#include "kernels/matmul/few_rows.h"

#include "kernels/matmul/bf16.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

/* Most rows, of lines of at least MIDDLE numbers, and of shorter ones; the same where whole tiles of 16-bit numbers are
 * multiplied, of lines of at least PART; shortest lines. More go to the BLAS: with AVX2 (Zen 3) it is
 * about as fast at 32 rows, with AVX-512 it takes 1.2 to 1.4 times as long. One number for every level. */
enum { MOST_ROWS = 32, MOST_OF_SHORT = 8, MOST_BESIDE_TILES = 8, MOST_OF_SHORT_BESIDE_TILES = 2, MIDDLE = 256, LEAST = 128 };

/* Numbers of a line along the depth that are converted at a time; columns, and rows, whose sums are formed together, so that they
 * stay in the nearest caches; lines that meet a row at a time; lanes of a sum along the depth; lines after those that are read, of
 * which memory is asked for. */
enum { PART = 1024, COLUMNS = 512, GROUP = 16, TOGETHER = 4, SUM_LANES = 16, AHEAD = 2 * TOGETHER };

typedef float Part __attribute__((vector_size(REGISTER_BYTES), aligned(sizeof(float)), may_alias));
enum { PART_LANES = REGISTER_BYTES / sizeof(float), PARTS = SUM_LANES / PART_LANES };

/* So that no vector lies in two lines of the cache. */
#define ALIGNED _Alignas(CACHE_LINE_BYTES)

static int64_t most_rows(const Matmul *product)
{
    const Matrix *b = &product->b;
    const int64_t line = b->row == 1 ? product->k : b->column == 1 ? product->n : 0;
    const bool beside_tiles = us_bf16_takes(product->a.dtype, b->dtype);
    const int64_t most = beside_tiles ? MOST_BESIDE_TILES : MOST_ROWS;
    const int64_t of_short = beside_tiles ? MOST_OF_SHORT_BESIDE_TILES : MOST_OF_SHORT;
    return line < LEAST ? 0 : line < (beside_tiles ? PART : MIDDLE) ? of_short : most;
}

bool us_few_rows_take(const Matmul *product)
{
    const DType of_b = product->b.dtype;
    const bool is_half = of_b == DTYPE_FLOAT16 || of_b == DTYPE_BFLOAT16;
    const int64_t least = of_b == DTYPE_FLOAT32 ? 2 : 0; /* BLAS has one row of them */
    return product->compute == DTYPE_FLOAT32 && (is_half || of_b == DTYPE_FLOAT32) && product->m >= least &&
           product->m <= most_rows(product);
}

int64_t us_few_rows_stride(int64_t depth)
{
    return ceiling(depth, SUM_LANES) * SUM_LANES;
}

static const char *number_at(const Matrix *b, int64_t row, int64_t column)
{
    return (const char *)b->data + (row * b->row + column * b->column) * (int64_t)us_dtype_size(b->dtype);
}

/* Floats of some lines, `pitch` apart. */
typedef struct Lines {
    const float *values;
    int64_t pitch;
} Lines;

static void fetch(const char *line, int64_t bytes)
{
    for (int64_t byte = 0; byte < bytes; byte += CACHE_LINE_BYTES) {
        __builtin_prefetch(line + byte);
    }
}

/* `count` numbers of some lines, `step` elements apart, of which only `left` are there: the others, and what is behind them
 * up to whole sums, are zeros. Where nothing is converted or missing, they are where they lie. */
static Lines load_lines(float *memory, const Matrix *b, const char *from, int64_t step, int64_t left, int64_t count)
{
    const int64_t pitch = us_few_rows_stride(count), size = (int64_t)us_dtype_size(b->dtype);
    const bool whole = count == pitch && left >= TOGETHER, direct = whole && b->dtype == DTYPE_FLOAT32;
    if (whole && step == pitch && !direct) {
        if (AHEAD + TOGETHER <= left) {
            fetch(from + AHEAD * step * size, TOGETHER * count * size);
        }
        us_load_float(memory, from, b->dtype, 1, TOGETHER * count);
        return (Lines){memory, pitch};
    }
    for (int64_t line = 0; line < TOGETHER; line++) {
        const char *at = from + line * step * size;
        if (line + AHEAD < left) {
            fetch(at + AHEAD * step * size, count * size);
        }
        if (!direct) {
            const int64_t here = line < left ? count : 0;
            float *to = memory + line * pitch;
            us_load_float(to, at, b->dtype, 1, here);
            memset(to + here, 0, (size_t)(pitch - here) * sizeof *to);
        }
    }
    return direct ? (Lines){(const float *)(const void *)from, step} : (Lines){memory, pitch};
}

/* ---- lines along the depth --------------------------------------------------------------------------------------- */

/* Rows whose sums stay in registers together. */
enum { ROWS_TOGETHER = REGISTER_BYTES == 64 ? 4 : 1 };

/* lanes[row][line][i % SUM_LANES] += a[row][i] * lines[line][i], of rows `step` apart */
US_ALWAYS_INLINE void add_products(float *lanes, int rows, const float *a, int64_t step, Lines lines, int64_t count)
{
    Part sums[ROWS_TOGETHER][TOGETHER][PARTS];
    memcpy(sums, lanes, (size_t)rows * sizeof sums[0]);
    for (int64_t i = 0; i < count; i += SUM_LANES) {
#pragma GCC unroll 4
        for (int part = 0; part < PARTS; part++) {
            const int64_t at = i + part * PART_LANES;
#pragma GCC unroll 4
            for (int line = 0; line < TOGETHER; line++) {
                const Part of_line = *(const Part *)(lines.values + line * lines.pitch + at);
#pragma GCC unroll 4
                for (int row = 0; row < rows; row++) {
                    sums[row][line][part] += *(const Part *)(a + row * step + at) * of_line;
                }
            }
        }
    }
    memcpy(lanes, sums, (size_t)rows * sizeof sums[0]);
}

static void add_to_rows(float *lanes, int64_t rows, const float *a, int64_t step, Lines lines, int64_t count)
{
    int64_t row = 0;
    for (; row + ROWS_TOGETHER <= rows; row += ROWS_TOGETHER) {
        add_products(lanes + row * TOGETHER * SUM_LANES, ROWS_TOGETHER, a + row * step, step, lines, count);
    }
    for (; row < rows; row++) {
        add_products(lanes + row * TOGETHER * SUM_LANES, 1, a + row * step, step, lines, count);
    }
}

/* to[line]: the sum of its lanes, halved again and again. */
US_ALWAYS_INLINE void add_lanes(const float *lanes, float *to)
{
    typedef float Eight __attribute__((vector_size(8 * sizeof(float))));
    typedef float Four __attribute__((vector_size(4 * sizeof(float))));
    Four of_line[TOGETHER];
#pragma GCC unroll 4
    for (int line = 0; line < TOGETHER; line++) {
        Eight halves[2];
        Four quarters[2];
        memcpy(halves, lanes + line * SUM_LANES, sizeof halves);
        const Eight eight = halves[0] + halves[1];
        memcpy(quarters, &eight, sizeof quarters);
        of_line[line] = quarters[0] + quarters[1];
    }
    typedef int32_t Places __attribute__((vector_size(4 * sizeof(int32_t))));
    const Places low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
    Four pairs[2];
    for (int i = 0; i < 2; i++) {
        const Four one = of_line[2 * i], other = of_line[2 * i + 1];
        pairs[i] = __builtin_shuffle(one, other, low) + __builtin_shuffle(one, other, high);
    }
    const Four all = __builtin_shuffle(pairs[0], pairs[1], first) + __builtin_shuffle(pairs[0], pairs[1], second);
    memcpy(to, &all, sizeof all);
}

/* The sums of all rows with columns first … first + count - 1. */
static void sum_along(const Sizes *sizes, const float *a, const Matrix *b, int64_t first, int64_t count, float *sums)
{
    ALIGNED float memory[TOGETHER * PART];
    for (int64_t column = 0; column < count; column += TOGETHER) {
        ALIGNED float lanes[GROUP][TOGETHER * SUM_LANES];
        memset(lanes, 0, (size_t)sizes->m * sizeof *lanes);
        for (int64_t k = 0; k < sizes->k; k += PART) {
            const int64_t part = smaller(PART, sizes->k - k);
            const char *from = number_at(b, k, first + column);
            const Lines lines = load_lines(memory, b, from, b->column, count - column, part);
            add_to_rows(lanes[0], sizes->m, a + k, us_few_rows_stride(sizes->k), lines, part);
        }
        for (int64_t i = 0; i < sizes->m; i++) { /* up to a multiple of TOGETHER, as COLUMNS is one */
            add_lanes(lanes[i], sums + i * COLUMNS + column);
        }
    }
}

/* ---- lines across the depth -------------------------------------------------------------------------------------- */

/* Rows whose sums of a vector are in registers beside the numbers that multiply it. */
enum { ROWS_ACROSS = REGISTER_BYTES == 64 ? 4 : 2 };

/* sums[row][i] += a[row][line] * lines[line][i], of rows `step` apart */
US_ALWAYS_INLINE void add_lines(float *restrict sums, int rows, const float *restrict a, int64_t step, Lines lines,
                                int64_t count)
{
    for (int64_t i = 0; i < count; i += PART_LANES) {
        Part sum[ROWS_ACROSS];
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++) {
            sum[row] = *(Part *)(sums + row * COLUMNS + i);
        }
#pragma GCC unroll 4
        for (int line = 0; line < TOGETHER; line++) {
            const Part of_line = *(const Part *)(lines.values + line * lines.pitch + i);
#pragma GCC unroll 4
            for (int row = 0; row < rows; row++) {
                sum[row] += a[row * step + line] * of_line;
            }
        }
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++) {
            *(Part *)(sums + row * COLUMNS + i) = sum[row];
        }
    }
}

static void sum_across(const Sizes *sizes, const float *a, const Matrix *b, int64_t first, int64_t count, float *sums)
{
    ALIGNED float memory[TOGETHER * COLUMNS];
    const int64_t step = us_few_rows_stride(sizes->k);
    memset(sums, 0, (size_t)(sizes->m * COLUMNS) * sizeof *sums);
    for (int64_t k = 0; k < sizes->k; k += TOGETHER) {
        const Lines lines = load_lines(memory, b, number_at(b, k, first), b->row, sizes->k - k, count);
        int64_t row = 0;
        for (; row + ROWS_ACROSS <= sizes->m; row += ROWS_ACROSS) {
            add_lines(sums + row * COLUMNS, ROWS_ACROSS, a + row * step + k, step, lines, count);
        }
        for (; row < sizes->m; row++) {
            add_lines(sums + row * COLUMNS, 1, a + row * step + k, step, lines, count);
        }
    }
}

void us_few_rows_multiply(const Sizes *sizes, const float *a, const Matrix *b, const double *alpha, const double *beta,
                          float *c, int64_t stride)
{
    ALIGNED float sums[GROUP * COLUMNS];
    for (int64_t first = 0; first < sizes->n; first += COLUMNS) {
        const int64_t count = smaller(COLUMNS, sizes->n - first);
        for (int64_t row = 0; row < sizes->m; row += GROUP) {
            const Sizes group = {smaller(GROUP, sizes->m - row), sizes->n, sizes->k};
            (b->row == 1 ? sum_along : sum_across)(&group, a + row * us_few_rows_stride(sizes->k), b, first, count, sums);
            for (int64_t i = 0; i < group.m; i++) { /* c = alpha * sums + beta * c */
                float *of_row = sums + i * COLUMNS, *to = c + (row + i) * stride + first;
                us_line_blend(DTYPE_FLOAT32, of_row, alpha, is_zero(beta) ? NULL : to, beta, count);
                memcpy(to, of_row, (size_t)count * sizeof *to);
            }
        }
    }
}
