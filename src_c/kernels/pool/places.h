/* Maxima of windows and where they are, and averages over windows that share out an axis: for every vendor. Strides say
 * the layout. Views have rank 5: images, channels and three spatial axes; fewer are written as sizes of 1. float64 is
 * computed in float64, other floating types in float32. */
#ifndef UNDERSTUDY_POOL_PLACES_H
#define UNDERSTUDY_POOL_PLACES_H

#include "kernels/kernels.h"

/* Window o of an axis begins at o * stride - padding, and has `window` elements; those outside do not count. Adaptive:
 * it goes from floor(o * in / out) to ceil((o + 1) * in / out), the arrays are not read. */
typedef struct PoolWindows {
    bool adaptive;
    bool masked; /* `places` is a mask */
    int64_t window[3], padding[3], stride[3];
} PoolWindows;

/* views: x, y, places. The last NaN of a window wins, else the first largest element, which is number `place` of the
 * plane (row-major). `places` has the shape of y and an integer type, or is absent.
 * A mask is int8 [images, channels, 1, taps, bytes] with at least 4 bytes for every element of y, if there are two taps or
 * more; what it holds is known to the gradient only. */
Kernel us_pool_maximum;

/* views: dy, places, dx = 0, then dx[place] += dy, in the order of dy. A place outside the plane gets nothing. */
Kernel us_pool_maximum_gradient;

/* views: x, y; dy, dx. Windows are adaptive. Sums go down the columns of a window first. */
Kernel us_pool_average;
Kernel us_pool_average_gradient;

#endif
