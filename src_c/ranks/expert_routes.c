#include "ranks/expert_routes.h"

#include "kernels/scratch.h"

#include <string.h>

bool us_is_active(const View *active, int64_t token, int64_t k)
{
    return us_view_is_absent(active) || *(const uint8_t *)us_element_at(active, token, k) != 0;
}

/* A shared expert works for a token that has any other one. */
static bool is_token_active(const ExpertRoute *route, const View *active, int64_t token)
{
    bool any = false;
    for (int64_t k = 0; k < route->k && !any; k++) {
        any = us_is_active(active, token, k);
    }
    return any;
}

/* -1: nowhere, -2: there is no such expert. */
static int64_t slot_of(const ExpertLayout *layout, const ExpertRoute *route, const View *ids, const View *active, int64_t token,
                       int64_t choice)
{
    if (choice >= route->k) {
        const int64_t copies = layout->shared_ranks / layout->shared;
        return is_token_active(route, active, token) ? (choice - route->k) * copies + layout->task.room->rank % copies : -1;
    }
    const int64_t expert = us_integer_at(ids, token, choice);
    const int64_t all = layout->experts + layout->nothing + layout->copies + layout->constants;
    return !us_is_active(active, token, choice) ? -1
           : expert < 0 || expert >= all        ? -2
           : expert >= layout->experts          ? -1
                                                : layout->shared_ranks + expert;
}

/* Places become slots, slots are counted, and slots become places. */
static KernelStatus find_places(ExpertRoute *route, const ExpertLayout *layout, const View *ids, const View *active)
{
    memset(route->begin, 0, (size_t)(route->slots + 1) * sizeof *route->begin);
    for (int64_t i = 0; i < route->tokens * route->choices; i++) {
        const int64_t token = i / route->choices, choice = i % route->choices;
        const int64_t slot = slot_of(layout, route, ids, active, token, choice);
        if (slot == -2) {
            return us_kernel_fault("expertIds[%lld, %lld] is %d; there are %lld experts", (long long)token, (long long)choice,
                                   (int)us_integer_at(ids, token, choice),
                                   (long long)(layout->experts + layout->nothing + layout->copies + layout->constants));
        }
        route->places[i] = slot;
        if (slot >= 0) {
            route->begin[slot + 1]++;
        }
    }
    for (int64_t slot = 0; slot < route->slots; slot++) {
        route->begin[slot + 1] += route->begin[slot];
    }
    route->count = route->begin[route->slots];
    for (int64_t i = 0; i < route->tokens * route->choices; i++) {
        if (route->places[i] >= 0) {
            route->places[i] = route->begin[route->places[i]]++;
        }
    }
    memmove(route->begin + 1, route->begin, (size_t)route->slots * sizeof *route->begin);
    route->begin[0] = 0;
    return KERNEL_OK;
}

KernelStatus us_expert_route(ExpertRoute *route, const ExpertLayout *layout, const View *ids, const View *active)
{
    *route = (ExpertRoute){.tokens = ids->shape[0], .k = ids->shape[1], .slots = layout->shared_ranks + layout->experts};
    route->choices = route->k + (layout->shared_ranks > 0 ? layout->shared : 0);
    route->begin = us_scratch_array(route->slots + 1 + route->tokens * route->choices, sizeof *route->begin);
    route->places = route->begin != NULL ? route->begin + route->slots + 1 : NULL;
    return route->begin != NULL ? find_places(route, layout, ids, active) : KERNEL_NO_MEMORY;
}

void us_expert_route_end(const ExpertRoute *route)
{
    us_scratch_give_back(route->begin);
}

int64_t us_first_slot(const ExpertLayout *layout, int32_t rank)
{
    const int32_t ranks = layout->task.room->ranks;
    const int64_t before = rank - layout->shared_ranks; /* ranks of experts that are not shared */
    return before <= 0 ? rank : layout->shared_ranks + before * us_experts_of(layout, ranks, ranks - 1);
}

int64_t us_tokens_to(const ExpertLayout *layout, const ExpertRoute *route, int32_t rank)
{
    return route->begin[us_first_slot(layout, rank + 1)] - route->begin[us_first_slot(layout, rank)];
}

