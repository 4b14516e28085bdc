/* One run of bytes, where a call of memcpy would take longer than the copy. */
#ifndef UNDERSTUDY_COPY_RUN_H
#define UNDERSTUDY_COPY_RUN_H

#include "tensor/convert.h"

#include <string.h>

enum { LARGE_PART = 64, SMALL_PART = 16, SHORT_RUN = 512 /* bytes: a call for each longer one is worth it */ };

/* SMALL_PART bytes and more. */
US_ALWAYS_INLINE void copy_parts(char *to, const char *from, int64_t bytes)
{
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + LARGE_PART <= bytes; i += LARGE_PART) {
        memcpy(to + i, from + i, LARGE_PART);
    }
    for (; i + SMALL_PART <= bytes; i += SMALL_PART) {
        memcpy(to + i, from + i, SMALL_PART);
    }
    if (i < bytes) {
        memcpy(to + bytes - SMALL_PART, from + bytes - SMALL_PART, SMALL_PART);
    }
}

/* The first and the last bytes, which may overlap: `part` of each. */
US_ALWAYS_INLINE void copy_ends(char *to, const char *from, int64_t bytes, int part)
{
    char first[SMALL_PART], last[SMALL_PART];
    memcpy(first, from, (size_t)part);
    memcpy(last, from + bytes - part, (size_t)part);
    memcpy(to, first, (size_t)part);
    memcpy(to + bytes - part, last, (size_t)part);
}

US_ALWAYS_INLINE void copy_run(char *to, const char *from, int64_t bytes)
{
    if (bytes > SHORT_RUN) {
        memcpy(to, from, (size_t)bytes);
    } else if (bytes >= SMALL_PART) {
        copy_parts(to, from, bytes);
    } else if (bytes >= SMALL_PART / 2) {
        copy_ends(to, from, bytes, SMALL_PART / 2);
    } else if (bytes >= SMALL_PART / 4) {
        copy_ends(to, from, bytes, SMALL_PART / 4);
    } else if (bytes >= 2) {
        copy_ends(to, from, bytes, 2);
    } else if (bytes == 1) {
        *to = *from;
    }
}

#endif
