/* Sinkhorn's balance of a matrix. */
#ifndef UNDERSTUDY_SINKHORN_H
#define UNDERSTUDY_SINKHORN_H

#include "kernels/kernels.h"

/* p[i, j] = d0[i] * k[i, j] * d1[j] with k = exp(cost), r x c. From d1 = 1 on, d0[i] = 1 / (r * (sum of k[i, j] * d1[j] + 1e-8)) and
 * d1[j] = 1 / (c * (sum of k[i, j] * d0[i] + 1e-8)) are made in turn until the mean change of d1 is at most `tolerance`, or no
 * number, or SINKHORN_STEPS times. In float64.
 * views: cost, p */
typedef struct Sinkhorn {
    double tolerance;
} Sinkhorn;
Kernel us_sinkhorn;

enum { SINKHORN_STEPS = 1000 };

#endif
