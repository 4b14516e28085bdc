/* How reductions are written, each in one line of a file:
 *
 *     REDUCE(name, numbers, outputs, LANES, starts, step, merge, results)
 *     REDUCE_AFTER(first, name, …)   runs after the reduction `first`, whose (first) result is its p
 *
 * A state is two values a and b of type WIDE. `starts` sets them; `step` adds an element x (COMPUTE), whose number is i
 * (WIDE); `merge` adds another state c, d; `results` turns a and b into the outputs. n[…] are the numbers of the call,
 * `count` how many elements there were. `outputs` is ONE, TWO, or INDEXED: b becomes an index. LANES are sets of lanes:
 * see kernels/lanes/lanes.h. A file defines REDUCE_ROWS, how many rows of a panel its steps add at once. */
#ifndef UNDERSTUDY_REDUCTION_H
#define UNDERSTUDY_REDUCTION_H

#include "kernels/lanes/lanes.h"
#include "kernels/reduce/reduce.h"

#endif
