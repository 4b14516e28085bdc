/* Powers of positive numbers with a common exponent. */
#ifndef UNDERSTUDY_POWER_H
#define UNDERSTUDY_POWER_H

#include <math.h>
#include <stdint.h>

/* values[i] ^ -exponent. The exponents that networks use need roots only, which vectorise. */
static inline void negative_powers(double exponent, int64_t count, double *values)
{
    if (exponent == 0.75) {
        for (int64_t i = 0; i < count; i++) {
            double root = sqrt(values[i]);
            values[i] = 1 / (root * sqrt(root));
        }
    } else if (exponent == 0.5) {
        for (int64_t i = 0; i < count; i++) {
            values[i] = 1 / sqrt(values[i]);
        }
    } else if (exponent == 1) {
        for (int64_t i = 0; i < count; i++) {
            values[i] = 1 / values[i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            values[i] = pow(values[i], -exponent);
        }
    }
}

#endif
