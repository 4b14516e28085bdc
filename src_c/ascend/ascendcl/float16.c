/* The runtime's own half conversions. They know neither infinity nor NaN (cann-runtime 8): exponent 31 is an ordinary
 * exponent when reading, and whatever does not fit saturates when writing. */
#include "acl/acl_base_rt.h"

#include <string.h>

enum { HALF_EXPONENT_BIAS = 15, FLOAT_EXPONENT_BIAS = 127, MANTISSA_DIFFERENCE = 23 - 10 };

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float aclFloat16ToFloat(aclFloat16 value)
{
    uint32_t sign = (uint32_t)(value >> 15) << 31;
    uint32_t exponent = (value >> 10) & 0x1f;
    uint32_t mantissa = value & 0x3ff;
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f; /* exact, and subnormal halves are normal floats */
        return sign != 0 ? -magnitude : magnitude;
    }
    uint32_t rebased = exponent + FLOAT_EXPONENT_BIAS - HALF_EXPONENT_BIAS;
    return float_of_bits(sign | rebased << 23 | mantissa << MANTISSA_DIFFERENCE);
}

/* value / 2^shift, rounded to nearest, ties to even. */
static uint32_t shift_to_nearest_even(uint32_t value, uint32_t shift)
{
    uint32_t rest = value & ((1u << shift) - 1);
    uint32_t half = 1u << (shift - 1);
    uint32_t quotient = value >> shift;
    return quotient + (rest > half || (rest == half && (quotient & 1) != 0));
}

aclFloat16 aclFloatToFloat16(float value)
{
    static const uint32_t LARGEST = 0x7bff;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 31 << 15;
    int32_t exponent = (int32_t)((bits >> 23) & 0xff) - FLOAT_EXPONENT_BIAS + HALF_EXPONENT_BIAS;
    uint32_t mantissa = bits & 0x7fffff;
    if (exponent > 30) {
        return (aclFloat16)(sign | LARGEST);
    }
    if (exponent > 0) {
        /* A carry out of the mantissa moves into the exponent, which is right, unless it reaches exponent 31. */
        uint32_t magnitude = shift_to_nearest_even((uint32_t)exponent << 23 | mantissa, MANTISSA_DIFFERENCE);
        return (aclFloat16)(sign | (magnitude > LARGEST ? LARGEST : magnitude));
    }
    if (exponent < -10) {
        return (aclFloat16)sign; /* below half of the smallest subnormal */
    }
    uint32_t significand = mantissa | 0x800000;
    return (aclFloat16)(sign | shift_to_nearest_even(significand, (uint32_t)(MANTISSA_DIFFERENCE + 1 - exponent)));
}
