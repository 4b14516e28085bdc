#include "kernels/routing/routing.h"

#include "kernels/move/move.h"
#include "kernels/routing/pick.h"
#include "kernels/scratch.h"

#include <string.h>

enum { TOKENS, COUNTS, ROUTED, ORDER, SUMS, SCALES, ROUTED_SCALES };

typedef struct Routing {
    const View *views;
    int64_t rows, ranks, experts;
    int64_t *counts, *starts; /* of each rank's tokens for each expert */
    int64_t *sums, *order;    /* of each expert; of each row */
} Routing;

static KernelStatus read_counts(const Routing *work)
{
    const int64_t count = work->ranks * work->experts;
    int64_t sum = 0;
    us_reshape((const View[]){work->views[COUNTS], us_view_contiguous(work->counts, DTYPE_INT64, 1, &count)}, NULL);
    for (int64_t i = 0; i < count; i++) {
        if (work->counts[i] < 0 || work->counts[i] > work->rows - sum) {
            return us_kernel_fault("rank %lld has %lld tokens for expert %lld, of %lld that are left",
                                   (long long)(i / work->experts), (long long)work->counts[i], (long long)(i % work->experts),
                                   (long long)(work->rows - sum));
        }
        work->starts[i] = sum;
        sum += work->counts[i];
    }
    return KERNEL_OK;
}

static void order_rows(const Routing *work)
{
    int64_t row = 0;
    memset(work->order, -1, (size_t)work->rows * sizeof(int64_t));
    for (int64_t e = 0; e < work->experts; e++) {
        const int64_t first = row;
        for (int64_t rank = 0; rank < work->ranks; rank++) {
            const int64_t i = rank * work->experts + e;
            for (int64_t k = 0; k < work->counts[i]; k++) {
                work->order[row++] = work->starts[i] + k;
            }
        }
        work->sums[e] = row - first;
    }
}

static KernelStatus pick(const Routing *work, int from, int to)
{
    const View *routed = &work->views[to];
    const bool wanted = !us_view_is_absent(routed) && !us_view_is_empty(routed);
    return wanted ? us_pick_tokens(work->order, work->rows, &work->views[from], routed) : KERNEL_OK;
}

static KernelStatus route(const Routing *work)
{
    KernelStatus status = read_counts(work);
    if (status != KERNEL_OK) {
        return status;
    }
    order_rows(work);
    us_reshape((const View[]){us_view_contiguous(work->order, DTYPE_INT64, 1, &work->rows), work->views[ORDER]}, NULL);
    us_reshape((const View[]){us_view_contiguous(work->sums, DTYPE_INT64, 1, &work->experts), work->views[SUMS]}, NULL);
    status = pick(work, TOKENS, ROUTED);
    return status == KERNEL_OK ? pick(work, SCALES, ROUTED_SCALES) : status;
}

KernelStatus us_re_route_tokens(const View *views, const void *attributes)
{
    (void)attributes;
    Routing work = {.views = views, .rows = views[ORDER].shape[0], .ranks = views[COUNTS].shape[0],
                    .experts = views[COUNTS].shape[1]};
    const size_t counts = us_scratch_bytes(us_view_elements(&views[COUNTS]), sizeof(int64_t));
    const size_t sums = us_scratch_bytes(work.experts, sizeof(int64_t)), order = us_scratch_bytes(work.rows, sizeof(int64_t));
    char *block = us_scratch_take(2 * counts + sums + order + 64), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.counts = us_scratch_part(&cursor, counts);
    work.starts = us_scratch_part(&cursor, counts);
    work.sums = us_scratch_part(&cursor, sums);
    work.order = us_scratch_part(&cursor, order);
    const KernelStatus status = route(&work);
    us_scratch_give_back(block);
    return status;
}
