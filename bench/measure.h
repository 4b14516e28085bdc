/* What the benchmarks in C share. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void check(int status, const char *what)
{
    if (status != 0) {
        fprintf(stderr, "%s gives %d\n", what, status);
        exit(1);
    }
}

/* Microseconds. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static inline double least(double a, double b)
{
    return a < b ? a : b;
}

#endif
