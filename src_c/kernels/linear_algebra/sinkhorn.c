#include "kernels/linear_algebra/sinkhorn.h"

#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <math.h>

enum { TILE = 64 }; /* columns of a piece */

#define SMALLEST 1e-8

typedef struct Balance {
    const View *views;
    int64_t rows, columns;
    double *kernel, *of_rows, *of_columns, *changes;
} Balance;

static void load_row(void *context, int64_t row)
{
    const Balance *work = context;
    double *const line = work->kernel + row * work->columns;
    us_linear_load_double(&work->views[0], row * work->columns, work->columns, line);
    for (int64_t j = 0; j < work->columns; j++) {
        line[j] = exp_double(line[j]);
    }
}

static void balance_row(void *context, int64_t row)
{
    const Balance *work = context;
    const double *const line = work->kernel + row * work->columns;
    double sum = 0;
    for (int64_t j = 0; j < work->columns; j++) {
        sum += work->of_columns[j] * line[j];
    }
    work->of_rows[row] = 1 / ((double)work->rows * (sum + SMALLEST));
}

static void balance_columns(void *context, int64_t piece)
{
    const Balance *work = context;
    const int64_t begin = piece * TILE, count = work->columns - begin < TILE ? work->columns - begin : TILE;
    double sums[TILE] = {0};
    for (int64_t i = 0; i < work->rows; i++) {
        const double *const line = work->kernel + i * work->columns + begin, factor = work->of_rows[i];
        for (int64_t j = 0; j < count; j++) {
            sums[j] += factor * line[j];
        }
    }
    for (int64_t j = 0; j < count; j++) {
        const double before = work->of_columns[begin + j];
        work->of_columns[begin + j] = 1 / ((double)work->columns * (sums[j] + SMALLEST));
        work->changes[begin + j] = fabs(before - work->of_columns[begin + j]);
    }
}

static void store_row(void *context, int64_t row)
{
    const Balance *work = context;
    double *const line = work->kernel + row * work->columns;
    for (int64_t j = 0; j < work->columns; j++) {
        line[j] = work->of_columns[j] * line[j] * work->of_rows[row];
    }
    us_linear_store_double(&work->views[1], row * work->columns, work->columns, line);
}

static void balance(Balance *work, double tolerance)
{
    const int64_t elements = work->rows * work->columns;
    double change = INFINITY;
    for (int step = 0; step < SINKHORN_STEPS && change > tolerance; step++) {
        run_pieces(work->rows, elements, balance_row, work);
        run_pieces((work->columns + TILE - 1) / TILE, elements, balance_columns, work);
        change = 0;
        for (int64_t j = 0; j < work->columns; j++) {
            change += work->changes[j];
        }
        change /= (double)work->columns;
    }
}

KernelStatus us_sinkhorn(const View *views, const void *attributes)
{
    Balance work = {.views = views, .rows = views[0].shape[0], .columns = views[0].shape[1]};
    const int64_t elements = work.rows * work.columns;
    work.kernel = us_scratch_array(elements + work.rows + 2 * work.columns, sizeof *work.kernel);
    if (work.kernel == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.of_rows = work.kernel + elements;
    work.of_columns = work.of_rows + work.rows;
    work.changes = work.of_columns + work.columns;
    for (int64_t j = 0; j < work.columns; j++) {
        work.of_columns[j] = 1;
    }
    run_pieces(work.rows, elements, load_row, &work);
    balance(&work, ((const Sinkhorn *)attributes)->tolerance);
    run_pieces(work.rows, elements, store_row, &work);
    us_scratch_give_back(work.kernel);
    return KERNEL_OK;
}
