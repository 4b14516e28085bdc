#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/quantize/quantize.h"
#include "kernels/routing/integers.h"
#include "kernels/routing/pick.h"
#include "kernels/scratch.h"
#include "kernels/sort/sort.h"

#include <string.h>

enum { TOKENS, NUMBERS, EXPERTS, ROUTED, PLACES, SORTED };

/* One for each expert number. */
typedef struct Routing {
    const View *views;
    int64_t count;
    int64_t *experts, *numbers, *order, *places;
    int64_t *tokens; /* of each place */
} Routing;

static View numbers_view(const Routing *work, int64_t *numbers)
{
    return us_view_contiguous(numbers, DTYPE_INT64, 1, &work->count);
}

static KernelStatus sort_experts(const Routing *work)
{
    const View experts = numbers_view(work, work->experts);
    us_reshape((const View[]){work->views[EXPERTS], experts}, NULL);
    return us_sort((const View[]){experts, experts, numbers_view(work, work->order)}, &(SortLines){.axis = 0});
}

static void place_tokens(const Routing *work)
{
    memset(work->places, -1, (size_t)work->count * sizeof(int64_t));
    for (int64_t i = 0; i < work->count; i++) {
        const int64_t number = work->numbers[work->order[i]];
        work->places[number] = i;
        work->tokens[i] = number % work->views[TOKENS].shape[0];
    }
}

static KernelStatus pick(const Routing *work, const RouteNumbered *how)
{
    const View *tokens = &work->views[TOKENS], *routed = &work->views[ROUTED];
    if (us_view_is_empty(routed)) {
        return KERNEL_OK;
    }
    if (!how->quantizes) {
        return us_pick_tokens(work->tokens, routed->shape[0], tokens, routed);
    }
    void *space = us_scratch_array(us_view_elements(tokens), sizeof(int8_t));
    if (space == NULL) {
        return KERNEL_NO_MEMORY;
    }
    float scale = how->scale, offset = how->offset;
    const View integers = us_view_contiguous(space, DTYPE_INT8, tokens->rank, tokens->shape);
    const View scales = us_view_contiguous(&scale, DTYPE_FLOAT32, 0, NULL);
    const View offsets = us_view_contiguous(&offset, DTYPE_FLOAT32, 0, NULL);
    KernelStatus status = us_quantize((const View[]){*tokens, us_view_broadcast(&scales, tokens->rank, tokens->shape),
                                                     us_view_broadcast(&offsets, tokens->rank, tokens->shape), integers},
                                      &(Quantize){.rounding = ROUND_EVEN});
    status = status == KERNEL_OK ? us_pick_tokens(work->tokens, routed->shape[0], &integers, routed) : status;
    us_scratch_give_back(space);
    return status;
}

static KernelStatus route(const Routing *work, const RouteNumbered *how)
{
    KernelStatus status = us_read_integers(&work->views[NUMBERS], "row number", 0, work->count, work->count, work->numbers);
    status = status == KERNEL_OK ? sort_experts(work) : status;
    if (status != KERNEL_OK) {
        return status;
    }
    place_tokens(work);
    us_reshape((const View[]){numbers_view(work, work->places), work->views[PLACES]}, NULL);
    us_reshape((const View[]){numbers_view(work, work->experts), work->views[SORTED]}, NULL);
    return pick(work, how);
}

KernelStatus us_route_numbered(const View *views, const void *attributes)
{
    Routing work = {.views = views, .count = us_view_elements(&views[EXPERTS])};
    const size_t size = us_scratch_bytes(work.count, sizeof(int64_t));
    char *block = us_scratch_take(5 * size + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.experts = us_scratch_part(&cursor, size);
    work.numbers = us_scratch_part(&cursor, size);
    work.order = us_scratch_part(&cursor, size);
    work.places = us_scratch_part(&cursor, size);
    work.tokens = us_scratch_part(&cursor, size);
    const KernelStatus status = route(&work, attributes);
    us_scratch_give_back(block);
    return status;
}
