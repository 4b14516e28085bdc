#include "kernels/routing/routing.h"

#include "kernels/routing/by_map.h"
#include "kernels/routing/integers.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { TILE = 512 };
enum { ROUTED_GRADIENT, PLACES, TOKEN_GRADIENT, ROUTED_GATE_GRADIENT, MAP, GATE_GRADIENT, ROW_SCALE };

typedef struct Gradients {
    const RouteByMap *call;
    const View *views;
    int64_t rows, tokens, width;
    int64_t *places;
    int64_t *starts, *items; /* the rows of token t: items[starts[t]] … items[starts[t + 1] - 1] */
} Gradients;

/* Entry i stands for a row of a token. */
static int64_t token_of(const Gradients *work, int64_t i)
{
    return work->call->blocks ? work->places[i] : i / work->call->each;
}

static KernelStatus read_places(const Gradients *work)
{
    const bool blocks = work->call->blocks;
    return us_read_integers(&work->views[PLACES], "place", blocks ? 0 : -1, blocks ? work->tokens : work->rows, work->rows,
                            work->places);
}

/* Sorts entries by their tokens: `starts` count them first, then move to their ends, which are the next one's starts. */
static void collect_rows(const Gradients *work)
{
    int64_t *ends = work->starts + 1, sum = 0;
    memset(work->starts, 0, (size_t)(work->tokens + 1) * sizeof(int64_t));
    for (int64_t i = 0; i < work->rows; i++) {
        ends[token_of(work, i)] += work->places[i] >= 0;
    }
    for (int64_t t = 0; t < work->tokens; t++) {
        const int64_t count = ends[t];
        ends[t] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < work->rows; i++) {
        if (work->places[i] >= 0) {
            work->items[ends[token_of(work, i)]++] = work->call->blocks ? i : work->places[i];
        }
    }
}

static void add_row(const Gradients *work, int64_t row, int64_t column, int64_t count, float *sums)
{
    float line[TILE], scale = 1;
    us_row_load(&work->views[ROUTED_GRADIENT], row, column, count, line);
    if (!us_view_is_absent(&work->views[ROW_SCALE])) {
        us_row_load(&work->views[ROW_SCALE], 0, row, 1, &scale);
    }
    for (int64_t k = 0; k < count; k++) {
        const float term = scale * line[k];
        sums[k] += term;
    }
}

static void sum_token(void *context, int64_t token)
{
    const Gradients *work = context;
    for (int64_t column = 0, count; column < work->width; column += count) {
        float sums[TILE] = {0};
        count = smaller(work->width - column, TILE);
        for (int64_t i = work->starts[token]; i < work->starts[token + 1]; i++) {
            add_row(work, work->items[i], column, count, sums);
        }
        us_row_store(&work->views[TOKEN_GRADIENT], token, column, count, sums);
    }
}

/* The gradient of the row's gate; without a row 0. */
static void set_gate(const Gradients *work, int64_t token, int64_t expert, int64_t row)
{
    const View *from = &work->views[ROUTED_GATE_GRADIENT];
    copy_gate(gate_at(&work->views[GATE_GRADIENT], token, expert), row < 0 ? NULL : row_gate_at(from, row), from);
}

static KernelStatus form_gates(const Gradients *work)
{
    const View *map = &work->views[MAP];
    const int64_t experts = work->views[GATE_GRADIENT].shape[1];
    const bool blocks = work->call->blocks;
    int64_t row = 0;
    for (int64_t e = 0; e < experts; e++) {
        for (int64_t t = 0; t < work->tokens; t++) {
            const bool marked = !blocks && is_marked(map, t, e);
            if (marked && row == work->rows) {
                return us_kernel_fault("the map marks more than %lld pairs", (long long)work->rows);
            }
            set_gate(work, t, e, marked ? row++ : -1);
        }
    }
    for (int64_t i = 0; i < work->rows && blocks; i++) {
        set_gate(work, work->places[i], i / work->call->each, i);
    }
    return KERNEL_OK;
}

static KernelStatus form_all(const Gradients *work)
{
    KernelStatus status = read_places(work);
    if (status == KERNEL_OK && !us_view_is_absent(&work->views[GATE_GRADIENT])) {
        status = form_gates(work);
    }
    if (status == KERNEL_OK) {
        collect_rows(work);
        us_parallel(work->tokens, sum_token, (void *)work);
    }
    return status;
}

KernelStatus us_route_by_map_backward(const View *views, const void *attributes)
{
    Gradients work = {.call = attributes, .views = views, .rows = views[PLACES].shape[0],
                      .tokens = views[TOKEN_GRADIENT].shape[0], .width = views[TOKEN_GRADIENT].shape[1]};
    const size_t rows = us_scratch_bytes(work.rows, sizeof(int64_t));
    const size_t starts = us_scratch_bytes(work.tokens + 1, sizeof(int64_t));
    char *block = us_scratch_take(2 * rows + starts + 64), *cursor = block;
    if (!block) {
        return KERNEL_NO_MEMORY;
    }
    work.places = us_scratch_part(&cursor, rows);
    work.items = us_scratch_part(&cursor, rows);
    work.starts = us_scratch_part(&cursor, starts);
    const KernelStatus status = form_all(&work);
    us_scratch_give_back(block);
    return status;
}
