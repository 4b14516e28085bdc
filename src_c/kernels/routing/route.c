#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/pick.h"
#include "kernels/scratch.h"
#include "kernels/sort/sort.h"

#include <string.h>

/* Numbers in row-major order, for each expert number but tokens. */
typedef struct Routing {
    const RouteTokens *call;
    int64_t count, rows; /* of expert numbers; of routed */
    int64_t *experts, *order, *places;
    int64_t *tokens;     /* the token of each row of routed, -1: none */
} Routing;

static View numbers_view(int64_t *numbers, int64_t count)
{
    return us_view_contiguous(numbers, DTYPE_INT64, 1, &count);
}

static void *take_numbers(Routing *routing)
{
    const size_t size = us_scratch_round((size_t)routing->count * sizeof(int64_t));
    char *block = us_scratch_take(3 * size + us_scratch_round((size_t)routing->rows * sizeof(int64_t)) + 64);
    char *cursor = block;
    if (block) {
        routing->experts = us_scratch_part(&cursor, size);
        routing->order = us_scratch_part(&cursor, size);
        routing->places = us_scratch_part(&cursor, size);
        routing->tokens = us_scratch_part(&cursor, (size_t)routing->rows * sizeof(int64_t));
    }
    return block;
}

static KernelStatus sort_experts(const Routing *routing, const View *experts)
{
    const View numbers = numbers_view(routing->experts, routing->count);
    const View order = numbers_view(routing->order, routing->count);
    us_reshape((const View[]){*experts, numbers}, NULL);
    for (int64_t f = 0; f < routing->count; f++) {
        const int64_t expert = routing->experts[f];
        if (expert < 0 || expert >= routing->call->limit) {
            return us_kernel_fault("expert number %lld of %lld is %lld, which is not in 0 … %lld", (long long)f,
                                   (long long)routing->count, (long long)expert, (long long)routing->call->limit - 1);
        }
    }
    return us_sort((const View[]){numbers, us_view_absent(), order}, &(SortLines){.axis = 0});
}

static void place_tokens(const Routing *routing)
{
    const int64_t capacity = routing->call->capacity;
    int64_t first = 0; /* of this expert, in order */
    memset(routing->tokens, -1, (size_t)routing->rows * sizeof(int64_t));
    for (int64_t i = 0; i < routing->count; i++) {
        const int64_t f = routing->order[i], expert = routing->experts[f];
        first = i > 0 && routing->experts[routing->order[i - 1]] == expert ? first : i;
        const bool has_room = i - first < capacity;
        const int64_t place = capacity == 0 ? i : has_room ? expert * capacity + i - first : -1;
        routing->places[f] = place;
        if (place >= 0 && place < routing->rows) {
            routing->tokens[place] = f / routing->call->choices;
        }
    }
}

static KernelStatus count_tokens(const Routing *routing, const View *counts)
{
    const int64_t limit = us_view_elements(counts);
    int64_t *numbers = us_scratch_take((size_t)limit * sizeof *numbers + 64);
    if (!numbers) {
        return KERNEL_NO_MEMORY;
    }
    memset(numbers, 0, (size_t)limit * sizeof *numbers);
    for (int64_t f = 0; f < routing->count; f++) {
        numbers[routing->experts[f]]++;
    }
    for (int64_t expert = 1; expert < limit && routing->call->cumulative; expert++) {
        numbers[expert] += numbers[expert - 1];
    }
    us_reshape((const View[]){numbers_view(numbers, limit), *counts}, NULL);
    us_scratch_give_back(numbers);
    return KERNEL_OK;
}

static KernelStatus route(Routing *routing, const View *views)
{
    const View *routed = &views[2];
    KernelStatus status = sort_experts(routing, &views[1]);
    if (status == KERNEL_OK) {
        place_tokens(routing);
        us_reshape((const View[]){numbers_view(routing->places, routing->count), views[3]}, NULL);
    }
    if (status == KERNEL_OK && !us_view_is_absent(&views[4])) {
        status = count_tokens(routing, &views[4]);
    }
    if (status == KERNEL_OK && !us_view_is_empty(routed)) {
        status = us_pick_tokens(routing->tokens, routing->rows, &views[0], routed);
    }
    return status;
}

KernelStatus us_route_tokens(const View *views, const void *attributes)
{
    Routing routing = {.call = attributes, .count = us_view_elements(&views[1])};
    routing.rows = us_shape_elements(routing.call->row_axes, views[2].shape);
    void *block = take_numbers(&routing);
    const KernelStatus status = block ? route(&routing, views) : KERNEL_NO_MEMORY;
    us_scratch_give_back(block);
    return status;
}
