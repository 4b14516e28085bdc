/* The mathematical functions of all kernels: one include for every group.
 *
 * Names. Every function is there for float and double: sin_float(x), sin_double(x). Code that is instantiated for both
 * writes MATHS(sin)(x) (tensor/instantiate.inc). The names after which the suffix comes:
 *     exp exp2 expm1 log log2 log10 log1p pow sqrt rsqrt
 *     sin cos tan asin acos atan atan2 sinc sin_pi cos_pi
 *     sinh cosh tanh asinh acosh atanh
 *     erf erfc erfinv normal_cdf lgamma digamma bessel_i0
 *     sigmoid log_sigmoid softplus gelu gelu_tanh silu mish, and gelu_slope gelu_tanh_slope silu_slope mish_slope
 *     fmod (sign of the dividend) floor_mod (sign of the divisor)
 *     floor ceil trunc rint fma fabs copysign
 * Those of float complex and double complex are complex_exp_float(z), complex_exp_double(z), …:
 *     complex_abs complex_mul complex_div complex_sqrt complex_exp complex_log complex_log2 complex_log10 complex_log1p
 *     complex_pow complex_sin complex_cos complex_tan complex_asin complex_acos complex_atan
 *     complex_sinh complex_cosh complex_tanh complex_asinh complex_acosh complex_atanh
 *
 * All are scalar, always inlined and (but for fmod and floor_mod of doubles) without branches, so that the loops of a
 * map over LANES elements vectorise. Arguments of any size are right; special arguments give what C's functions give.
 * The bits are the same on every processor: nothing of libm is called but what is rounded exactly by definition (sqrt,
 * floor, fma, …). The error bound of each function, in units of the last place (ULP), stands at its definition;
 * tests/kernels/test_maths.py measures it.
 *
 * Fused multiply-add is written out, a * b + c never contracted: measured on 16-bit activations the functions are 1.2
 * to 1.5 times as fast with it (sigmoid 1.2-1.35, swish 1.4-1.5, tanh 1.2), and products in twice the precision cost
 * two instructions. The level without such an instruction calls libm's fma, which gives the same bits slowly. */
#ifndef UNDERSTUDY_MATHS_H
#define UNDERSTUDY_MATHS_H

#include "tensor/convert.h"

#include <math.h>
#include <stdbool.h>

US_ALWAYS_INLINE uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

US_ALWAYS_INLINE double bits_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Constants of e^x that kernels/maths/exponential_lanes.inc shares. A minimax fit of degree 6. */
#define EXP_FLOAT_LOG2E 0x1.715476p+0f
#define EXP_FLOAT_LN2_HIGH 0x1.63p-1f
#define EXP_FLOAT_LN2_LOW -0x1.bd0106p-13f
#define EXP_FLOAT_C2 0x1.fffffcp-2f
#define EXP_FLOAT_C3 0x1.555492p-3f
#define EXP_FLOAT_C4 0x1.5558f2p-5f
#define EXP_FLOAT_C5 0x1.123a20p-7f
#define EXP_FLOAT_C6 0x1.6a23d0p-10f

/* 2 atanh(s) = 2 s + s^3 P(s^2) for |s| <= (sqrt 2 - 1) / (sqrt 2 + 1) */
#define LOG_SERIES                                                                                                  \
    0x1.5555555555592p-1, 0x1.999999997fd3bp-2, 0x1.24924941f8d5p-2, 0x1.c71c52027eab1p-3, 0x1.7466406f0c0ep-3,     \
        0x1.39a1909a072dp-3, 0x1.2f07253c9edebp-3

/* The groups for double, then for float, some of which compute in double, each by these words:
 *   REAL, WORD                 the type, and the integer of its size
 *   OF(name), TWOFOLD          name_float; the type of sums of two
 *   PICK(of_float, of_double)  a constant of the type
 *   ROUNDER                    1.5 * 2^23: added and taken away, it rounds to an integer; also in the sum's low bits
 *   HIDDEN_BIT                 2^23: numbers from here on are integers; with BIAS and MANTISSA, what the format is
 */
#define REAL_IS_FLOAT 0
#define REAL double
#define WORD uint64_t
#define WORD_BITS 64
#define TWOFOLD TwofoldDouble
#define OF(name) name##_double
#define PICK(of_float, of_double) of_double
#define BUILTIN(name) __builtin_##name
#define TO_BITS(x) double_bits(x)
#define FROM_BITS(bits) bits_double(bits)
#define MANTISSA 52
#define BIAS 1023
#define SIGN_BIT 0x8000000000000000ull
#define ONE_BITS 0x3ff0000000000000ull
#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdull
#define HIDDEN_BIT 0x1p52
#define ROUNDER 0x1.8p52
#define SMALLEST_NORMAL 0x1p-1022
#define LOG2_E 0x1.71547652b82fep+0
#define LN2 0x1.62e42fefa39efp-1
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define SQRT_HALF 0x1.6a09e667f3bcdp-1
#define HALF_PI_HIGH 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54

#include "kernels/maths/groups.inc"

#define REAL_IS_FLOAT 1
#define REAL float
#define WORD uint32_t
#define WORD_BITS 32
#define TWOFOLD TwofoldFloat
#define OF(name) name##_float
#define PICK(of_float, of_double) of_float
#define BUILTIN(name) __builtin_##name##f
#define TO_BITS(x) float_bits(x)
#define FROM_BITS(bits) bits_float(bits)
#define MANTISSA 23
#define BIAS 127
#define SIGN_BIT 0x80000000u
#define ONE_BITS 0x3f800000u
#define SQRT_HALF_BITS 0x3f3504f3u
#define HIDDEN_BIT 0x1p23f
#define ROUNDER 0x1.8p23f
#define SMALLEST_NORMAL 0x1p-126f
#define LOG2_E EXP_FLOAT_LOG2E
#define LN2 0x1.62e43p-1f
#define LN2_HIGH EXP_FLOAT_LN2_HIGH
#define LN2_LOW EXP_FLOAT_LN2_LOW
#define SQRT_HALF 0x1.6a09e6p-1f
#define HALF_PI_HIGH 0x1.921fb6p+0f
#define HALF_PI_LOW -0x1.777a5cp-25f

#include "kernels/maths/groups.inc"

#include "kernels/maths/bessel.h"
#include "kernels/maths/complex.h"
#include "kernels/maths/gamma.h"

#endif
