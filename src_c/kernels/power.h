/* Powers of positive numbers with a common exponent. */
#ifndef UNDERSTUDY_POWER_H
#define UNDERSTUDY_POWER_H

#include "kernels/maths/maths.h"

#include <math.h>

/* Neither zero, negative, infinite nor NaN: log_double takes it. */
US_ALWAYS_INLINE bool is_ordinary(float value)
{
    return (value > 0) & (value < INFINITY);
}

US_ALWAYS_INLINE bool all_ordinary(int64_t count, const float *values)
{
    int others = 0;
    for (int64_t i = 0; i < count; i++) {
        others |= !is_ordinary(values[i]);
    }
    return others == 0;
}

/* powers[i] = values[i] ^ -exponent, possibly in place. The exponents that networks use need roots only; other powers
 * of floats are e^(-exponent * ln x) in doubles, which is right to all bits of a float. Both vectorise. */
US_ALWAYS_INLINE void negative_powers_float(double exponent, int64_t count, const float *values, float *powers)
{
    if (exponent == 0.75) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            float root = sqrtf(values[i]);
            powers[i] = 1 / (root * sqrtf(root));
        }
    } else if (exponent == 0.5) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            powers[i] = 1 / sqrtf(values[i]);
        }
    } else if (exponent == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            powers[i] = 1 / values[i];
        }
    } else if (all_ordinary(count, values)) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            powers[i] = (float)exp_double(-exponent * log_double(values[i]));
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            const float value = values[i];
            powers[i] = (float)(is_ordinary(value) ? exp_double(-exponent * log_double(value)) : pow(value, -exponent));
        }
    }
}

US_ALWAYS_INLINE void negative_powers_double(double exponent, int64_t count, const double *values, double *powers)
{
    if (exponent == 0.75) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            double root = sqrt(values[i]);
            powers[i] = 1 / (root * sqrt(root));
        }
    } else if (exponent == 0.5) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            powers[i] = 1 / sqrt(values[i]);
        }
    } else if (exponent == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            powers[i] = 1 / values[i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            powers[i] = pow(values[i], -exponent);
        }
    }
}

#endif
