/* Reductions over ranks: each rank gets, chunk by chunk, what all of them have for it, and reduces it like an axis. */
#include "kernels/reduce/reductions.h"
#include "kernels/scratch.h"
#include "ranks/exchange.h"

#include <string.h>

enum { CHUNK_BYTES = 128 * 1024 };

typedef struct Run {
    const RankReduction *how;
    const View *parts, *out;
    int64_t chunk; /* elements */
    char *gathered; /* a chunk of each rank */
    Transfer *transfers;
} Run;

static int64_t elements_of(const View *view)
{
    return us_view_is_absent(view) ? 0 : us_view_elements(view);
}

/* Of a part or of the result, from element `begin` on: at most a chunk. */
static int64_t elements_from(const Run *run, const View *view, int64_t begin)
{
    const int64_t left = elements_of(view) - begin;
    return left < 0 ? 0 : left < run->chunk ? left : run->chunk;
}

static Transfer transfer_of(const Run *run, int32_t peer, bool sends, char *data, int64_t elements, const View *whole)
{
    const uint64_t size = us_dtype_size(run->how->dtype);
    Transfer transfer = us_transfer(&run->how->task, peer, sends, data, (uint64_t)elements * size);
    transfer.head.whole = (uint64_t)elements_of(whole) * size;
    return transfer;
}

/* Sends the others what is theirs from `begin` on, and gets what is this rank's. Where a part is empty one message says so. */
static KernelStatus exchange_chunk(const Run *run, int64_t begin)
{
    const Room *room = run->how->task.room;
    const int64_t size = (int64_t)us_dtype_size(run->how->dtype), own = elements_from(run, run->out, begin);
    int32_t count = 0;
    for (int32_t rank = 0; rank < room->ranks; rank++) {
        const View *part = &run->parts[rank];
        const int64_t theirs = elements_from(run, part, begin);
        char *room_for_theirs = run->gathered + rank * run->chunk * size;
        if (rank == room->rank) {
            if (own > 0) {
                memcpy(room_for_theirs, (const char *)part->data + begin * size, (size_t)(own * size));
            }
            continue;
        }
        if (theirs > 0 || begin == 0) {
            char *data = us_view_is_absent(part) ? NULL : (char *)part->data + begin * size;
            run->transfers[count++] = transfer_of(run, rank, true, data, theirs, part);
        }
        if (own > 0 || begin == 0) {
            run->transfers[count++] = transfer_of(run, rank, false, room_for_theirs, own, run->out);
        }
    }
    return count > 0 ? us_exchange(run->how->task.room, CHANNEL_COLLECTIVE, run->transfers, count) : KERNEL_OK;
}

static KernelStatus reduce_chunk(const Run *run, int64_t begin)
{
    const DType dtype = run->how->dtype;
    const int64_t own = elements_from(run, run->out, begin);
    if (own == 0) {
        return KERNEL_OK;
    }
    View views[] = {us_view_contiguous(run->gathered, dtype, 2, (int64_t[]){run->how->task.room->ranks, own}),
                    us_view_contiguous((char *)run->out->data + begin * (int64_t)us_dtype_size(dtype), dtype, 2,
                                       (int64_t[]){1, own})};
    views[0].strides[0] = run->chunk;
    const ReduceCall call = {.reduction = run->how->reduction, .compute = dtype, .result = dtype, .axes = 1, .outputs = 1};
    return us_reduce(views, &call);
}

static int64_t longest(const Run *run)
{
    int64_t most = elements_of(run->out);
    for (int32_t rank = 0; rank < run->how->task.room->ranks; rank++) {
        const int64_t elements = elements_of(&run->parts[rank]);
        most = elements > most ? elements : most;
    }
    return most;
}

static KernelStatus reduce_all(Run *run)
{
    const int32_t ranks = run->how->task.room->ranks;
    run->gathered = us_scratch_take((size_t)ranks * CHUNK_BYTES);
    run->transfers = us_scratch_array(2 * ranks, sizeof *run->transfers);
    KernelStatus status = run->gathered != NULL && run->transfers != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    const int64_t most = longest(run);
    for (int64_t begin = 0; status == KERNEL_OK && (begin == 0 || begin < most); begin += run->chunk) {
        status = exchange_chunk(run, begin);
        if (status == KERNEL_OK) {
            status = reduce_chunk(run, begin);
        }
    }
    us_scratch_give_back(run->transfers);
    us_scratch_give_back(run->gathered);
    return status;
}

KernelStatus us_reduce_ranks(const View *views, const void *attributes)
{
    const RankReduction *how = attributes;
    Run run = {.how = how, .parts = views, .out = &views[how->task.room->ranks],
               .chunk = CHUNK_BYTES / (int64_t)us_dtype_size(how->dtype)};
    const KernelStatus status = us_collective_begin(&how->task);
    return us_collective_end(&how->task, status == KERNEL_OK ? reduce_all(&run) : status);
}
