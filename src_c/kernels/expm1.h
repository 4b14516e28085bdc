/* e^x - 1 and tanh without tables or branches, of full relative accuracy around 0. Written like exponential.h: loops
 * over them vectorise, the bits are the same on every instruction set, NaN stays NaN. */
#ifndef UNDERSTUDY_EXPM1_H
#define UNDERSTUDY_EXPM1_H

#include "kernels/exponential.h"

/* With e^x = 2^n * (1 + p): e^x - 1 = 2^n * p + (2^n - 1), of which 2^n - 1 is exact where it matters; for n = 0
 * nothing cancels. For x up to 60, so that 2^n is a normal number; from -60 down the result is -1. Error below 2
 * ULP: where n is 1 or -1, half the error of p is left after a cancellation. */
US_ALWAYS_INLINE float expm1_float(float x)
{
    float r;
    float scale = power_of_two_float(exp_reduce_float(x < -60.0f ? -60.0f : x, &r));
    return scale * exp_polynomial_float(r) + (scale - 1.0f);
}

US_ALWAYS_INLINE double expm1_double(double x)
{
    double r;
    double scale = power_of_two_double(exp_reduce_double(x < -60.0 ? -60.0 : x, &r));
    return scale * exp_polynomial_double(r) + (scale - 1.0);
}

/* tanh |x| = e / (e + 2) with e = e^(2|x|) - 1; 1 from 20 on in either precision. Error below 3 ULP. */
US_ALWAYS_INLINE float tanh_float(float x)
{
    float size = x < 0.0f ? -x : x;
    size = size > 20.0f ? 20.0f : size;
    float e = expm1_float(2.0f * size);
    float y = e / (e + 2.0f);
    return bits_float((float_bits(y) & 0x7fffffffu) | (float_bits(x) & 0x80000000u));
}

US_ALWAYS_INLINE double tanh_double(double x)
{
    double size = x < 0.0 ? -x : x;
    size = size > 20.0 ? 20.0 : size;
    double e = expm1_double(2.0 * size);
    double y = e / (e + 2.0);
    return bits_double((double_bits(y) & 0x7fffffffffffffffull) | (double_bits(x) & 0x8000000000000000ull));
}

#endif
