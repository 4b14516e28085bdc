/* Element conversion. Scalar forms for single values, array forms that vectorise.
 * fp32 -> fp16/bf16 rounds to nearest, ties to even, keeps subnormals, overflows to infinity and keeps NaN a (quiet) NaN;
 * fp16/bf16 -> fp32 is exact. Float -> integer truncates and saturates (NaN gives 0); anything but zero is true. */
#ifndef UNDERSTUDY_CONVERT_H
#define UNDERSTUDY_CONVERT_H

#include "tensor/view.h"

#include <string.h>

#ifdef __OPTIMIZE__
#define US_ALWAYS_INLINE static inline __attribute__((always_inline, unused))
#else /* the sanitizers' builds: a body that is checked once compiles in a tenth of the time of its copies */
#define US_ALWAYS_INLINE static inline __attribute__((unused))
#endif

US_ALWAYS_INLINE uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

US_ALWAYS_INLINE float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Selects instead of branches, and integer arithmetic where the value would be subnormal: these vectorise. */
US_ALWAYS_INLINE float half_to_float(uint16_t half)
{
    uint32_t magnitude = half & 0x7fffu;
    uint32_t bits = (magnitude << 13) + (112u << 23); /* 112 = difference of the exponent biases */
    bits += magnitude >= 0x7c00u ? 112u << 23 : 0;    /* infinity and NaN: the top exponent again */
    bits |= magnitude > 0x7c00u ? 0x00400000u : 0;    /* NaNs become quiet, as the hardware's conversion does */
    uint32_t subnormal = float_bits(bits_float(magnitude | 0x3f000000u) - 0.5f);
    bits = magnitude < 0x0400u ? subnormal : bits;
    return bits_float(bits | (uint32_t)(half & 0x8000u) << 16);
}

US_ALWAYS_INLINE uint16_t float_to_half(float value)
{
    uint32_t bits = float_bits(value);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t rebased = magnitude - (112u << 23);
    uint32_t half = (rebased + 0x0fffu + (rebased >> 13 & 1u)) >> 13;
    half = magnitude >= 0x47800000u ? 0x7c00u : half; /* 2^16 and more; [65520, 2^16) rounds up to it */
    uint32_t subnormal = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
    half = magnitude < 0x38800000u ? subnormal : half; /* below 2^-14 */
    half = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x03ffu) : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

US_ALWAYS_INLINE float bfloat_to_float(uint16_t bfloat)
{
    return bits_float((uint32_t)bfloat << 16);
}

US_ALWAYS_INLINE uint16_t float_to_bfloat(float value)
{
    uint32_t bits = float_bits(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    uint32_t quiet = bits >> 16 | 0x0040u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/* To float with the last bit odd when inexact, so that a second rounding to a 16-bit type rounds only once in effect. */
US_ALWAYS_INLINE float double_to_float_odd(double value)
{
    float nearest = (float)value;
    uint32_t bits = float_bits(nearest);
    double back = (double)nearest;
    bool inexact = back < value || back > value;
    bool grew = inexact && ((back > value) == (value > 0));
    bits -= grew ? 1u : 0u;
    return bits_float(bits | (inexact ? 1u : 0u));
}

/* Reads `count` elements of `dtype`, `stride` elements apart, into unit-stride float (or double), and back. Complex types
 * are not handled. */
void us_load_float(float *to, const void *from, DType dtype, int64_t stride, int64_t count);
void us_load_double(double *to, const void *from, DType dtype, int64_t stride, int64_t count);
void us_store_float(void *to, DType dtype, int64_t stride, const float *from, int64_t count);
void us_store_double(void *to, DType dtype, int64_t stride, const double *from, int64_t count);

#endif
