/* Rotary position embeddings whose cosines and sines are rows of a table. */
#ifndef UNDERSTUDY_CACHED_ROTARY_H
#define UNDERSTUDY_CACHED_ROTARY_H

#include "kernels/kernels.h"

enum { ROTARY_SECTIONS = 4 };

/* A row of the table holds the cosines of r / 2 pairs, then their sines. Elements 0 … r - 1 of every head of token t are
 * turned by row positions[t] as the map `rotate` does, in float32: pair i is (i, i + r / 2), or (2i, 2i + 1):
 * `interleaved`; the others are copied. With sections, positions has a row for each of them: the first sections[0] pairs
 * take their angles by the first row, and so on; where they alternate, of three, pair i < 3 * sections[1] by row i % 3, and the
 * others by the first one. A position that the table does not have is a fault.
 * views: positions [tokens] or [sections, tokens], query and key [tokens, heads * head], table [rows, r], then the
 * results for query and key. */
typedef struct CachedRotary {
    int64_t head;
    bool interleaved, alternates;
    int32_t section_count; /* 0: none */
    int64_t sections[ROTARY_SECTIONS];
} CachedRotary;
Kernel us_cached_rotary;

#endif
