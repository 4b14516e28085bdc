#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/by_map.h"
#include "kernels/routing/integers.h"
#include "kernels/scratch.h"
#include "kernels/sort/sort.h"

enum { ROUTED, PLACES, TOKENS, MAP, GATES, ROUTED_GATES, ROWS, ROW_TOKENS };

typedef struct Unrouting {
    const RouteByMap *call;
    const View *views;
    int64_t rows, tokens;
    int64_t *places, *numbers; /* numbers: what is written to a view of rows */
} Unrouting;

static View numbers_view(const Unrouting *work, int64_t *numbers)
{
    return us_view_contiguous(numbers, DTYPE_INT64, 1, &work->rows);
}

static KernelStatus read_places(const Unrouting *work)
{
    const bool blocks = work->call->blocks;
    return us_read_integers(&work->views[PLACES], "place", blocks ? 0 : -1, blocks ? work->tokens : work->rows, work->rows,
                            work->places);
}

static void move_gates_of_blocks(const Unrouting *work)
{
    const View *gates = &work->views[GATES];
    for (int64_t row = 0; row < work->rows; row++) {
        const char *from = gate_at(gates, work->places[row], row / work->call->each);
        copy_gate(row_gate_at(&work->views[ROUTED_GATES], row), from, gates);
    }
}

/* Rows are the marked pairs, expert by expert; the map has been counted. */
static void move_gates_of_pairs(const Unrouting *work)
{
    const View *gates = &work->views[GATES];
    int64_t row = 0;
    for (int64_t e = 0; e < gates->shape[1]; e++) {
        for (int64_t t = 0; t < gates->shape[0]; t++) {
            if (is_marked(&work->views[MAP], t, e)) {
                copy_gate(row_gate_at(&work->views[ROUTED_GATES], row++), gate_at(gates, t, e), gates);
            }
        }
    }
    while (row < work->rows) {
        copy_gate(row_gate_at(&work->views[ROUTED_GATES], row++), NULL, gates);
    }
}

static KernelStatus count_pairs(const Unrouting *work)
{
    const View *map = &work->views[MAP];
    const int64_t tokens = us_view_is_empty(map) ? 0 : map->shape[0];
    int64_t count = 0;
    for (int64_t t = 0; t < tokens && count <= work->rows; t++) {
        for (int64_t e = 0; e < map->shape[1] && count <= work->rows; e++) {
            count += is_marked(map, t, e);
        }
    }
    return count > work->rows ? us_kernel_fault("the map marks more than %lld pairs", (long long)work->rows) : KERNEL_OK;
}

static KernelStatus move_gates(const Unrouting *work)
{
    if (us_view_is_absent(&work->views[GATES])) {
        return KERNEL_OK;
    }
    if (work->call->blocks) {
        move_gates_of_blocks(work);
        return KERNEL_OK;
    }
    const KernelStatus status = count_pairs(work);
    if (status == KERNEL_OK) {
        move_gates_of_pairs(work);
    }
    return status;
}

/* Of pairs in the order of places; of blocks sorted by their tokens. */
static KernelStatus name_rows(const Unrouting *work)
{
    const View *views = work->views;
    if (work->call->blocks) {
        return us_sort((const View[]){numbers_view(work, work->places), views[ROW_TOKENS], views[ROWS]}, &(SortLines){.axis = 0});
    }
    us_reshape((const View[]){numbers_view(work, work->places), views[ROWS]}, NULL);
    for (int64_t i = 0; i < work->rows; i++) {
        work->numbers[i] = i / work->call->each;
    }
    us_reshape((const View[]){numbers_view(work, work->numbers), views[ROW_TOKENS]}, NULL);
    return KERNEL_OK;
}

static KernelStatus unroute(const Unrouting *work)
{
    const View *views = work->views, absent = us_view_absent();
    KernelStatus status = read_places(work);
    status = status == KERNEL_OK ? move_gates(work) : status;
    status = status == KERNEL_OK ? name_rows(work) : status;
    const View sums[] = {views[ROUTED], views[PLACES], views[TOKENS], absent, absent, absent, views[ROUTED_GATES]};
    const bool has_sums = status == KERNEL_OK && !us_view_is_empty(&views[TOKENS]);
    return has_sums ? us_route_by_map_backward(sums, work->call) : status;
}

KernelStatus us_unroute_by_map(const View *views, const void *attributes)
{
    Unrouting work = {.call = attributes, .views = views, .rows = views[PLACES].shape[0], .tokens = views[TOKENS].shape[0]};
    const size_t size = us_scratch_bytes(work.rows, sizeof(int64_t));
    char *block = us_scratch_take(2 * size + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.places = us_scratch_part(&cursor, size);
    work.numbers = us_scratch_part(&cursor, size);
    const KernelStatus status = unroute(&work);
    us_scratch_give_back(block);
    return status;
}
