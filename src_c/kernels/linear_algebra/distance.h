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

#endif
