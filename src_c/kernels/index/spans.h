/* Lines written from a position on, which a tensor gives for each entry of a batch: caches of keys and values. */
#ifndef UNDERSTUDY_INDEX_SPANS_H
#define UNDERSTUDY_INDEX_SPANS_H

#include "kernels/kernels.h"

/* target of entry i [..., start + k, ...] = from[i, ..., k, ...] along the axis, k < length; entry by entry, so that of
 * several that write one place the last one stays. A span that leaves its axis, or a target that is not there, is a fault,
 * before anything is written.
 * views: places (int32 or int64) [entries]: starts, the length is from's, or [entries, 2]: starts and lengths, of one target
 * numbers of its entries and starts; mask (uint8) [entries], or absent: entries with 0 are left out; from [entries, ...];
 * targets: one of at least as many entries, or without that axis one for each. */
typedef struct PutSpans {
    int32_t axis; /* of from */
    bool apart;   /* a target for each entry */
} PutSpans;
Kernel us_put_spans;

#endif
