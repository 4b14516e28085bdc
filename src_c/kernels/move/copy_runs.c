#include "kernels/move/copy_runs.h"

#include "tensor/convert.h"

#include <string.h>

enum { LARGE = 64, SMALL = 16 };

US_ALWAYS_INLINE void copy_all(const Runs *runs, int64_t bytes)
{
    for (int64_t group = 0; group < runs->groups; group++) {
        char *to = runs->to + group * runs->group_to;
        const char *from = runs->from + group * runs->group_from;
        for (int64_t run = 0; run < runs->count; run++, to += runs->run_to, from += runs->run_from) {
            int64_t i = 0;
#pragma GCC unroll 4
            for (; i + LARGE <= bytes; i += LARGE) {
                memcpy(to + i, from + i, LARGE);
            }
            for (; i + SMALL <= bytes; i += SMALL) {
                memcpy(to + i, from + i, SMALL);
            }
            if (i < bytes) {
                memcpy(to + i, from + i, (size_t)(bytes - i));
            }
        }
    }
}

static void copy_of_any(const Runs *runs)
{
    switch (runs->bytes) { /* what is known is unrolled */
    case 2 * LARGE:
        copy_all(runs, 2 * LARGE);
        break;
    case 4 * LARGE:
        copy_all(runs, 4 * LARGE);
        break;
    default:
        copy_all(runs, runs->bytes);
    }
}

void us_copy_runs(const Runs *runs)
{
    copy_of_any(runs);
}
