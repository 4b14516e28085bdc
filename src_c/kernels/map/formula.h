/* How formulas are written. A file of formulas (arithmetic.inc, …) holds lines as these and is included once for
 * every lane, once more for the tables of their bodies, and by formulas.h and kernels/descriptors.c for what others see:
 *
 *     MAP(name, inputs, numbers, LANES, expression)               one output of the type computed in
 *     MAP_TEST(name, inputs, numbers, LANES, expression)          true or false
 *     MAP_PART(name, inputs, numbers, COMPLEX, expression)        a real number from complex ones
 *     MAP_MANY(name, inputs, outputs, numbers, LANES, statements) sets out[0 …]
 *     MAP_PREPARED(name, inputs, outputs, numbers, LANES, preparation, statements)
 *                                                                 as MAP_MANY; the preparation comes before the first
 *                                                                 element, and may set numbers n[numbers …]
 *     MAP_SPLIT(name, LANES, is_easy, easy, general)              three functions of one input: see map_split
 *     MAP_POWER(name, inputs, numbers, LANES, exponent, expression)
 *                                                                 as MAP; in the expression, `power` is e^exponent in
 *                                                                 floating lanes, which take it LANES at a time
 *     MAP_UNLESS(name, inputs, numbers, LANES, done, expression)  as MAP, unless `done`: it may do the body's work, from the
 *                                                                 body's parameters, and says whether it has
 *
 * In an expression x, y, z, w are the inputs, a, b, c, d, e the numbers (all COMPUTE); in[…] and n[…] are all of
 * them. Functions of the lane: kernels/lanes/functions.inc, and MATHS(name) of kernels/maths/maths.h in floating lanes.
 * Longer formulas call functions that stand before them under #ifdef COMPUTE, which is not defined for declarations.
 *
 * LANES are sets of lanes: see kernels/lanes/lanes.h. */
#ifndef UNDERSTUDY_MAP_FORMULA_H
#define UNDERSTUDY_MAP_FORMULA_H

#include "kernels/lanes/lanes.h"
#include "kernels/map/map.h"

/* Inputs of a formula; narrow integers that are computed at a time. */
enum { MAP_INPUTS = 9, NARROW_LANES = 4 * LANES };

/* How far ahead a loop over arrays of so many bytes fetches: maps of arrays that lie in the last cache are 1.2 to 1.4 times as
 * fast as with READ_AHEAD_BYTES (Zen 5), of which short arrays get more. Zen 4 finds them by itself (1.05 to 1.4 times as fast),
 * but a single input beside results that go past the caches (0.85). */
static inline int64_t us_map_ahead(int64_t bytes, bool is_alone)
{
    const int64_t far = 4 * READ_AHEAD_BYTES, ahead = bytes >= 4 * far ? far : READ_AHEAD_BYTES;
    return is_alone ? ahead : us_fetch_ahead(ahead);
}

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

US_ALWAYS_INLINE void map_put_bytes(uint8_t *to, const bool *from)
{
    EACH_LANE(k)
    {
        to[k] = from[k];
    }
}

#endif
