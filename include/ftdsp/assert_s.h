/* Assertion: out[0] = cond[0]. Nothing stops when it is 0.
 *
 * Operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part. */
#ifndef ASSERT_S_H
#define ASSERT_S_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void assert_s(int32_t *cond, int32_t *out, int core_mask);

#ifdef __cplusplus
}
#endif

#endif
