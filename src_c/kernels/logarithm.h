/* Logarithms, powers and the normal distribution without tables, branches or fused multiply-add, like exponential.h:
 * loops over them vectorise, the bits are the same on every instruction set, NaN stays NaN. */
#ifndef UNDERSTUDY_LOGARITHM_H
#define UNDERSTUDY_LOGARITHM_H

#include "kernels/exponential.h"

#include <math.h>

/* f - ln(1 + f) for f from -0.3 to 1, where f is exact: with s = f / (2 + f), ln(1 + f) = 2 atanh(s)
 * = f - (h - s (h + R)), h = f^2 / 2, R = 2/3 s^2 + 2/5 s^4 + … (minimax fit, relative error 2^-27). */
US_ALWAYS_INLINE float log_excess_float(float f)
{
    float s = f / (2.0f + f);
    float z = s * s;
    float z2 = z * z;
    float high = 0x1.dc3cc8p-3f * z2 + (0x1.bc6ab8p-3f * z + 0x1.24ca56p-2f);
    float series = high * z2 + (0x1.9998cep-2f * z + 0x1.555556p-1f);
    float h = 0.5f * f * f;
    return h - s * (h + z * series);
}

/* x = 2^n * m with m in [sqrt(1/2), sqrt(2)) for x > 0; subnormal x are multiplied by 2^23 first. */
US_ALWAYS_INLINE float split_float(float x, float *n)
{
    const bool is_subnormal = x < 0x1p-126f;
    const uint32_t bits = float_bits(is_subnormal ? x * 0x1p23f : x);
    const uint32_t offset = bits - 0x3f3504f3u; /* 0x3f3504f3 is sqrt(1/2) */
    *n = (float)((int32_t)offset >> 23) - (is_subnormal ? 23.0f : 0.0f);
    return bits_float(bits - (offset & 0xff800000u));
}

/* ln x as C defines it: NaN below 0, -inf at 0. n ln 2 is taken in two parts, the first exact. Error below 0.9 ULP. */
US_ALWAYS_INLINE float log_float(float x)
{
    float n;
    float f = split_float(x, &n) - 1.0f;
    float result = n * EXP_FLOAT_LN2_HIGH + (f - (log_excess_float(f) - n * EXP_FLOAT_LN2_LOW));
    result = x > 0.0f ? result : x == 0.0f ? -INFINITY : NAN;
    return x < INFINITY ? result : x;
}

/* ln(1 + x) for 0 <= x <= 1 and NaN. Error below 1.3 ULP. */
US_ALWAYS_INLINE float log1p_float(float x)
{
    return x - log_excess_float(x);
}

/* The probability that a normal variable exceeds |x|, from power = e^(-x^2 / 2): power * t * polynomial(t) with
 * t = 1 / (1 + 19/64 |x|), a minimax fit of relative error 2^-28 up to |x| = 15, where the power is 0. Error below
 * 6 ULP. */
US_ALWAYS_INLINE float normal_tail_float(float x, float power)
{
    float t = 1.0f / (1.0f + 0.296875f * (x < 0.0f ? -x : x));
    float t2 = t * t, t4 = t2 * t2;
    float q89 = -0x1.4cb84ep-6f * t + 0x1.d361c4p-4f;
    float q67 = -0x1.ed3896p-3f * t + 0x1.b9bb00p-3f;
    float q45 = -0x1.8a7cecp-4f * t + 0x1.b0efc0p-4f;
    float q23 = 0x1.34dfeep-4f * t + 0x1.c1dfe8p-4f;
    float q01 = 0x1.e47104p-4f * t + 0x1.e523d2p-4f;
    float q = ((q89 * t4 + (q67 * t2 + q45)) * t4) + (q23 * t2 + q01);
    return power * (t * q);
}

US_ALWAYS_INLINE double normal_tail_double(double x, double power)
{
    (void)power;
    return 0.5 * erfc((x < 0.0 ? -x : x) * 0.70710678118654752440);
}

/* log2 x for 0 < x < infinity, as good as 2^-37: that 128 times it is right to the last bits of a float. With
 * s = (m - 1) / (m + 1), log2 m = 2 atanh(s) / ln 2; the quotient is a float's reciprocal and one correction. */
US_ALWAYS_INLINE double log2_of_float(float x)
{
    float n;
    const float m = split_float(x, &n);
    const double d = (double)m + 1.0;
    const double r = (double)(1.0f / (m + 1.0f));
    const double s = ((double)m - 1.0) * (r + r * (1.0 - r * d));
    const double z = s * s;
    const double z2 = z * z;
    const double high = 0x1.5ce85d8f00f81p-2 * z2 + (0x1.a58d8855db366p-2 * z + 0x1.27777fe960281p-1);
    const double series = high * z2 + (0x1.ec709d12ce856p-1 * z + 0x1.71547652bedf7p+1);
    return (double)n + s * series;
}

/* x^y as C defines it, special cases included: 2^(y log2 |x|), the sign of x where y is odd. Error below 1.2 ULP. */
US_ALWAYS_INLINE float pow_float(float x, float y)
{
    const float size = bits_float(float_bits(x) & 0x7fffffffu);
    double logarithm = log2_of_float(size);
    logarithm = size == 0.0f ? (double)-INFINITY : logarithm;
    logarithm = size < INFINITY ? logarithm : (double)size;
    double t = (double)y * logarithm;
    t = t > 129.0 ? 129.0 : t;   /* 2^129 = inf */
    t = t < -151.0 ? -151.0 : t; /* 2^-151 = 0 */
    const float shifted = (float)t + 0x1.8p+23f;
    const float r = (float)(t - (double)(shifted - 0x1.8p+23f)) * 0x1.62e43p-1f;
    float result = exp_scale_float(1.0f + exp_polynomial_float(r), float_bits(shifted));

    const float y_size = bits_float(float_bits(y) & 0x7fffffffu);
    /* From 2^23 on floats are integers, whose last bit tells odd from even up to 2^24. */
    const float units = y_size < 0x1p23f ? y_size + 0x1p23f : y_size;
    const float fraction = y_size < 0x1p23f ? y_size - (units - 0x1p23f) : 0.0f;
    const uint32_t odd = units < 0x1p24f ? float_bits(units) : 0;
    const uint32_t sign = float_bits(x) & odd << 31;
    result = bits_float(float_bits(result) | (fraction == 0.0f ? sign : 0));
    /* A finite negative number to a power that is not an integer. */
    const float refused = fraction == 0.0f ? result : NAN;
    result = float_bits(x) - 0x80000001u < 0x7f7fffffu ? refused : result;
    /* 1 to any power, anything to the power of 0, -1 to an infinite power. */
    result = x == 1.0f ? 1.0f : result;
    result = y == 0.0f ? 1.0f : result;
    const float of_one = size == 1.0f ? 1.0f : result;
    result = y_size == INFINITY ? of_one : result;
    return result;
}

#endif
