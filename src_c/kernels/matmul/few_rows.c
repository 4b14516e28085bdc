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

static bool takes_floats(const Matmul *product)
{
    const bool long_enough = product->b.row == 1 ? product->k >= LEAST : product->b.column == 1 && product->n >= PART;
    return long_enough && product->m > 1 && product->m <= MOST_ROWS; /* BLAS has one row of them */
}

bool us_few_rows_take(const Matmul *product)
{
    const Matrix *b = &product->b;
    const int64_t line = b->row == 1 ? product->k : b->column == 1 ? product->n : 0;
    const int64_t most = line < PART ? MOST_OF_SHORT : us_bf16_takes(product->a.dtype, b->dtype) ? MOST_BESIDE_TILES : MOST_ROWS;
    const bool is_half = b->dtype == DTYPE_FLOAT16 || b->dtype == DTYPE_BFLOAT16;
    return product->compute == DTYPE_FLOAT32 &&
           (is_half ? line >= LEAST && product->m <= most : b->dtype == DTYPE_FLOAT32 && takes_floats(product));
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
    typedef float Eight __attribute__((vector_size(8 * sizeof(float))));
    typedef float Four __attribute__((vector_size(4 * sizeof(float))));
    Eight halves[2];
    Four quarters[2];
    memcpy(halves, lanes, sizeof halves);
    const Eight eight = halves[0] + halves[1];
    memcpy(quarters, &eight, sizeof quarters);
    const Four four = quarters[0] + quarters[1];
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
