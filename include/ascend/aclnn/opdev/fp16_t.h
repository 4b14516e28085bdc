/* The half-precision type of operator development, as a value type of C++ programs: 1 sign bit, 5 exponent bits, 10 fraction
 * bits. Arithmetic is that of float, rounded to the nearest half (ties to even). In C the header declares nothing. */
#ifndef OPDEV_FP16_T_H
#define OPDEV_FP16_T_H

#ifdef __cplusplus

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace op {

struct fp16_t {
    uint16_t val; /* the bits */

    fp16_t() : val(0) {}
    template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
    fp16_t(T number) : val(from_double(static_cast<double>(number)))
    {
    }

    /* From bits, and back by `val`. */
    static fp16_t FromBits(uint16_t bits)
    {
        fp16_t made;
        made.val = bits;
        return made;
    }

    /* Exact. */
    operator float() const
    {
        const uint32_t sign = static_cast<uint32_t>(val & 0x8000u) << 16, exponent = val >> 10 & 0x1fu, fraction = val & 0x3ffu;
        if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 */
            const float size = static_cast<float>(fraction) * (1.0f / 16777216.0f);
            return sign != 0 ? -size : size;
        }
        const uint32_t bits = sign | (exponent == 0x1f ? 0xffu : exponent + 112u) << 23 | fraction << 13;
        float number;
        std::memcpy(&number, &bits, sizeof number);
        return number;
    }

    template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
    fp16_t &operator=(T number)
    {
        val = from_double(static_cast<double>(number));
        return *this;
    }

    fp16_t operator-() const { return FromBits(static_cast<uint16_t>(val ^ 0x8000u)); }
    fp16_t &operator+=(fp16_t other) { return *this = static_cast<float>(*this) + static_cast<float>(other); }
    fp16_t &operator-=(fp16_t other) { return *this = static_cast<float>(*this) - static_cast<float>(other); }
    fp16_t &operator*=(fp16_t other) { return *this = static_cast<float>(*this) * static_cast<float>(other); }
    fp16_t &operator/=(fp16_t other) { return *this = static_cast<float>(*this) / static_cast<float>(other); }

private:
    /* Rounds once, so that a double is not rounded to a float first. */
    static uint16_t from_double(double number)
    {
        uint64_t bits;
        std::memcpy(&bits, &number, sizeof bits);
        const uint16_t sign = static_cast<uint16_t>(bits >> 48 & 0x8000u);
        const uint64_t magnitude = bits & 0x7fffffffffffffffULL;
        if (magnitude > 0x7ff0000000000000ULL) {
            return static_cast<uint16_t>(sign | 0x7e00u); /* not a number */
        }
        if (magnitude >= 0x40effe0000000000ULL) { /* 65520 and more round to infinity */
            return static_cast<uint16_t>(sign | 0x7c00u);
        }
        const int exponent = static_cast<int>(magnitude >> 52) - 1023;
        if (exponent < -25) {
            return sign;
        }
        /* All fraction bits with the leading one; `drop` of them are behind the last one kept. */
        const uint64_t fraction = (magnitude & 0xfffffffffffffULL) | 0x10000000000000ULL;
        const int drop = exponent < -14 ? 42 + (-14 - exponent) : 42;
        const uint64_t half = 1ULL << (drop - 1), rest = fraction & ((1ULL << drop) - 1);
        uint64_t kept = fraction >> drop;
        kept += rest > half || (rest == half && (kept & 1) != 0);
        /* The leading one adds 1 to the exponent, as does a carry. */
        const uint64_t base = exponent < -14 ? 0 : static_cast<uint64_t>(exponent + 14) << 10;
        return static_cast<uint16_t>(sign | (base + kept));
    }
};

} // namespace op

#endif

#endif
