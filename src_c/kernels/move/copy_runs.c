#include "kernels/move/copy_runs.h"

#include "kernels/move/copy_run.h"

/* part: 0 where there are SMALL_PART bytes or more; else at least half of the bytes. */
US_ALWAYS_INLINE void copy_all(Runs runs, int64_t bytes, int part)
{
    for (int64_t group = 0; group < runs.groups; group++, runs.to += runs.group_to, runs.from += runs.group_from) {
        for (int64_t run = 0; run < runs.count; run++) {
            if (part == 0) {
                copy_parts(runs.to + run * runs.run_to, runs.from + run * runs.run_from, bytes);
            } else {
                copy_ends(runs.to + run * runs.run_to, runs.from + run * runs.run_from, bytes, part);
            }
        }
    }
}

void us_copy_runs(const Runs *runs)
{
    const int64_t bytes = runs->bytes;
    if (bytes == 2 * LARGE_PART) { /* what is known is unrolled */
        copy_all(*runs, 2 * LARGE_PART, 0);
    } else if (bytes == 4 * LARGE_PART) {
        copy_all(*runs, 4 * LARGE_PART, 0);
    } else if (bytes >= SMALL_PART) {
        copy_all(*runs, bytes, 0);
    } else if (bytes >= SMALL_PART / 2) {
        copy_all(*runs, bytes, SMALL_PART / 2);
    } else if (bytes >= SMALL_PART / 4) {
        copy_all(*runs, bytes, SMALL_PART / 4);
    } else if (bytes >= 2) {
        copy_all(*runs, bytes, 2);
    } else if (bytes == 1) {
        copy_all(*runs, bytes, 1);
    }
}
