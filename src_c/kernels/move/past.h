/* Bytes past the caches: results that no cache can keep would first be read from memory, only to be overwritten. */
#ifndef UNDERSTUDY_PAST_H
#define UNDERSTUDY_PAST_H

#include "tensor/levels.h"

#include <stddef.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Results go past the caches from so many bytes on: those of gathers and transpositions, and those of maps, of which half as
 * many still are in a large last cache when the next kernel reads them. */
enum { PAST_BYTES = 1 << 24, PAST_MAP_BYTES = 1 << 25 };

/* While it copies, it asks for as many bytes from `next` on. */
static inline void us_copy_past(char *to, const char *from, size_t bytes, const char *next)
{
    size_t i = 0;
#ifdef __SSE2__
    for (const size_t head = -(uintptr_t)to % CACHE_LINE_BYTES; i < head && i < bytes; i++) {
        to[i] = from[i];
    }
    for (; i + CACHE_LINE_BYTES <= bytes; i += CACHE_LINE_BYTES) {
        __builtin_prefetch(next + i);
        for (size_t k = i; k < i + CACHE_LINE_BYTES; k += sizeof(__m128i)) {
            _mm_stream_si128((__m128i *)(void *)(to + k), _mm_loadu_si128((const __m128i *)(const void *)(from + k)));
        }
    }
#else
    (void)next;
#endif
    memcpy(to + i, from + i, bytes - i);
}

/* After the last of them, before other threads are told. */
static inline void us_past_is_done(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

#endif
