/* How reductions are written, each in one line of a file:
 *
 *     REDUCE(name, numbers, outputs, LANES, starts, step, merge, results)
 *     REDUCE_AFTER(first, name, numbers, outputs, LANES, starts, step, merge, moves, results)   runs after the reduction
 *         `first`, whose (first) result, as COMPUTE, is its p; a sum. `moves` makes a state of `count` elements what it
 *         would be if p had been c
 *     REDUCE_EXACT(name, outputs, LANES, starts, step, merge)
 *     REDUCE_EXTREMUM(name, GREATEST or LEAST, starts, step, merge)   16-bit floats are compared by their bits
 *     REDUCE_INDEX(values, name, LANES, starts, step, merge)   the value of the reduction `values`, and its index b
 *     REDUCE_SUM(name, LANES, step, results)
 *     REDUCE_RESULT(sum, name, LANES, results)   of the REDUCE_SUM `sum`, which has these lanes
 *     REDUCE_FACTORS(name, starts, step, merge)   of all numbers
 *
 * A state is two values a and b of type WIDE. `starts` sets them; `step` adds an element x (COMPUTE; v in the type of a
 * state), whose number is i; `merge` adds another state c, d; `results` turns a and b into the outputs. n[…] are the
 * numbers of the call, `count` how many elements there were. `outputs` is ONE or TWO. LANES are sets of lanes: see
 * kernels/lanes/lanes.h.
 *
 * Exact reductions and indices have narrow steps: a and b are of type COMPUTE in `starts` and `step`, as exact as WIDE.
 * Such a state takes REDUCE_ROWS rows and is merged; that of an index begins as the first element, number 0. Sums of
 * float16 have them too (v is COMPUTE there): what float loses in a sum of so few is far below what the elements' 11 bits show. */
#ifndef UNDERSTUDY_REDUCTION_H
#define UNDERSTUDY_REDUCTION_H

#include "kernels/lanes/lanes.h"
#include "kernels/reduce/reduce.h"

#endif
