#include "kernels/softmax/row_losses.h"

#include "kernels/maths/maths.h"
#include "kernels/softmax/loss_groups.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <math.h>

/* Elements of a row taken at a time; partial sums of a row; rows whose losses wait to be added in their order; elements
 * of a piece of work. */
enum { TILE = 512, PARTS = 8, ROWS = 4096, PIECE_ELEMENTS = 4096 };

static void *element(const void *data, DType dtype, int64_t index)
{
    return (char *)data + index * (int64_t)us_dtype_size(dtype);
}

/* ---- loops over a tile ---- */

/* The largest of top and x; NaN if one is. In PARTS maxima: which of them sees an element does not change the result. */
static double tile_top(const double *x, int64_t count, double top)
{
    double tops[PARTS];
    int64_t nans[PARTS] = {top != top}, i = 0;
    for (int k = 0; k < PARTS; k++) {
        tops[k] = top;
    }
    for (; i + PARTS <= count; i += PARTS) {
#pragma GCC unroll 1
        for (int k = 0; k < PARTS; k++) {
            tops[k] = x[i + k] > tops[k] ? x[i + k] : tops[k];
        }
#pragma GCC unroll 1
        for (int k = 0; k < PARTS; k++) {
            nans[k] |= x[i + k] != x[i + k];
        }
    }
    for (; i < count; i++) {
        tops[0] = x[i] > tops[0] ? x[i] : tops[0];
        nans[0] |= x[i] != x[i];
    }
    for (int k = 0; k < PARTS; k++) {
        top = nans[k] ? NAN : tops[k] > top ? tops[k] : top;
    }
    return top;
}

/* powers[i] = e^(x[i] - top) */
static void tile_powers(double *restrict powers, const double *restrict x, int64_t count, double top)
{
    for (int64_t i = 0; i < count; i++) {
        powers[i] = exp_double(x[i] - top);
    }
}

/* In PARTS sums, whose order does not depend on the instruction set. */
static void add_tile(double *sums, const double *x, int64_t count)
{
    double parts[PARTS];
    memcpy(parts, sums, sizeof parts);
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            parts[k] += x[i + k];
        }
    }
    memcpy(sums, parts, sizeof parts);
    for (int k = 0; i < count; i++, k++) {
        sums[k] += x[i];
    }
}

static void multiply_tile(double *x, int64_t count, double factor)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] *= factor;
    }
}

/* losses[i] = -label * log p; 0 * -infinity is nothing. p becomes its gradient. */
static void tile_losses(double *restrict losses, double *restrict p, const double *restrict x, const double *restrict label,
                        int64_t count, double offset)
{
    for (int64_t i = 0; i < count; i++) {
        losses[i] = label[i] != 0 ? -label[i] * (x[i] - offset) : 0;
        p[i] -= label[i];
    }
}

static double sum_of_parts(const double *sums)
{
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* ---- rows ---- */

static void load_labels(const RowLosses *work, int64_t row, int64_t at, int64_t from, int64_t count, double *labels)
{
    if (!work->class_labels) {
        us_load_double(labels, element(work->labels, work->label_dtype, at), work->label_dtype, work->inner, count);
        return;
    }
    const int64_t label = work->class_labels[row] - from;
    memset(labels, 0, (size_t)count * sizeof *labels);
    if (label >= 0 && label < count) {
        labels[label] = 1;
    }
}

static void store(const RowLosses *work, void *to, int64_t at, const double *values, int64_t count)
{
    if (to) {
        us_store_double(element(to, work->result, at), work->result, work->inner, values, count);
    }
}

/* A row of one tile is read, and its powers are taken, once. */
static double row_loss(const RowLosses *work, int64_t row)
{
    const int64_t step = work->inner, first = row / step * work->classes * step + row % step;
    const bool once = work->classes <= TILE;
    double x[TILE], p[TILE], labels[TILE], losses[TILE], top = -1.0 / 0.0, offset = 0, inverse = 0, loss = 0;
    enum { MAXIMUM, SUM, LOSS, PASSES };
    for (int pass = 0; pass < PASSES; pass++) {
        double sums[PARTS] = {0};
        for (int64_t c = 0; c < work->classes; c += TILE) {
            const int64_t count = work->classes - c < TILE ? work->classes - c : TILE, at = first + c * step;
            if (!once || pass == MAXIMUM) {
                us_load_double(x, element(work->logits, work->dtype, at), work->dtype, step, count);
            }
            if (pass == MAXIMUM) {
                top = tile_top(x, count, top);
                continue;
            }
            if (!once || pass == SUM) {
                tile_powers(p, x, count, top);
            }
            if (pass == LOSS) {
                multiply_tile(p, count, inverse);
                store(work, work->probabilities, at, p, count);
                load_labels(work, row, at, c, count, labels);
                tile_losses(losses, p, x, labels, count, offset);
                store(work, work->gradients, at, p, count);
            }
            add_tile(sums, pass == SUM ? p : losses, count);
        }
        loss = sum_of_parts(sums);
        if (pass == SUM) {
            offset = top + log_double(loss);
            inverse = 1 / loss;
        }
    }
    return loss;
}

/* Some rows, whose losses stay in the order of the rows. */
typedef struct Rows {
    const RowLosses *work;
    int64_t first, count, piece;
    double losses[ROWS];
} Rows;

static void run_piece(void *context, int64_t piece)
{
    Rows *rows = context;
    const RowLosses *work = rows->work;
    const int64_t begin = piece * rows->piece, group = us_group_rows(work);
    const int64_t end = rows->count - begin < rows->piece ? rows->count : begin + rows->piece;
    for (int64_t k = begin, count; k < end; k += count) {
        count = group == 0 ? 1 : end - k < group ? end - k : group;
        if (group == 0) {
            rows->losses[k] = row_loss(work, rows->first + k);
        } else {
            us_group_losses(work, rows->first + k, count, &rows->losses[k]);
        }
    }
    if (work->losses) {
        us_store_double(element(work->losses, work->result, rows->first + begin), work->result, 1, &rows->losses[begin],
                        end - begin);
    }
}

void us_row_losses(RowLosses *work)
{
    const int64_t count = work->outer * work->inner;
    Rows rows = {.work = work, .piece = work->classes < PIECE_ELEMENTS ? PIECE_ELEMENTS / (work->classes + 1) + 1 : 1};
    work->sum = 0;
    for (rows.first = 0; rows.first < count; rows.first += ROWS) {
        rows.count = count - rows.first < ROWS ? count - rows.first : ROWS;
        us_parallel((rows.count + rows.piece - 1) / rows.piece, run_piece, &rows);
        for (int64_t k = 0; k < rows.count; k++) {
            work->sum += rows.losses[k];
        }
    }
}
