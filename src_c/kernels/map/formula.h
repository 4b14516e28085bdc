/* How formulas are written. A file of formulas (arithmetic.inc, …) holds lines of three kinds and is included once for
 * every lane and level, once more for the table of their bodies, and by formulas.h for the declarations:
 *
 *     MAP(name, inputs, numbers, LANES, expression)               one output of the type computed in
 *     MAP_TEST(name, inputs, numbers, LANES, expression)          true or false
 *     MAP_PART(name, inputs, numbers, COMPLEX, expression)        a real number from complex ones
 *     MAP_MANY(name, inputs, outputs, numbers, LANES, statements) sets out[0 …]
 *
 * In an expression x, y, z, w are the inputs, a, b, c, d, e, f the numbers (all COMPUTE); in[…] and n[…] are all of
 * them. Functions of the lane: functions.inc, and MATHS(name) of kernels/maths/maths.h for floating lanes.
 * Longer formulas call functions that stand before them under #ifdef COMPUTE, which is not defined for declarations.
 *
 * LANES: FLOATS (float, double), REALS (and integers), INTEGERS, NUMBERS (all), FIELD (floating and complex),
 * COMPLEX; with 16 at the end (FLOATS16, REALS16, NUMBERS16, FIELD16) 16-bit types get bodies of their own that convert
 * in registers: for formulas where speed counts. */
#ifndef UNDERSTUDY_MAP_FORMULA_H
#define UNDERSTUDY_MAP_FORMULA_H

#include "kernels/map/map.h"
#include "kernels/maths/maths.h"
#include "tensor/convert.h"

#include <complex.h>
#include <limits.h>

/* Inputs of a formula. */
enum { MAP_INPUTS = 8 };

/* A loop over the lanes that stays a loop until it is vectorised, and one over operands that does not. */
#define EACH_LANE(k) _Pragma("GCC ivdep") _Pragma("GCC unroll 1") for (int k = 0; k < LANES; k++)
#define EACH_OPERAND(j, count) _Pragma("GCC unroll 8") for (int j = 0; j < (count); j++)

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

#define UNUSED __attribute__((unused))

US_ALWAYS_INLINE void map_put_bytes(uint8_t *to, const bool *from)
{
    EACH_LANE(k)
    {
        to[k] = from[k];
    }
}

#endif
