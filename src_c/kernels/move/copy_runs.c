#include "kernels/move/copy_runs.h"

#include "tensor/convert.h"

#include <string.h>

enum { LARGE = 64, SMALL = 16 };

US_ALWAYS_INLINE void copy_run(char *to, const char *from, int64_t bytes)
{
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + LARGE <= bytes; i += LARGE) {
        memcpy(to + i, from + i, LARGE);
    }
    for (; i + SMALL <= bytes; i += SMALL) {
        memcpy(to + i, from + i, SMALL);
    }
    if (i < bytes) {
        memcpy(to + bytes - SMALL, from + bytes - SMALL, SMALL);
    }
}

/* The first and the last bytes, which may overlap: `part` of each. */
US_ALWAYS_INLINE void copy_ends(char *to, const char *from, int64_t bytes, int part)
{
    char first[SMALL], last[SMALL];
    memcpy(first, from, (size_t)part);
    memcpy(last, from + bytes - part, (size_t)part);
    memcpy(to, first, (size_t)part);
    memcpy(to + bytes - part, last, (size_t)part);
}

/* part: 0 where there are SMALL bytes or more; else at least half of the bytes. */
US_ALWAYS_INLINE void copy_all(Runs runs, int64_t bytes, int part)
{
    for (int64_t group = 0; group < runs.groups; group++, runs.to += runs.group_to, runs.from += runs.group_from) {
        for (int64_t run = 0; run < runs.count; run++) {
            if (part == 0) {
                copy_run(runs.to + run * runs.run_to, runs.from + run * runs.run_from, bytes);
            } else {
                copy_ends(runs.to + run * runs.run_to, runs.from + run * runs.run_from, bytes, part);
            }
        }
    }
}

void us_copy_runs(const Runs *runs)
{
    const int64_t bytes = runs->bytes;
    if (bytes == 2 * LARGE) { /* what is known is unrolled */
        copy_all(*runs, 2 * LARGE, 0);
    } else if (bytes == 4 * LARGE) {
        copy_all(*runs, 4 * LARGE, 0);
    } else if (bytes >= SMALL) {
        copy_all(*runs, bytes, 0);
    } else if (bytes >= SMALL / 2) {
        copy_all(*runs, bytes, SMALL / 2);
    } else if (bytes >= SMALL / 4) {
        copy_all(*runs, bytes, SMALL / 4);
    } else if (bytes >= 2) {
        copy_all(*runs, bytes, 2);
    } else {
        copy_all(*runs, bytes, 1);
    }
}
