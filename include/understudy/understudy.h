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

#ifdef __cplusplus
}
#endif

#endif
