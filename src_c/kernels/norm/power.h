/* Powers of positive numbers with a common exponent. */
#ifndef UNDERSTUDY_POWER_H
#define UNDERSTUDY_POWER_H

#include "kernels/maths/maths.h"

#include <math.h>

/* powers[i] = values[i] ^ -exponent, possibly in place. The exponents that networks use need roots only. The
 * exponent may be no float: floats compute in double. */
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
    } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            powers[i] = (float)pow_double(values[i], -exponent);
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
#pragma GCC ivdep
        for (int64_t i = 0; i < count; i++) {
            powers[i] = pow_double(values[i], -exponent);
        }
    }
}

#endif
