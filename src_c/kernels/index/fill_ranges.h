/* Ranges of rows that get a value, which tensors tell. */
#ifndef UNDERSTUDY_INDEX_FILL_RANGES_H
#define UNDERSTUDY_INDEX_FILL_RANGES_H

#include "kernels/kernels.h"

/* out = x, but elements starts[k, r] … ends[k, r] - 1 of row r are values[k], of several the last one; a range that
 * leaves its row is a fault, before anything is written.
 * views, row-major: x [rows, columns], starts, ends (int32) [fills, rows], values [fills], out. All types but int32
 * are x's. */
Kernel us_fill_ranges;

#endif
