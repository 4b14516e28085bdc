/* Elements that are not zero: how many, where, and elements picked or replaced by them. */
#ifndef UNDERSTUDY_TRUTHS_H
#define UNDERSTUDY_TRUTHS_H

#include "kernels/kernels.h"

/* False: no memory. */
bool us_count_true(const View *view, int64_t *count);

/* Coordinate d of the k-th of the `count` true elements, in row-major order, goes to[k * step + d * pitch]. False:
 * no memory. */
bool us_true_coordinates(const View *view, int64_t *to, int64_t step, int64_t pitch);

/* out = the coordinates of the N true elements of `self`, rank D. views: self, out, the result (launch.h), which
 * gets [N, D] (us_nonzero) or [D, N] (us_nonzero_columns). A contiguous out is filled from its start without gaps.
 * More than out has room for are a fault. */
Kernel us_nonzero;
Kernel us_nonzero_columns;

/* out = the elements of self, in row-major order, whose mask is true. views: self, mask, both of one shape; out of
 * rank 1, with room for all; the result: [N]. */
Kernel us_masked_select;

/* The elements of self whose mask is true are replaced by those of source, in order. views: self (read and written),
 * mask of its shape, source. Fewer elements than true ones are a fault. */
Kernel us_masked_scatter;

#endif
