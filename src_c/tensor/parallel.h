/* Work on all cores. Our own small pool instead of OpenMP: it survives fork before first use, does not clash with another
 * OpenMP runtime in the process, spins only briefly, and thread sanitizers understand it. */
#ifndef UNDERSTUDY_PARALLEL_H
#define UNDERSTUDY_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

/* One piece of work. Pieces must not depend on each other: which thread runs which piece is not defined. */
typedef void ParallelBody(void *context, int64_t piece);

/* Calls body(context, 0 … pieces-1), on up to us_parallel_threads() threads, and returns when all are done. The caller
 * takes part. Results must depend only on the piece number, never on the number of threads. Several threads may call at
 * once; calls from inside a body run serially. */
void us_parallel(int64_t pieces, ParallelBody *body, void *context);

/* Waits up to `nanoseconds` until enough(context) holds, without sleeping, and runs pieces of other threads' calls
 * meanwhile: a thread that would only spin beside a kernel is the fastest helper the kernel can get. True: it holds. On
 * a single processor it does not wait at all. */
bool us_parallel_wait(bool (*enough)(void *context), void *context, int64_t nanoseconds);

/* From now on, until it is called with false, the calling thread does its own work alone. */
void us_parallel_alone(bool alone);

/* Threads used: UNDERSTUDY_THREADS, by default us_usable_processors. */
int us_parallel_threads(void);

#endif
