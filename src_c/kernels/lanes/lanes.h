/* What the families that compute in lanes share: loops, and the names of lanes.inc. Sets of lanes are called FLOATS
 * (float, double), INTEGERS, REALS (both), NUMBERS (all), FIELD (floating and complex), COMPLEX; with 16 at the end
 * (FLOATS16, REALS16, NUMBERS16, FIELD16) 16-bit types have bodies of their own that convert in registers: where speed
 * counts. FLOATS_HALF: of these only float16, where nobody calls with bfloat16. With NARROW at the end (NUMBERS_NARROW, …)
 * int8, uint8, int16 and bool have bodies of their own, too, of what is the same modulo 2^n or does not leave the type. */
#ifndef UNDERSTUDY_LANES_H
#define UNDERSTUDY_LANES_H

#include "kernels/maths/maths.h"
#include "tensor/convert.h"
#include "tensor/lane.h"
#include "tensor/levels.h"
#include "tensor/number.h"

#include <complex.h>
#include <limits.h>

/* A loop over the lanes that stays a loop until it is vectorised, and one over operands that does not. */
#define EACH_LANE(k) _Pragma("GCC ivdep") _Pragma("GCC unroll 1") for (int k = 0; k < LANES; k++)
#define EACH_OPERAND(j, count) _Pragma("GCC unroll 9") for (int j = 0; j < (count); j++)

#define UNUSED __attribute__((unused))

#endif
