/* Distances between all pairs of rows. */
#ifndef UNDERSTUDY_DISTANCE_H
#define UNDERSTUDY_DISTANCE_H

#include "kernels/kernels.h"

/* a [batch…, p, m], b [batch…, r, m], out [batch…, p, r], one batch for all. out = (sum |a_i - b_j|^power)^(1/power) in
 * float64, rounded once; power 0 counts what differs, infinity takes the largest difference. NaN in either gives NaN. */
typedef struct Distance {
    double power;
} Distance;
Kernel us_distance;

/* a [n, m], out [n (n - 1) / 2]: of each row to those after it. */
Kernel us_pair_distance;

/* slopes [batch…, p, r], a, b, distances as us_distance made them, out [batch…, p, m] = sum over r of slope times the
 * derivative of the distance by a: 0 where rows are equal, for power 0, and, of the largest difference, for all that are
 * smaller. In float64, rounded once. */
Kernel us_distance_gradient;

#endif
