/* Routing with quantized rows: all by other kernels. */
#include "kernels/move/move.h"
#include "kernels/quantize/quantize.h"
#include "kernels/routing/routing.h"
#include "kernels/scratch.h"

#include <string.h>

enum { TOKENS, EXPERTS, ROUTED, PLACES, COUNTS, SCALE, SHIFT, ROW_SCALE = SHIFT };

static KernelStatus route(const View *views, const RouteTokens *how, View tokens, View routed)
{
    const View absent = us_view_absent();
    return us_route_tokens((const View[]){tokens, views[EXPERTS], routed, views[PLACES], views[COUNTS], absent, absent}, how);
}

static View repeated(const View *one, const View *like)
{
    View scalar = *one;
    scalar.rank = 0;
    return us_view_broadcast(&scalar, like->rank, like->shape);
}

/* A view of `space` like `rows`, but of another type and width. */
static View of_width(void *space, DType type, const View *rows, int64_t width)
{
    View view = *rows;
    view.shape[view.rank - 1] = width;
    return us_view_contiguous(space, type, view.rank, view.shape);
}

/* First all tokens, then their ways: rows without a token stay 0. */
static KernelStatus quantize_tokens(const View *views, const RouteQuantized *how, void *space)
{
    const View *tokens = &views[TOKENS], *routed = &views[ROUTED];
    const View integers = of_width(space, routed->dtype, tokens, routed->shape[routed->rank - 1]);
    KernelStatus status = KERNEL_OK;
    if (!us_view_is_empty(tokens)) {
        status = us_quantize((const View[]){*tokens, repeated(&views[SCALE], tokens), repeated(&views[SHIFT], tokens), integers},
                             &(Quantize){.rounding = ROUND_EVEN, .packed = how->packed});
    }
    return status == KERNEL_OK ? route(views, &how->route, integers, *routed) : status;
}

static bool has_groups(const View *views, const RouteQuantized *how)
{
    return how->by_rows && views[SCALE].rank == 2;
}

/* Where the rows of each active expert end. `numbers`: room for all expert numbers. */
static View find_ends(const View *views, const RouteTokens *how, int64_t *numbers, int32_t *ends)
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
        ends[e] = (e > 0 ? ends[e - 1] : 0) + (how->capacity > 0 ? (int32_t)how->capacity : ends[e]);
    }
    return us_view_contiguous(ends, DTYPE_INT32, 1, &experts);
}

static KernelStatus quantize_rows(const View *views, const RouteQuantized *how, void *space, int64_t *numbers, int32_t *ends)
{
    const View rows = of_width(space, views[TOKENS].dtype, &views[ROUTED], views[TOKENS].shape[1]), absent = us_view_absent();
    const KernelStatus status = route(views, &how->route, views[TOKENS], rows);
    if (status != KERNEL_OK) {
        return status;
    }
    const View groups = has_groups(views, how) ? find_ends(views, &how->route, numbers, ends) : absent;
    return us_quantize_rows((const View[]){rows, views[SCALE], views[ROUTED], views[ROW_SCALE], absent, groups},
                            &(QuantizeRows){.packed = how->packed});
}

/* Elements of what has been quantized or will be: of all tokens, or by rows of all routed ones. */
static int64_t elements_between(const View *views, const RouteQuantized *how)
{
    View rows = views[ROUTED];
    rows.shape[rows.rank - 1] = views[TOKENS].shape[1];
    const int64_t elements = us_view_elements(how->by_rows ? &rows : &views[TOKENS]);
    return elements < 0 ? INT64_MAX : elements;
}

KernelStatus us_route_quantized(const View *views, const void *attributes)
{
    const RouteQuantized *how = attributes;
    const bool groups = has_groups(views, how);
    const size_t rows = us_scratch_bytes(elements_between(views, how), us_dtype_size(views[TOKENS].dtype));
    const size_t numbers = groups ? us_scratch_bytes(us_view_elements(&views[EXPERTS]), sizeof(int64_t)) : 0;
    const size_t ends = groups ? us_scratch_bytes(how->route.end - how->route.begin, sizeof(int32_t)) : 0;
    char *block = us_scratch_take(rows + numbers + ends + 64), *cursor = block;
    if (!block) {
        return KERNEL_NO_MEMORY;
    }
    void *space = us_scratch_part(&cursor, rows);
    int64_t *read = us_scratch_part(&cursor, numbers);
    int32_t *held = us_scratch_part(&cursor, ends);
    const KernelStatus status = how->by_rows ? quantize_rows(views, how, space, read, held) : quantize_tokens(views, how, space);
    us_scratch_give_back(block);
    return status;
}
