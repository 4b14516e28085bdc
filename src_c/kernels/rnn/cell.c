#include "kernels/rnn/cell.h"

#include "kernels/maths/maths.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reductions.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { TILE = 256, PIECE_ELEMENTS = 8 * 1024 };
enum { I, F, G, O, GATES };

typedef struct Tile {
    float numbers[TILE];
} Tile;

typedef struct Cells {
    const View *views;
    int64_t rows, width, piece_rows;
    void (*step)(const struct Cells *cells, int64_t row, int64_t begin, int64_t count);
} Cells;

/* Elements of a row; of a view of one axis those of all rows; an absent view has zeros. */
static void load(Tile *to, const View *view, int64_t row, int64_t begin, int64_t count)
{
    if (us_view_is_absent(view)) {
        memset(to, 0, sizeof *to);
        return;
    }
    us_row_load(view, view->rank > 1 ? row : 0, begin, count, to->numbers);
}

static void store(const View *view, int64_t row, int64_t begin, const Tile *from, int64_t count)
{
    us_row_store(view, row, begin, count, from->numbers);
}

static void add_to(Tile *sums, const Tile *other)
{
    for (int i = 0; i < TILE; i++) {
        sums->numbers[i] += other->numbers[i];
    }
}

static void activate(Tile *sums, bool is_tanh)
{
    for (int i = 0; i < TILE; i++) {
        sums->numbers[i] = is_tanh ? tanh_float(sums->numbers[i]) : sigmoid_float(sums->numbers[i]);
    }
}

static void forward_step(const Cells *cells, int64_t row, int64_t begin, int64_t count)
{
    enum { INPUT, STATE, PARAMETERS, MORE_PARAMETERS, C, NEW_H, NEW_C, ACTIVATED };
    const View *views = cells->views;
    Tile gates[GATES] = {0}, term = {0}, c = {0}, h;
    for (int gate = 0; gate < GATES; gate++) {
        const int64_t at = gate * cells->width + begin;
        load(&gates[gate], &views[INPUT], row, at, count);
        for (int view = STATE; view <= MORE_PARAMETERS; view++) {
            load(&term, &views[view], row, at, count);
            add_to(&gates[gate], &term);
        }
        activate(&gates[gate], gate == G);
        store(&views[ACTIVATED], row, at, &gates[gate], count);
    }
    load(&c, &views[C], row, begin, count);
    for (int i = 0; i < TILE; i++) {
        const float kept = gates[F].numbers[i] * c.numbers[i], gained = gates[I].numbers[i] * gates[G].numbers[i];
        c.numbers[i] = kept + gained;
        h.numbers[i] = gates[O].numbers[i] * tanh_float(c.numbers[i]);
    }
    store(&views[NEW_C], row, begin, &c, count);
    store(&views[NEW_H], row, begin, &h, count);
}

static void backward_step(const Cells *cells, int64_t row, int64_t begin, int64_t count)
{
    enum { SLOPE_H, SLOPE_C, C, NEW_C, ACTIVATED, SUMS, TO_C };
    const View *views = cells->views;
    Tile gates[GATES] = {0}, slopes[GATES], dh = {0}, dc = {0}, c = {0}, new_c = {0};
    for (int gate = 0; gate < GATES; gate++) {
        load(&gates[gate], &views[ACTIVATED], row, gate * cells->width + begin, count);
    }
    load(&dh, &views[SLOPE_H], row, begin, count);
    load(&dc, &views[SLOPE_C], row, begin, count);
    load(&c, &views[C], row, begin, count);
    load(&new_c, &views[NEW_C], row, begin, count);
    for (int k = 0; k < TILE; k++) {
        const float i = gates[I].numbers[k], f = gates[F].numbers[k], g = gates[G].numbers[k], o = gates[O].numbers[k];
        const float bent = tanh_float(new_c.numbers[k]), of_h = dh.numbers[k] * o * (1 - bent * bent);
        const float slope = of_h + dc.numbers[k];
        slopes[I].numbers[k] = slope * g * (1 - i) * i;
        slopes[F].numbers[k] = slope * c.numbers[k] * (1 - f) * f;
        slopes[G].numbers[k] = slope * i * (1 - g * g);
        slopes[O].numbers[k] = dh.numbers[k] * bent * (1 - o) * o;
        dc.numbers[k] = slope * f;
    }
    for (int gate = 0; gate < GATES; gate++) {
        store(&views[SUMS], row, gate * cells->width + begin, &slopes[gate], count);
    }
    store(&views[TO_C], row, begin, &dc, count);
}

static void run_piece(void *context, int64_t piece)
{
    const Cells *cells = context;
    const int64_t first = piece * cells->piece_rows, rest = cells->rows - first;
    for (int64_t row = first; row < first + (rest < cells->piece_rows ? rest : cells->piece_rows); row++) {
        for (int64_t begin = 0; begin < cells->width; begin += TILE) {
            cells->step(cells, row, begin, cells->width - begin < TILE ? cells->width - begin : TILE);
        }
    }
}

static void run(Cells cells, const View *states)
{
    cells.rows = us_view_is_empty(states) ? 0 : states->shape[0];
    cells.width = states->shape[1];
    cells.piece_rows = PIECE_ELEMENTS / (cells.width + 1) + 1;
    us_parallel((cells.rows + cells.piece_rows - 1) / cells.piece_rows, run_piece, &cells);
}

KernelStatus us_lstm_cell(const View *views, const void *attributes)
{
    (void)attributes;
    run((Cells){.views = views, .step = forward_step}, &views[4]);
    return KERNEL_OK;
}

KernelStatus us_lstm_cell_backward(const View *views, const void *attributes)
{
    (void)attributes;
    enum { C = 2, SUMS = 5, PARAMETER = 7 };
    run((Cells){.views = views, .step = backward_step}, &views[C]);
    if (us_view_is_absent(&views[PARAMETER])) {
        return KERNEL_OK;
    }
    const ReduceCall sum = {.reduction = &us_reduce_sum, .compute = views[SUMS].dtype, .result = views[SUMS].dtype, .axes = 1,
                            .outputs = 1};
    return us_reduce((const View[]){views[SUMS], us_view_insert_axis(views[PARAMETER], 0, 1, 0)}, &sum);
}
