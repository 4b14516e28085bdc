/* Statistics of a batch from those of its parts on several devices. */
#ifndef UNDERSTUDY_GATHER_STATISTICS_H
#define UNDERSTUDY_GATHER_STATISTICS_H

#include "kernels/kernels.h"

/* first and second are [parts, channels], counts [parts]: means and 1/sqrt(variance + epsilon), or the sums of x and
 * x^2 where `sums`. mean = E(x), inverse = 1/sqrt(Var(x) + epsilon) over all parts; the running mean and variance
 * become (1 - momentum) times themselves plus momentum times E(x) and Var(x) n / (n - 1). Computed in float64.
 * Views: first, second, counts, running mean?, running variance?, mean, inverse. */
typedef struct GatherStatistics {
    double momentum, epsilon;
    bool sums;
} GatherStatistics;
Kernel us_gather_statistics;

#endif
