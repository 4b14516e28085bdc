/* exp and log without tables, branches or fused multiply-add: loops over them vectorise, and give the same bits on
 * every instruction set. Overflow gives inf, subnormal results are kept, NaN stays NaN. */
#ifndef UNDERSTUDY_EXPONENTIAL_H
#define UNDERSTUDY_EXPONENTIAL_H

#include "tensor/convert.h"

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

/* The value, or 0. For conditions that are the same for every element: as a branch they would keep a loop from
 * vectorising. */
US_ALWAYS_INLINE float value_if_float(bool keep, float value)
{
    return bits_float(float_bits(value) & -(uint32_t)keep);
}

US_ALWAYS_INLINE double value_if_double(bool keep, double value)
{
    return bits_double(double_bits(value) & -(uint64_t)keep);
}

/* e^x = 2^n * e^r with n = round(x / ln 2), |r| <= ln 2 / 2. Adding 1.5 * 2^23 leaves n in the low bits of the sum.
 * ln 2 is subtracted in two parts, of which the first has so few bits that n times it is exact. The polynomial is a
 * minimax fit of degree 6 (relative error 2^-28.3). */
#define EXP_FLOAT_LOG2E 0x1.715476p+0f
#define EXP_FLOAT_LN2_HIGH 0x1.63p-1f
#define EXP_FLOAT_LN2_LOW -0x1.bd0106p-13f
#define EXP_FLOAT_C2 0x1.fffffcp-2f
#define EXP_FLOAT_C3 0x1.555492p-3f
#define EXP_FLOAT_C4 0x1.5558f2p-5f
#define EXP_FLOAT_C5 0x1.123a20p-7f
#define EXP_FLOAT_C6 0x1.6a23d0p-10f

/* n in the low bits of the result, and r. */
US_ALWAYS_INLINE uint32_t exp_reduce_float(float x, float *r)
{
    float shifted = x * EXP_FLOAT_LOG2E + 0x1.8p+23f;
    float whole = shifted - 0x1.8p+23f;
    *r = (x - whole * EXP_FLOAT_LN2_HIGH) - whole * EXP_FLOAT_LN2_LOW;
    return float_bits(shifted);
}

/* e^r - 1. Summed in pairs, as are the other polynomials here: loops over a long chain of operations wait for it. */
US_ALWAYS_INLINE float exp_polynomial_float(float r)
{
    const float r2 = r * r;
    const float high = EXP_FLOAT_C6 * r2 + (EXP_FLOAT_C5 * r + EXP_FLOAT_C4);
    const float q = high * r2 + (EXP_FLOAT_C3 * r + EXP_FLOAT_C2);
    return q * r2 + r;
}

/* 2^n where that is a normal number */
US_ALWAYS_INLINE float power_of_two_float(uint32_t n)
{
    return bits_float((n << 23) + (127u << 23));
}

/* power * 2^n as power * 2^floor(n/2) * 2^ceil(n/2), both normal numbers, so that only the last product rounds, also
 * where it is subnormal. */
US_ALWAYS_INLINE float exp_scale_float(float power, uint32_t n)
{
    uint32_t half = n >> 1 << 23;
    return power * bits_float(half + (127u << 23)) * bits_float((n << 23) - half + (127u << 23));
}

/* Error over all floats: at most 0.991 ULP, 0.751 where the result is subnormal. */
US_ALWAYS_INLINE float exp_float(float x)
{
    x = x > 90.0f ? 90.0f : x;     /* e^90 = inf */
    x = x < -105.0f ? -105.0f : x; /* e^-105 = 0 */
    float r;
    uint32_t n = exp_reduce_float(x, &r);
    return exp_scale_float(1.0f + exp_polynomial_float(r), n);
}

/* The same in fp64: degree 12 (2^-64). Error found in samples: below 0.95 ULP. */
US_ALWAYS_INLINE uint64_t exp_reduce_double(double x, double *r)
{
    double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p+52;
    double whole = shifted - 0x1.8p+52;
    *r = (x - whole * 0x1.62e42feep-1) - whole * 0x1.a39ef35793c76p-33;
    return double_bits(shifted);
}

US_ALWAYS_INLINE double exp_polynomial_double(double r)
{
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
    return r + r * r * q;
}

US_ALWAYS_INLINE double power_of_two_double(uint64_t n)
{
    return bits_double((n << 52) + (1023ull << 52));
}

US_ALWAYS_INLINE double exp_double(double x)
{
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double r;
    uint64_t n = exp_reduce_double(x, &r);
    uint64_t half = n >> 1 << 52;
    double power = 1.0 + exp_polynomial_double(r);
    return power * bits_double(half + (1023ull << 52)) * bits_double((n << 52) - half + (1023ull << 52));
}

/* 1 / (1 + e^-x) from power = e^exponent, the exponent being -|x|: nothing overflows, and results keep their precision
 * down to the subnormal ones. */
US_ALWAYS_INLINE float logistic_exponent_float(float x)
{
    return bits_float(float_bits(x) | 0x80000000u);
}

US_ALWAYS_INLINE float logistic_float(float x, float power)
{
    return (x < 0.0f ? power : 1.0f) / (1.0f + power);
}

US_ALWAYS_INLINE double logistic_exponent_double(double x)
{
    return bits_double(double_bits(x) | 0x8000000000000000ull);
}

US_ALWAYS_INLINE double logistic_double(double x, double power)
{
    return (x < 0.0 ? power : 1.0) / (1.0 + power);
}

/* ln x for normal x > 0 and NaN, within 2 ULP: x = 2^n * m with m in [sqrt(1/2), sqrt(2)), and with f = (m-1)/(m+1)
 * ln m = 2 (f + f^3/3 + f^5/5 + …). */
US_ALWAYS_INLINE double log_double(double x)
{
    const uint64_t offset = double_bits(x) - 0x3fe6a09e667f3bcdull;
    const double n = (double)(int32_t)((int64_t)offset >> 52);
    const double m = bits_double(double_bits(x) - (offset & 0xfff0000000000000ull));
    const double f = (m - 1) / (m + 1), s = f * f;
    double series = 1.0 / 21;
    for (int k = 19; k >= 3; k -= 2) {
        series = series * s + 1.0 / k;
    }
    double result = n * 0x1.62e42feep-1 + (2 * f + (2 * f * s * series + n * 0x1.a39ef35793c76p-33));
    return x == x ? result : x;
}

#endif
