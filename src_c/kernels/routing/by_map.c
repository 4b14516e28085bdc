#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/by_map.h"
#include "kernels/routing/pick.h"
#include "kernels/scratch.h"

#include <string.h>

enum { TOKENS, MAP, ROUTED, PLACES, GATES, ROUTED_GATES };

typedef struct Routing {
    const RouteByMap *call;
    const View *views;
    int64_t token_count, experts, rows;
    int64_t *places;             /* one for each row */
    int64_t *tokens, *expert_of; /* of each row; -1: none */
    int64_t *next;               /* the next row of each expert */
} Routing;

static void put(const Routing *work, int64_t row, int64_t token, int64_t expert)
{
    work->tokens[row] = token;
    work->expert_of[row] = expert;
}

/* No token has more experts than it may choose: the rows are enough for all then. */
static KernelStatus check_choices(const Routing *work)
{
    for (int64_t t = 0; t < work->token_count; t++) {
        int64_t chosen = 0;
        for (int64_t e = 0; e < work->experts; e++) {
            chosen += is_marked(&work->views[MAP], t, e);
        }
        if (chosen > work->call->each) {
            return us_kernel_fault("token %lld has more than %lld experts", (long long)t, (long long)work->call->each);
        }
    }
    return KERNEL_OK;
}

/* The first row of each expert. */
static void find_starts(const Routing *work)
{
    int64_t count = 0;
    for (int64_t e = 0; e < work->experts; e++) {
        work->next[e] = count;
        for (int64_t t = 0; t < work->token_count; t++) {
            count += is_marked(&work->views[MAP], t, e);
        }
    }
}

static KernelStatus route_pairs(const Routing *work)
{
    const int64_t choices = work->call->each;
    const KernelStatus status = check_choices(work);
    if (status != KERNEL_OK) {
        return status;
    }
    find_starts(work);
    for (int64_t t = 0; t < work->token_count; t++) {
        int64_t taken = 0;
        for (int64_t e = 0; e < work->experts; e++) {
            if (is_marked(&work->views[MAP], t, e)) {
                const int64_t row = work->next[e]++;
                work->places[t * choices + taken++] = row;
                put(work, row, t, e);
            }
        }
    }
    return KERNEL_OK;
}

static void fill_blocks(const Routing *work)
{
    const int64_t capacity = work->call->each;
    for (int64_t e = 0; e < work->experts; e++) {
        int64_t row = e * capacity;
        for (int marked = 1; marked >= 0; marked--) {
            for (int64_t t = 0; t < work->token_count && row < (e + 1) * capacity; t++) {
                if (is_marked(&work->views[MAP], t, e) == (marked == 1)) {
                    put(work, row, t, e);
                    work->places[row++] = t;
                }
            }
        }
    }
}

static void move_gates(const Routing *work)
{
    const View *gates = &work->views[GATES];
    for (int64_t row = 0; row < work->rows && !us_view_is_absent(gates); row++) {
        const int64_t token = work->tokens[row];
        copy_gate(row_gate_at(&work->views[ROUTED_GATES], row), token < 0 ? NULL : gate_at(gates, token, work->expert_of[row]),
                  gates);
    }
}

static KernelStatus route(const Routing *work)
{
    const View *views = work->views;
    memset(work->places, -1, (size_t)work->rows * sizeof(int64_t));
    memset(work->tokens, -1, (size_t)work->rows * sizeof(int64_t));
    if (work->call->blocks) {
        fill_blocks(work);
    } else {
        const KernelStatus status = route_pairs(work);
        if (status != KERNEL_OK) {
            return status;
        }
    }
    us_reshape((const View[]){us_view_contiguous(work->places, DTYPE_INT64, 1, &work->rows), views[PLACES]}, NULL);
    move_gates(work);
    return us_view_is_empty(&views[ROUTED]) ? KERNEL_OK
                                            : us_pick_tokens(work->tokens, work->rows, &views[TOKENS], &views[ROUTED]);
}

KernelStatus us_route_by_map(const View *views, const void *attributes)
{
    Routing work = {.call = attributes, .views = views, .token_count = views[MAP].shape[0],
                    .experts = views[MAP].shape[1], .rows = views[ROUTED].shape[0]};
    const size_t rows = us_scratch_bytes(work.rows, sizeof(int64_t));
    char *block = us_scratch_take(3 * rows + us_scratch_bytes(work.experts, sizeof(int64_t)) + 64), *cursor = block;
    if (!block) {
        return KERNEL_NO_MEMORY;
    }
    work.places = us_scratch_part(&cursor, rows);
    work.tokens = us_scratch_part(&cursor, rows);
    work.expert_of = us_scratch_part(&cursor, rows);
    work.next = us_scratch_part(&cursor, (size_t)work.experts * sizeof(int64_t));
    const KernelStatus status = route(&work);
    us_scratch_give_back(block);
    return status;
}
