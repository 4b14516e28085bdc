#include "kernels/norm/wide_lrn.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

#include <stdatomic.h>

/* Elements of a piece of work. */
enum { PIECE_ELEMENTS = 4096 };

typedef struct Work {
    const WideLrn *lrn;
    int64_t piece_rows;
    atomic_bool no_memory;
} Work;

/* Of the channels of a row, in blocks as wide as a window: squares added up from a block's begin, and to its end. A window is
 * an end of one block and a begin of the next: nothing is subtracted, which would lose small squares behind large ones. */
typedef struct Squares {
    double *from_begin, *to_end;
    int64_t block;
} Squares;

static void add_squares(const double *x, int64_t channels, const Squares *squares)
{
    for (int64_t c = 0; c < channels; c++) {
        squares->from_begin[c] = (c % squares->block == 0 ? 0 : squares->from_begin[c - 1]) + x[c] * x[c];
    }
    for (int64_t c = channels - 1; c >= 0; c--) {
        const bool is_last = c + 1 == channels || (c + 1) % squares->block == 0;
        squares->to_end[c] = (is_last ? 0 : squares->to_end[c + 1]) + x[c] * x[c];
    }
}

/* Of a window, which is a whole block, or cut off by an end of the row, where both lie in one block. */
static double sum_between(const Squares *squares, int64_t first, int64_t last)
{
    if (first / squares->block != last / squares->block) {
        return squares->to_end[first] + squares->from_begin[last];
    }
    return first % squares->block == 0 ? squares->from_begin[last] : squares->to_end[first];
}

static void norm_row(const WideLrn *lrn, int64_t row, double *values, const Squares *squares)
{
    const int64_t at = row * lrn->channels * (int64_t)us_dtype_size(lrn->dtype);
    us_load_double(values, (const char *)lrn->x + at, lrn->dtype, 1, lrn->channels);
    add_squares(values, lrn->channels, squares);
    for (int64_t c = 0; c < lrn->channels; c++) {
        const int64_t first = c > lrn->radius ? c - lrn->radius : 0;
        const int64_t last = c + lrn->radius < lrn->channels ? c + lrn->radius : lrn->channels - 1;
        values[c] *= pow_double(lrn->k + lrn->alpha * sum_between(squares, first, last), -lrn->beta);
    }
    us_store_double((char *)lrn->y + at, lrn->dtype, 1, values, lrn->channels);
}

static void norm_rows(void *context, int64_t piece)
{
    Work *work = context;
    const WideLrn *lrn = work->lrn;
    const int64_t first = piece * work->piece_rows, left = lrn->rows - first;
    double *values = us_scratch_array(lrn->channels, 3 * sizeof *values);
    if (values == NULL) {
        atomic_store(&work->no_memory, true);
        return;
    }
    const Squares squares = {values + lrn->channels, values + 2 * lrn->channels, 2 * lrn->radius + 1};
    for (int64_t row = 0; row < (left < work->piece_rows ? left : work->piece_rows); row++) {
        norm_row(lrn, first + row, values, &squares);
    }
    us_scratch_give_back(values);
}

KernelStatus us_wide_lrn(const WideLrn *lrn)
{
    Work work = {.lrn = lrn, .piece_rows = PIECE_ELEMENTS / (lrn->channels + 1) + 1};
    run_pieces((lrn->rows + work.piece_rows - 1) / work.piece_rows, lrn->rows * lrn->channels, norm_rows, &work);
    return atomic_load(&work.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
