/* Places on an axis. */
#ifndef UNDERSTUDY_RESAMPLE_CLAMPED_H
#define UNDERSTUDY_RESAMPLE_CLAMPED_H

/* The nearest place from 0 to `last`; NaN is 0. */
static inline double clamped(double at, double last)
{
    return at > 0 ? (at < last ? at : last) : 0;
}

#endif
