/* Work in pieces, on all threads only where it is worth waking them (performance-notes: below 128 KiB it is not). */
#ifndef UNDERSTUDY_PIECES_H
#define UNDERSTUDY_PIECES_H

#include "kernels/kernels.h"
#include "tensor/parallel.h"

static inline void run_pieces(int64_t pieces, int64_t elements, ParallelBody *body, void *context)
{
    if (elements > 16 * 1024) {
        us_parallel(pieces, body, context);
        return;
    }
    for (int64_t piece = 0; piece < pieces; piece++) {
        body(context, piece);
    }
}

/* Whether there is one for each thread, or at least as many as each has parts. */
static inline bool are_enough(int64_t pieces, int64_t parts)
{
    return pieces >= us_parallel_threads() || pieces >= parts;
}

/* Pieces that run parts in their turn: where there are not enough of them, the threads are for the parts of each. */
static inline void run_divided_pieces(int64_t pieces, int64_t parts, int64_t elements, ParallelBody *body, void *context)
{
    if (are_enough(pieces, parts)) {
        run_pieces(pieces, elements, body, context);
        return;
    }
    for (int64_t piece = 0; piece < pieces; piece++) {
        body(context, piece);
    }
}

/* What a piece came to, kept for all of them where it did not end well. */
static inline void us_keep_status(KernelStatus *of_all, KernelStatus status)
{
    if (status != KERNEL_OK) {
        __atomic_store_n(of_all, status, __ATOMIC_RELAXED);
    }
}

#endif
