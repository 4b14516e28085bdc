/* A timeline of what happened. UNDERSTUDY_TRACE=FILE: every event becomes one line of that file, an element of a JSON
 * array in Chrome's trace event format (ph "X", times in microseconds of the monotonic clock). Viewers read the array
 * without its closing bracket, which is never written, so that a process may end at any time. */
#ifndef UNDERSTUDY_TRACE_H
#define UNDERSTUDY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Off: one predictable branch at each place that could trace. Set before main from the environment, or by us_trace_start. */
extern _Atomic bool us_tracing;

/* A program's profiler: traces to this file from now on, until us_trace_stop. When the environment has named a file, that one
 * goes on, and nothing stops. False: the file cannot be opened. */
bool us_trace_start(const char *path);
void us_trace_stop(void);

/* The monotonic clock, nanoseconds: what events are timed by. */
uint64_t us_now(void);

/* One event. A start of 0 means that it began before tracing did: it is left out. `lane`: 0 for the calling thread,
 * otherwise 1 + the number of a stream. `arguments_json`: the members of a JSON object without braces, or "". */
void us_trace_event(const char *category, const char *name, int64_t lane, uint64_t start, uint64_t end,
                    const char *arguments_json);

#endif
