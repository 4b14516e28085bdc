/* Many short runs of bytes, where a call for each would cost more than the copy. */
#ifndef UNDERSTUDY_COPY_RUNS_H
#define UNDERSTUDY_COPY_RUNS_H

#include <stdint.h>

/* groups x count runs of `bytes` bytes; steps in bytes. */
typedef struct Runs {
    char *to;
    const char *from;
    int64_t groups, group_to, group_from;
    int64_t count, run_to, run_from;
    int64_t bytes;
} Runs;

void us_copy_runs(const Runs *runs);

#endif
