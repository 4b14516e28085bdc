/* The middle one of the sorted elements, found without sorting them. */
#ifndef UNDERSTUDY_MEDIAN_H
#define UNDERSTUDY_MEDIAN_H

#include "kernels/kernels.h"

/* views: input, values and, if wanted, indices; outputs have the input's rank, and size 1 on reduced axes. Of n
 * elements the value is number (n - 1) / 2 in ascending order, or number `rank` - 1; a line with NaN gives NaN, or leaves them out. The index
 * counts the reduced elements in row-major order; the first of equal ones wins. Of no elements NaN, in integers 0, and
 * index -1. Real types. */
typedef struct Median {
    uint32_t axes; /* bit d: axis d of the input is reduced */
    bool skips_nan;
    int32_t outputs;
    int64_t rank; /* 0: the middle one; else NaN is the greatest value */
} Median;
Kernel us_median;

#endif
