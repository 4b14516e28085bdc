/* The brain floating-point number of two bytes.
 * In C it is its bits; in C++ it can be made from a float, with rounding to the nearest,
 * and used as one. */
#ifndef MACA_BFLOAT16_H_
#define MACA_BFLOAT16_H_

#include <stdint.h>
#ifdef __cplusplus
#include <cstring>
#endif

typedef struct __maca_bfloat16 {
    uint16_t x;
#ifdef __cplusplus
    __maca_bfloat16() = default;
    __maca_bfloat16(float value) : x(bits_of(value)) {}
    operator float() const { return value_of(x); }

private:
    static uint16_t bits_of(float value)
    {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u
                                                                        : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
    static float value_of(uint16_t stored)
    {
        const uint32_t bits = static_cast<uint32_t>(stored) << 16;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
#endif
} __maca_bfloat16;
typedef __maca_bfloat16 maca_bfloat16;

#ifdef __cplusplus
inline __maca_bfloat16 __float2bfloat16(float value) { return __maca_bfloat16(value); }
inline __maca_bfloat16 __float2bfloat16_rn(float value) { return __maca_bfloat16(value); }
inline float __bfloat162float(__maca_bfloat16 value) { return value; }
#endif

#endif
