#include "kernels/routing/routing.h"

#include "kernels/routing/by_map.h"
#include "kernels/routing/integers.h"
#include "kernels/routing/slopes.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

enum { PIECE_ELEMENTS = 16 * 1024 };
enum { SLOPES, ROWS, ROW_TOKENS, ROUTED_GRADIENT, MAP, ROUTED, GATES, GATE_GRADIENT };

typedef struct Gradients {
    const RouteByMap *call;
    const View *views;
    int64_t rows, tokens, width, piece_rows;
    int64_t *numbers, *tokens_of; /* tokens_of: of each row, -1: none */
    int64_t *experts;             /* whose gate it has; NULL: no gates */
    float *sums;                  /* of its gate's gradient */
} Gradients;

static KernelStatus read_rows(const Gradients *work)
{
    const View *views = work->views;
    const int64_t rows = work->rows;
    const bool blocks = work->call->blocks;
    KernelStatus status = KERNEL_OK;
    if (blocks) {
        status = us_read_integers(&views[ROW_TOKENS], "token", 0, work->tokens, rows, work->numbers);
    }
    status = status == KERNEL_OK ? us_read_integers(&views[ROWS], "row", blocks ? 0 : -1, rows, rows, work->numbers) : status;
    for (int64_t i = 0; i < rows && status == KERNEL_OK; i++) {
        work->tokens_of[i] = -1;
    }
    for (int64_t i = 0; i < rows && status == KERNEL_OK; i++) {
        if (work->numbers[i] >= 0) {
            work->tokens_of[work->numbers[i]] = blocks ? us_integer_at(&views[ROW_TOKENS], 0, i) : i / work->call->each;
        }
    }
    return status;
}

/* Row k belongs to the k-th marked pair, expert by expert. */
static KernelStatus find_pairs(const Gradients *work)
{
    const View *map = &work->views[MAP];
    int64_t row = 0;
    for (int64_t e = 0; e < map->shape[1]; e++) {
        for (int64_t t = 0; t < work->tokens; t++) {
            if (!is_marked(map, t, e)) {
                continue;
            }
            if (row == work->rows) {
                return us_kernel_fault("the map marks more than %lld pairs", (long long)work->rows);
            }
            work->numbers[row] = t;
            work->experts[row++] = e;
        }
    }
    for (; row < work->rows; row++) {
        work->numbers[row] = work->experts[row] = -1;
    }
    return KERNEL_OK;
}

/* `numbers`: the token whose gate each row has. */
static KernelStatus find_gates(const Gradients *work)
{
    if (work->experts == NULL) {
        return KERNEL_OK;
    }
    if (!work->call->blocks) {
        return find_pairs(work);
    }
    for (int64_t row = 0; row < work->rows; row++) {
        work->numbers[row] = work->tokens_of[row];
        work->experts[row] = row / work->call->each;
    }
    return KERNEL_OK;
}

static bool has_gate(const Gradients *work, int64_t row)
{
    return work->experts != NULL && work->numbers[row] >= 0;
}

static void form_token(const Gradients *work, int64_t row)
{
    const int64_t token = work->experts == NULL || has_gate(work, row) ? work->tokens_of[row] : -1;
    float scale = 1;
    if (has_gate(work, row)) {
        us_row_load(&work->views[GATES], work->numbers[row], work->experts[row], 1, &scale);
    }
    us_put_slopes(&work->views[SLOPES], token, scale, &work->views[ROUTED_GRADIENT], row);
}

static float form_gate(const Gradients *work, int64_t row)
{
    const int64_t token = work->tokens_of[row];
    return token < 0 ? 0 : us_dot_slopes(&work->views[SLOPES], token, &work->views[ROUTED], row, NULL, -1);
}

static void form_piece(void *context, int64_t piece)
{
    const Gradients *work = context;
    const int64_t begin = piece * work->piece_rows;
    for (int64_t row = begin; row < smaller(begin + work->piece_rows, work->rows); row++) {
        form_token(work, row);
        if (has_gate(work, row)) {
            work->sums[row] = form_gate(work, row);
        }
    }
}

/* One after the other: rows of a block that name one token have one gate, and the last one counts. */
static void store_gates(const Gradients *work)
{
    const View *gates = &work->views[GATE_GRADIENT];
    const int64_t tokens = us_view_is_empty(gates) ? 0 : gates->shape[0];
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t e = 0; e < gates->shape[1]; e++) {
            copy_gate(gate_at(gates, t, e), NULL, gates);
        }
    }
    for (int64_t row = 0; row < work->rows; row++) {
        if (has_gate(work, row)) {
            us_row_store(gates, work->numbers[row], work->experts[row], 1, &work->sums[row]);
        }
    }
}

static KernelStatus form_all(Gradients *work)
{
    KernelStatus status = read_rows(work);
    status = status == KERNEL_OK ? find_gates(work) : status;
    if (status != KERNEL_OK) {
        return status;
    }
    us_parallel(ceiling(work->rows, work->piece_rows), form_piece, work);
    if (work->experts != NULL) {
        store_gates(work);
    }
    return KERNEL_OK;
}

KernelStatus us_unroute_by_map_backward(const View *views, const void *attributes)
{
    Gradients work = {.call = attributes, .views = views, .rows = views[ROWS].shape[0], .tokens = views[SLOPES].shape[0],
                      .width = views[SLOPES].shape[1]};
    const size_t size = us_scratch_bytes(work.rows, sizeof(int64_t));
    char *block = us_scratch_take(4 * size + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.piece_rows = PIECE_ELEMENTS / (work.width + 1) + 1;
    work.numbers = us_scratch_part(&cursor, size);
    work.tokens_of = us_scratch_part(&cursor, size);
    work.experts = us_view_is_absent(&views[GATES]) ? NULL : us_scratch_part(&cursor, size);
    work.sums = us_scratch_part(&cursor, size);
    const KernelStatus status = form_all(&work);
    us_scratch_give_back(block);
    return status;
}
