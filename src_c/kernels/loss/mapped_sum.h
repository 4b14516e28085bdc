/* The sum of what an element-wise formula gives, in one pass: losses with a mean or a sum. */
#ifndef UNDERSTUDY_MAPPED_SUM_H
#define UNDERSTUDY_MAPPED_SUM_H

#include "kernels/map/map.h"

/* out = sum of formula(inputs; numbers) over the shape that the inputs broadcast to / divisor. views: the inputs,
 * absent ones as in a map, and out, one element. Real lanes only. Sums are taken in float64 (integers in int64) over
 * blocks of a fixed size, so they are the same bits for any number of threads; the result is rounded to the compute
 * type and then to out's. A sum of nothing is 0, and 0 / 0 a NaN. */
typedef struct MappedSum {
    MapCall map;
    double divisor;
} MappedSum;
Kernel us_mapped_sum;

#endif
