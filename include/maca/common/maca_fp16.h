/* The IEEE half-precision number of two bytes.
 * In C it is its bits; in C++ it can be made from a float, with rounding to the nearest,
 * and used as one. */
#ifndef MACA_FP16_H_
#define MACA_FP16_H_

#include <stdint.h>
#ifdef __cplusplus
#include <cstring>
#endif

typedef struct __half {
    uint16_t x;
#ifdef __cplusplus
    __half() = default;
    __half(float value) : x(bits_of(value)) {}
    operator float() const { return value_of(x); }

private:
    static uint16_t bits_of(float value)
    {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
        if (magnitude > 0x7f800000u) {
            return static_cast<uint16_t>(sign | 0x7e00u); /* not a number */
        }
        if (magnitude >= 0x477ff000u) {
            return static_cast<uint16_t>(sign | 0x7c00u); /* 65520 and more */
        }
        if (magnitude >= 0x38800000u) { /* 2^-14 */
            const uint32_t rebased = magnitude - (112u << 23);
            return static_cast<uint16_t>(sign | (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13);
        }
        float positive;
        std::memcpy(&positive, &magnitude, sizeof positive);
        positive += 0.5f; /* the last bit of a number near 0.5 is worth 2^-24, as the last of a subnormal */
        std::memcpy(&bits, &positive, sizeof bits);
        return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
    }
    static float value_of(uint16_t stored)
    {
        const uint32_t sign = static_cast<uint32_t>(stored & 0x8000u) << 16, magnitude = stored & 0x7fffu;
        uint32_t bits = magnitude >= 0x7c00u ? magnitude << 13 | 0x7f800000u : (magnitude << 13) + (112u << 23);
        float value;
        if (magnitude < 0x400u) { /* subnormal */
            value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;
            std::memcpy(&bits, &value, sizeof bits);
        }
        bits |= sign;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
#endif
} __half;
typedef __half maca_half;

#ifdef __cplusplus
inline __half __float2half(float value) { return __half(value); }
inline __half __float2half_rn(float value) { return __half(value); }
inline float __half2float(__half value) { return value; }
#endif

#endif
