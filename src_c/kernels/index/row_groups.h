/* Sums of rows that belong together. */
#ifndef UNDERSTUDY_INDEX_ROW_GROUPS_H
#define UNDERSTUDY_INDEX_ROW_GROUPS_H

#include "kernels/kernels.h"

/* out[g] = the sum of the rows of group g, in order, in float64 and rounded once. Groups have as many rows each, or, with
 * ends, group g ends before row ends[g], `sizes`: has ends[g] rows. Ends that fall, negative sizes, and others than all rows
 * together are a fault.
 * views: rows [groups, count, width], or with ends [rows, width], ends? [groups] (int32 or int64), out [groups, width]. */
typedef struct SumGroups {
    bool sizes;
} SumGroups;
Kernel us_sum_groups;

#endif
