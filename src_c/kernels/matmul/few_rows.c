#include "kernels/matmul/few_rows.h"

#include "kernels/matmul/bf16.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

/* Most rows that meet lines of at least PART numbers, also where whole tiles of 16-bit numbers are multiplied, and shorter ones;
 * shortest lines; numbers of a line that are converted at a time; lines that meet a row at a time; lanes of a sum along the
 * depth; lines after those that are read, of which memory is asked for. */
enum { MOST_ROWS = 8, MOST_BESIDE_TILES = 4, MOST_OF_SHORT = 2, LEAST = 128, PART = 1024, TOGETHER = 4, SUM_LANES = 16,
       AHEAD = 2 * TOGETHER };

typedef float Part __attribute__((vector_size(REGISTER_BYTES), aligned(sizeof(float)), may_alias));
enum { PART_LANES = REGISTER_BYTES / sizeof(float), PARTS = SUM_LANES / PART_LANES };

bool us_few_rows_take(const Matmul *product)
{
    const Matrix *b = &product->b;
    const bool is_half = b->dtype == DTYPE_FLOAT16 || b->dtype == DTYPE_BFLOAT16;
    const int64_t line = b->row == 1 ? product->k : b->column == 1 ? product->n : 0;
    const int64_t most = line < PART ? MOST_OF_SHORT : us_bf16_takes(product->a.dtype, b->dtype) ? MOST_BESIDE_TILES : MOST_ROWS;
    const bool pays = is_half ? line >= LEAST : b->dtype == DTYPE_FLOAT32 && line >= PART && product->m > 1; /* BLAS has one */
    return product->compute == DTYPE_FLOAT32 && pays && product->m <= most;
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

/* `count` numbers of some lines, `step` elements apart, of which only `left` are there: the others, and what is behind them
 * up to whole sums, are zeros. Where nothing is converted or missing, they are where they lie. */
static Lines load_lines(float *memory, const Matrix *b, const char *from, int64_t step, int64_t left, int64_t count)
{
    const int64_t pitch = us_few_rows_stride(count), size = (int64_t)us_dtype_size(b->dtype);
    const bool whole = count == pitch && left >= TOGETHER;
    if (whole && b->dtype == DTYPE_FLOAT32) {
        return (Lines){(const float *)(const void *)from, step};
    }
    if (whole && step == pitch) {
        us_load_float(memory, from, b->dtype, 1, TOGETHER * count);
        return (Lines){memory, pitch};
    }
    for (int64_t line = 0; line < TOGETHER; line++, from += step * size) {
        const int64_t here = line < left ? count : 0;
        float *to = memory + line * pitch;
        for (int64_t byte = 0; line + AHEAD < left && byte < count * size; byte += CACHE_LINE_BYTES) {
            __builtin_prefetch(from + AHEAD * step * size + byte);
        }
        us_load_float(to, from, b->dtype, 1, here);
        memset(to + here, 0, (size_t)(pitch - here) * sizeof *to);
    }
    return (Lines){memory, pitch};
}

/* ---- lines along the depth --------------------------------------------------------------------------------------- */

/* lanes[line][i % SUM_LANES] += a[i] * lines[line][i] */
static void add_products(float *lanes, const float *a, Lines lines, int64_t count)
{
    Part sums[TOGETHER][PARTS];
    memcpy(sums, lanes, sizeof sums);
    for (int64_t i = 0; i < count; i += SUM_LANES) {
#pragma GCC unroll 4
        for (int part = 0; part < PARTS; part++) {
            const int64_t at = i + part * PART_LANES;
            const Part of_a = *(const Part *)(a + at);
#pragma GCC unroll 4
            for (int line = 0; line < TOGETHER; line++) {
                sums[line][part] += of_a * *(const Part *)(lines.values + line * lines.pitch + at);
            }
        }
    }
    memcpy(lanes, sums, sizeof sums);
}

static float sum_of(const float *lanes)
{
    float eight[8], four[4];
    for (int i = 0; i < 8; i++) {
        eight[i] = lanes[i] + lanes[i + 8];
    }
    for (int i = 0; i < 4; i++) {
        four[i] = eight[i] + eight[i + 4];
    }
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* The sums of all rows with columns first … first + count - 1. */
static void sum_along(const Sizes *sizes, const float *a, const Matrix *b, int64_t first, int64_t count, float *sums)
{
    float memory[TOGETHER * PART];
    for (int64_t column = 0; column < count; column += TOGETHER) {
        float lanes[MOST_ROWS][TOGETHER * SUM_LANES];
        memset(lanes, 0, (size_t)sizes->m * sizeof *lanes);
        for (int64_t k = 0; k < sizes->k; k += PART) {
            const int64_t part = smaller(PART, sizes->k - k);
            const char *from = number_at(b, k, first + column);
            const Lines lines = load_lines(memory, b, from, b->column, count - column, part);
            for (int64_t i = 0; i < sizes->m; i++) {
                add_products(lanes[i], a + i * us_few_rows_stride(sizes->k) + k, lines, part);
            }
        }
        for (int64_t i = 0; i < sizes->m; i++) {
            for (int64_t line = 0; line < TOGETHER && column + line < count; line++) {
                sums[i * PART + column + line] = sum_of(lanes[i] + line * SUM_LANES);
            }
        }
    }
}

/* ---- lines across the depth -------------------------------------------------------------------------------------- */

static void add_lines(float *restrict sums, const float *a, Lines lines, int64_t count)
{
    for (int64_t i = 0; i < count; i += PART_LANES) {
        Part sum = *(Part *)(sums + i);
#pragma GCC unroll 4
        for (int line = 0; line < TOGETHER; line++) {
            sum += a[line] * *(const Part *)(lines.values + line * lines.pitch + i);
        }
        *(Part *)(sums + i) = sum;
    }
}

static void sum_across(const Sizes *sizes, const float *a, const Matrix *b, int64_t first, int64_t count, float *sums)
{
    float memory[TOGETHER * PART];
    memset(sums, 0, (size_t)(sizes->m * PART) * sizeof *sums);
    for (int64_t k = 0; k < sizes->k; k += TOGETHER) {
        const Lines lines = load_lines(memory, b, number_at(b, k, first), b->row, sizes->k - k, count);
        for (int64_t i = 0; i < sizes->m; i++) {
            add_lines(sums + i * PART, a + i * us_few_rows_stride(sizes->k) + k, lines, count);
        }
    }
}

void us_few_rows_multiply(const Sizes *sizes, const float *a, const Matrix *b, const double *alpha, const double *beta,
                          float *c, int64_t stride)
{
    float sums[MOST_ROWS * PART];
    for (int64_t first = 0; first < sizes->n; first += PART) {
        const int64_t count = smaller(PART, sizes->n - first);
        (b->row == 1 ? sum_along : sum_across)(sizes, a, b, first, count, sums);
        for (int64_t i = 0; i < sizes->m; i++) { /* c = alpha * sums + beta * c */
            float *row = sums + i * PART, *to = c + i * stride + first;
            us_line_blend(DTYPE_FLOAT32, row, alpha, is_zero(beta) ? NULL : to, beta, count);
            memcpy(to, row, (size_t)count * sizeof *to);
        }
    }
}
