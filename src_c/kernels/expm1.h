/* e^x - 1 and tanh without tables or branches, of full relative accuracy around 0. Written like exponential.h: loops
 * over them vectorise, the bits are the same on every instruction set, NaN stays NaN. */
#ifndef UNDERSTUDY_EXPM1_H
#define UNDERSTUDY_EXPM1_H

#include "kernels/exponential.h"

/* With e^x = 2^n * (1 + p), p = r + r^2 q(r) as in exp_float: e^x - 1 = 2^n * p + (2^n - 1). 2^n - 1 is exact where it
 * matters, and for n = 0 nothing cancels. x is limited to where 2^n is a normal number: beyond, the result is -1 or is
 * taken from exp_float. */
US_ALWAYS_INLINE float expm1_float(float x)
{
    float limited = x > 60.0f ? 60.0f : x;
    limited = limited < -60.0f ? -60.0f : limited;
    float shifted = limited * 0x1.715476p+0f + 0x1.8p+23f;
    uint32_t n = float_bits(shifted);
    float whole = shifted - 0x1.8p+23f;
    float r = (limited - whole * 0x1.63p-1f) - whole * -0x1.bd0106p-13f;
    float q = 0x1.6a23d0p-10f;
    q = q * r + 0x1.123a20p-7f;
    q = q * r + 0x1.5558f2p-5f;
    q = q * r + 0x1.555492p-3f;
    q = q * r + 0x1.fffffcp-2f;
    float scale = bits_float((n << 23) + (127u << 23));
    float small = scale * (r + r * r * q) + (scale - 1.0f);
    return x > 60.0f ? exp_float(x) : small;
}

US_ALWAYS_INLINE double expm1_double(double x)
{
    double limited = x > 60.0 ? 60.0 : x;
    limited = limited < -60.0 ? -60.0 : limited;
    double shifted = limited * 0x1.71547652b82fep+0 + 0x1.8p+52;
    uint64_t n = double_bits(shifted);
    double whole = shifted - 0x1.8p+52;
    double r = (limited - whole * 0x1.62e42feep-1) - whole * 0x1.a39ef35793c76p-33;
    double q = 0x1.1e3d093d7ff16p-29;
    q = q * r + 0x1.af6c1dc159cb2p-26;
    q = q * r + 0x1.27e5b491ba199p-22;
    q = q * r + 0x1.71ddf0027bf77p-19;
    q = q * r + 0x1.a01a01364ec3ap-16;
    q = q * r + 0x1.a01a01b38a1a0p-13;
    q = q * r + 0x1.6c16c16c305dbp-10;
    q = q * r + 0x1.111111110ec3fp-7;
    q = q * r + 0x1.5555555555503p-5;
    q = q * r + 0x1.555555555555bp-3;
    q = q * r + 0.5;
    double scale = bits_double((n << 52) + (1023ull << 52));
    double small = scale * (r + r * r * q) + (scale - 1.0);
    return x > 60.0 ? exp_double(x) : small;
}

/* tanh |x| = e / (e + 2) with e = e^(2|x|) - 1; 1 from 20 on in either precision. */
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
