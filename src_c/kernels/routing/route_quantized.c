/* Routing with quantized rows: all by other kernels. */
#include "kernels/move/move.h"
#include "kernels/quantize/quantize.h"
#include "kernels/routing/routing.h"
#include "kernels/scratch.h"

#include <string.h>

enum { TOKENS, EXPERTS, ROUTED, PLACES, COUNTS, SCALE, SHIFT, ROW_SCALE = SHIFT };

static View repeated(const View *one, const View *like)
{
    View scalar = *one;
    scalar.rank = 0;
    return us_view_broadcast(&scalar, like->rank, like->shape);
}

/* A view of `space` like `rows`, but of the type and width of `other`. */
static View of_width(void *space, const View *other, const View *rows)
{
    View view = *rows;
    view.shape[view.rank - 1] = other->shape[other->rank - 1];
    return us_view_contiguous(space, other->dtype, view.rank, view.shape);
}

/* Rows of one token differ: each has the smooth numbers of its expert. Rows without columns have none. */
static bool has_groups(const View *views, const RouteQuantized *how)
{
    return how->by_rows && views[SCALE].rank == 2 && views[TOKENS].shape[1] > 0;
}

/* Tokens as integers, on their ways; in groups, rows that are to become integers. */
static View view_between(const View *views, bool groups, void *space)
{
    return groups ? of_width(space, &views[TOKENS], &views[ROUTED]) : of_width(space, &views[ROUTED], &views[TOKENS]);
}

/* First all tokens, then their ways: rows without a token stay 0, and so do their scales. */
static KernelStatus quantize_tokens(const View *views, const RouteQuantized *how, void *space, float *scales)
{
    const View *tokens = &views[TOKENS], integers = view_between(views, false, space), absent = us_view_absent();
    const View scale = how->by_rows ? us_view_contiguous(scales, DTYPE_FLOAT32, 1, tokens->shape) : absent;
    KernelStatus status = KERNEL_OK;
    if (how->by_rows) {
        memset(scales, 0, (size_t)tokens->shape[0] * sizeof *scales); /* rows without columns get none */
        status = us_quantize_rows((const View[]){*tokens, views[SCALE], integers, scale, absent, absent},
                                  &(QuantizeRows){.packed = how->packed});
    } else if (!us_view_is_empty(tokens)) {
        status = us_quantize((const View[]){*tokens, repeated(&views[SCALE], tokens), repeated(&views[SHIFT], tokens), integers},
                             &(Quantize){.rounding = ROUND_EVEN, .packed = how->packed});
    }
    const View route[] = {integers, views[EXPERTS], views[ROUTED], views[PLACES], views[COUNTS], scale,
                          how->by_rows ? views[ROW_SCALE] : absent};
    return status == KERNEL_OK ? us_route_tokens(route, &how->route) : status;
}

/* Where the rows of each active expert end. `numbers`: room for all expert numbers. */
static View find_ends(const View *views, const RouteTokens *how, int64_t *numbers, int64_t *ends)
{
    const int64_t count = us_view_elements(&views[EXPERTS]), experts = how->end - how->begin;
    memset(ends, 0, (size_t)experts * sizeof *ends);
    us_reshape((const View[]){views[EXPERTS], us_view_contiguous(numbers, DTYPE_INT64, 1, &count)}, NULL);
    for (int64_t f = 0; f < count && how->capacity == 0; f++) {
        if (numbers[f] >= how->begin && numbers[f] < how->end) {
            ends[numbers[f] - how->begin]++;
        }
    }
    for (int64_t e = 0; e < experts; e++) {
        ends[e] = (e > 0 ? ends[e - 1] : 0) + (how->capacity > 0 ? how->capacity : ends[e]);
    }
    return us_view_contiguous(ends, DTYPE_INT64, 1, &experts);
}

static KernelStatus quantize_rows(const View *views, const RouteQuantized *how, void *space, int64_t *numbers, int64_t *ends)
{
    const View rows = view_between(views, true, space), absent = us_view_absent();
    const View route[] = {views[TOKENS], views[EXPERTS], rows, views[PLACES], views[COUNTS], absent, absent};
    const KernelStatus status = us_route_tokens(route, &how->route);
    if (status != KERNEL_OK) {
        return status;
    }
    const View groups = find_ends(views, &how->route, numbers, ends);
    return us_quantize_rows((const View[]){rows, views[SCALE], views[ROUTED], views[ROW_SCALE], absent, groups},
                            &(QuantizeRows){.packed = how->packed});
}

KernelStatus us_route_quantized(const View *views, const void *attributes)
{
    const RouteQuantized *how = attributes;
    const bool groups = has_groups(views, how);
    const View between = view_between(views, groups, NULL);
    const size_t parts[] = {us_scratch_bytes(us_view_elements(&between), us_dtype_size(between.dtype)),
                            us_scratch_bytes(how->by_rows && !groups ? views[TOKENS].shape[0] : 0, sizeof(float)),
                            us_scratch_bytes(groups ? us_view_elements(&views[EXPERTS]) : 0, sizeof(int64_t)),
                            us_scratch_bytes(groups ? how->route.end - how->route.begin : 0, sizeof(int64_t))};
    char *block = us_scratch_take(us_scratch_sum(parts, 4)), *cursor = block;
    if (!block) {
        return KERNEL_NO_MEMORY;
    }
    void *space = us_scratch_part(&cursor, parts[0]);
    float *scales = us_scratch_part(&cursor, parts[1]);
    int64_t *numbers = us_scratch_part(&cursor, parts[2]), *ends = us_scratch_part(&cursor, parts[3]);
    const KernelStatus status = groups ? quantize_rows(views, how, space, numbers, ends)
                                       : quantize_tokens(views, how, space, scales);
    us_scratch_give_back(block);
    return status;
}
