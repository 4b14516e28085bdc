/* Work in pieces, on all threads only where it is worth waking them (performance-notes: below 128 KiB it is not). */
#ifndef UNDERSTUDY_PIECES_H
#define UNDERSTUDY_PIECES_H

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

#endif
