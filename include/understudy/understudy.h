/* What Understudy offers beside the vendors' own functions. Programs need none of it: it is for tests and debugging.
 * Library: libunderstudy.so. All strings belong to the library and stay valid until the calling thread's next refusal. */
#ifndef UNDERSTUDY_UNDERSTUDY_H
#define UNDERSTUDY_UNDERSTUDY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of Understudy, "major.minor.patch". */
const char *understudy_version(void);

/* The sentence of this thread's last refusal; "" when there was none. */
const char *understudy_last_error(void);

/* The rule id of this thread's last refusal, "function/parameter/rule"; "" when there was none. */
const char *understudy_last_rule(void);

/* The vendor's status of this thread's last refusal; 0 when there was none. */
int32_t understudy_last_status(void);

/* Forgets this thread's last refusal. */
void understudy_clear_last_error(void);

/* Number of findings of UNDERSTUDY_CHECK in this process so far; with "refusals" among the checks each refusal is one.
 * With UNDERSTUDY_CHECK_EXIT=N a process that had any ends with status N. */
int64_t understudy_findings(void);

/* The host arrays of the calling thread's next calls: `bytes[i]` from `arrays[i]`, count of them; none with count 0.
 * Functions that know no lengths refuse an operand that begins in one and leaves it (rule window). The lists are not
 * copied. */
void understudy_expect_arrays(const void *const *arrays, const uint64_t *bytes, int32_t count);

/* A program that `understudy ft-run -n N` has started N times, each process one DSP core of the same chip. */
int32_t understudy_core(void);       /* the core this process is, 0 … N-1; 0 without ft-run */
int32_t understudy_core_count(void); /* N; 1 without ft-run */
void understudy_barrier(void);       /* returns when every core has called it; what they wrote before is then visible */

#ifdef __cplusplus
}
#endif

#endif
