/* Heads of new tokens, normalized, turned, and written to caches: what serving does with queries, keys and values before
 * attention. */
#ifndef UNDERSTUDY_CACHED_HEADS_H
#define UNDERSTUDY_CACHED_HEADS_H

#include "kernels/kernels.h"

/* Pairs that are turned by one angle: (i, i + n / 2); (2i, 2i + 1), which the result has as halves, as cosines and sines. */
typedef enum HeadTurn { TURN_NOT, TURN_HALVES, TURN_SORTED } HeadTurn;

/* Which slot of a cache (kernels/index/slots.h) token t of sequence b has. -1, of an index: none. */
typedef enum HeadSlots {
    SLOTS_OF_TOKENS, /* index [b * tokens + t] */
    SLOTS_OF_BLOCKS, /* row t % rows of page index[b * blocks + t / rows] / rows */
    SLOTS_OF_PAGES,  /* row index[b, t] of page b */
} HeadSlots;

/* x -> x / sqrt(mean(x^2) + epsilon) * gamma, where it is normalized; then numbers first … first + turned - 1 of a head are
 * turned; that is `out`. The cache gets it, or round(it * scale + offset), ties to even, as int8: it / scale, if it `divides`.
 * In float32, every result rounded once. */
typedef struct HeadPart {
    double epsilon;
    bool normalizes, divides;
    HeadTurn turn;
    int64_t turned;
} HeadPart;

/* Views: index (absent: no part has a cache); for each part x [sequences, tokens, heads, depth], gamma? [depth], cosines and
 * sines [as x, or 1, turned], scale?, offset? [as x, by strides of 0], out? [as x], cache? [pages, rows, heads, depth] or
 * [pages, rows, heads, depth / c, c]. The caches have the same pages and rows. An index that is not there is a fault, before
 * anything is written. */
enum { HEAD_PARTS = 3, HEAD_VIEWS = 8 };
typedef struct CachedHeads {
    HeadSlots slots;
    int32_t count;
    HeadPart parts[HEAD_PARTS];
} CachedHeads;
Kernel us_cached_heads;

#endif
