/* Sorting along an axis, stable: of equal elements the first one comes first, ascending or descending. NaN is the
 * greatest value, all NaNs and both zeros are equal. */
#ifndef UNDERSTUDY_SORT_H
#define UNDERSTUDY_SORT_H

#include "kernels/kernels.h"

/* views: self, values, indices of self's shape; `values` or `indices` may be absent, and values may be self. */
typedef struct SortLines {
    int32_t axis; /* 0 for a single element */
    bool descending;
} SortLines;
Kernel us_sort;

/* The first ones of each line as us_sort puts them: as many as values has along the axis. */
Kernel us_topk;

#endif
