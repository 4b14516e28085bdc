/* Gradients of operators that look points up by their number. An index outside is a fault; sums are made in float64, in the
 * order of the points. */
#ifndef UNDERSTUDY_POINTS_H
#define UNDERSTUDY_POINTS_H

#include "kernels/kernels.h"

/* out[b, c, indices[b, n, i]] = sum of slopes[b, c, n] * weights[b, n, i] over n and i.
 * views: slopes [b, c, n], indices [b, n, 3], weights [b, n, 3], out [b, c, m]. */
Kernel us_three_points_gradient;

/* Of the squared distances of each point to that of the other set which its index names: 2 * slope * (point - other) to the
 * point, and the opposite to the other one.
 * views: first [b, n, 2], second [b, m, 2], indices of the first [b, n] and of the second [b, m], slopes of both distances,
 * slopes of first and of second. */
Kernel us_nearest_points_gradient;

#endif
