#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/integers.h"
#include "kernels/routing/pick.h"
#include "kernels/scratch.h"
#include "kernels/sort/sort.h"

#include <string.h>

/* Numbers in row-major order, for each expert number but tokens. */
typedef struct Routing {
    const RouteTokens *call;
    int64_t count, rows; /* of expert numbers; of routed */
    int64_t *experts, *order, *places;
    int64_t *tokens;     /* the token of each row of routed, at first its expert number; -1: none */
} Routing;

static View numbers_view(int64_t *numbers, int64_t count)
{
    return us_view_contiguous(numbers, DTYPE_INT64, 1, &count);
}

static void *take_numbers(Routing *routing)
{
    const size_t size = us_scratch_bytes(routing->count, sizeof(int64_t));
    char *block = us_scratch_take(3 * size + us_scratch_bytes(routing->rows, sizeof(int64_t)) + 64);
    char *cursor = block;
    if (block) {
        routing->experts = us_scratch_part(&cursor, size);
        routing->order = us_scratch_part(&cursor, size);
        routing->places = us_scratch_part(&cursor, size);
        routing->tokens = us_scratch_part(&cursor, (size_t)routing->rows * sizeof(int64_t));
    }
    return block;
}

static bool is_active(const RouteTokens *call, int64_t expert)
{
    return expert >= call->begin && expert < call->end;
}

static KernelStatus read_experts(const Routing *routing, const View *experts)
{
    const RouteTokens *call = routing->call;
    const KernelStatus status = us_read_integers(experts, "expert number", call->skips ? -1 : 0, call->limit, routing->count,
                                                 routing->experts);
    for (int64_t f = 0; f < routing->count && status == KERNEL_OK; f++) {
        routing->experts[f] = is_active(call, routing->experts[f]) ? routing->experts[f] : INT64_MAX;
    }
    return status;
}

static void place_tokens(const Routing *routing)
{
    const int64_t capacity = routing->call->capacity;
    int64_t first = 0; /* of this expert, in order */
    memset(routing->tokens, -1, (size_t)routing->rows * sizeof(int64_t));
    for (int64_t i = 0; i < routing->count; i++) {
        const int64_t f = routing->order[i], expert = routing->experts[f];
        first = i > 0 && routing->experts[routing->order[i - 1]] == expert ? first : i;
        const bool has_place = is_active(routing->call, expert) && (capacity == 0 || i - first < capacity);
        const int64_t place = !has_place ? -1 : capacity == 0 ? i : expert * capacity + i - first;
        if (!routing->call->in_order) {
            routing->places[f] = place;
        } else {
            routing->places[i] = is_active(routing->call, expert) ? f : -1;
        }
        const int64_t row = place - routing->call->first;
        if (place >= 0 && row >= 0 && row < routing->rows) {
            routing->tokens[row] = f;
        }
    }
}

/* Moves counts to pairs of number and count. */
static void pair_up(const RouteTokens *call, int64_t *numbers)
{
    const int64_t experts = call->end - call->begin;
    int64_t used = 0;
    for (int64_t e = 0; e < experts; e++) {
        numbers[2 * experts + e] = numbers[e];
    }
    memset(numbers, 0, 2 * (size_t)experts * sizeof *numbers);
    for (int64_t e = 0; e < experts; e++) {
        if (numbers[2 * experts + e] > 0) {
            numbers[used++] = call->begin + e;
            numbers[used++] = numbers[2 * experts + e];
        }
    }
}

static KernelStatus count_tokens(const Routing *routing, const View *counts)
{
    const RouteTokens *call = routing->call;
    const int64_t elements = us_view_elements(counts), experts = call->end - call->begin;
    const size_t size = us_scratch_bytes(elements, sizeof(int64_t)) + us_scratch_bytes(experts, 3 * sizeof(int64_t));
    int64_t *numbers = us_scratch_take(size);
    if (!numbers) {
        return KERNEL_NO_MEMORY;
    }
    memset(numbers, 0, size);
    for (int64_t f = 0; f < routing->count; f++) {
        if (is_active(call, routing->experts[f])) {
            numbers[routing->experts[f] - call->begin]++;
        }
    }
    for (int64_t e = 1; e < experts && call->counts == COUNT_SUMS; e++) {
        numbers[e] += numbers[e - 1];
    }
    if (call->counts == COUNT_PAIRS) {
        pair_up(call, numbers);
        memset(numbers + 2 * experts, 0, (size_t)experts * sizeof *numbers);
    }
    us_reshape((const View[]){numbers_view(numbers, elements), *counts}, NULL);
    us_scratch_give_back(numbers);
    return KERNEL_OK;
}

enum { TOKENS, EXPERTS, ROUTED, PLACES, COUNTS, GATES, ROUTED_GATES };

static KernelStatus pick(const Routing *routing, const View *from, const View *to)
{
    return us_view_is_absent(from) || us_view_is_empty(to) ? KERNEL_OK : us_pick_tokens(routing->tokens, routing->rows, from, to);
}

static KernelStatus pick_rows(const Routing *routing, const View *views)
{
    const bool own_gates = routing->call->own_gates;
    KernelStatus status = own_gates ? pick(routing, &views[GATES], &views[ROUTED_GATES]) : KERNEL_OK;
    for (int64_t row = 0; row < routing->rows; row++) {
        routing->tokens[row] = routing->tokens[row] < 0 ? -1 : routing->tokens[row] / routing->call->choices;
    }
    status = status == KERNEL_OK ? pick(routing, &views[TOKENS], &views[ROUTED]) : status;
    return status == KERNEL_OK && !own_gates ? pick(routing, &views[GATES], &views[ROUTED_GATES]) : status;
}

static KernelStatus route(Routing *routing, const View *views)
{
    KernelStatus status = read_experts(routing, &views[EXPERTS]);
    if (status == KERNEL_OK) {
        status = us_sort((const View[]){numbers_view(routing->experts, routing->count), us_view_absent(),
                                        numbers_view(routing->order, routing->count)}, &(SortLines){.axis = 0});
    }
    if (status == KERNEL_OK) {
        place_tokens(routing);
        us_reshape((const View[]){numbers_view(routing->places, routing->count), views[PLACES]}, NULL);
    }
    if (status == KERNEL_OK && !us_view_is_absent(&views[COUNTS])) {
        status = count_tokens(routing, &views[COUNTS]);
    }
    return status == KERNEL_OK ? pick_rows(routing, views) : status;
}

KernelStatus us_route_tokens(const View *views, const void *attributes)
{
    Routing routing = {.call = attributes, .count = us_view_elements(&views[1])};
    /* Rows without a column cost no memory, and may be more than a number of bytes can count, but where each has a gate. */
    const bool gated = !us_view_is_absent(&views[GATES]) && !us_view_is_empty(&views[ROUTED_GATES]);
    routing.rows = us_view_is_empty(&views[ROUTED]) && !gated
        ? 0 : us_shape_elements(routing.call->row_axes, views[ROUTED].shape);
    void *block = take_numbers(&routing);
    const KernelStatus status = block ? route(&routing, views) : KERNEL_NO_MEMORY;
    us_scratch_give_back(block);
    return status;
}
