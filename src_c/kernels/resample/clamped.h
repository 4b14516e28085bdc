/* Places on an axis. */
#ifndef UNDERSTUDY_RESAMPLE_CLAMPED_H
#define UNDERSTUDY_RESAMPLE_CLAMPED_H

#include <math.h>

/* The nearest place from 0 to `last`; NaN is 0. */
static inline double clamped(double at, double last)
{
    return at > 0 ? (at < last ? at : last) : 0;
}

/* The nearest integer, halves away from zero; floor of x + 0.5 would round 0.5 - 2^-54 up. */
static inline double rounded(double x)
{
    const double size = fabs(x), below = floor(size), nearest = below + (size - below >= 0.5 ? 1 : 0);
    return x < 0 ? -nearest : nearest;
}

#endif
