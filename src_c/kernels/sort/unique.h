/* Distinct elements, or distinct slices along an axis. */
#ifndef UNDERSTUDY_UNIQUE_H
#define UNDERSTUDY_UNIQUE_H

#include "kernels/kernels.h"

/* values = the first of every group of equal items: of all items, in ascending order (of slices: lexicographic), or,
 * if `consecutive`, of neighbours. inverse = the group of each item, counts = how many items each group has. NaN
 * equals nothing. views: self, values (of self's type for slices), inverse, counts (either may be absent), then the
 * results (launch.h): of values, and of counts where that is given. values has room for all items, counts too;
 * ones that us_unique_packs are filled from their start without gaps. inverse has self's shape, or for slices an element
 * for each. */
typedef struct UniqueItems {
    bool consecutive;
    int32_t axis; /* -1: items are elements, in row-major order */
} UniqueItems;
Kernel us_unique;

/* Whether a result of such items along an axis lies in its room without gaps: where that is contiguous, or has not the
 * items' shape. */
bool us_unique_packs(const View *room, int32_t rank, const int64_t *shape, int32_t axis);

#endif
