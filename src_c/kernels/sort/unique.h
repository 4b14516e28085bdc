/* Distinct elements, or distinct slices along an axis. */
#ifndef UNDERSTUDY_UNIQUE_H
#define UNDERSTUDY_UNIQUE_H

#include "kernels/kernels.h"

/* values = the first of every group of equal items: of all items, in ascending order (of slices: lexicographic), or,
 * if `consecutive`, of neighbours. inverse = the group of each item, counts = how many items each group has. NaN
 * equals nothing. views: self, values (of self's type for slices), inverse, counts (either may be absent), then the
 * results (launch.h): of values, and of counts where that is given. values has room for all items, counts too;
 * contiguous ones are filled from their start without gaps. inverse has self's shape, or for slices an element for
 * each. */
typedef struct UniqueItems {
    bool consecutive;
    int32_t axis; /* -1: items are elements, in row-major order */
} UniqueItems;
Kernel us_unique;

#endif
