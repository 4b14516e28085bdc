/* Windows of rows, compressed: each becomes the sum of its rows, weighted by their place in it. */
#ifndef UNDERSTUDY_WINDOWS_H
#define UNDERSTUDY_WINDOWS_H

#include "kernels/kernels.h"

/* y[o, n, d] = the sum over j of weight[j, n] * x[first[o] + j, n, d], in float32, rounded once.
 * views: x [T, N, D], weight [L, N], y [O, N, D]; attributes: int64_t first[O], none smaller than the one before. */
Kernel us_windows;

/* Its gradients. views: dy [O, N, D], x, weight, dx, dweight. */
Kernel us_windows_backward;

/* Windows of rows that may lie in pages, at most one of a sequence. Window s begins at row first[s] of sequence s, or, without
 * pages, of x; none where it is negative. Its sum goes to row slots[s] of y, the other rows stay; no two have one slot.
 * views: x [T, N, D] or [page, row, N, D], weight [L, N], slots [S], pages [S, …] (absent, or int32: which page of x has the
 * sequence's next rows), y [slot, N, D]; attributes: int64_t first[S]. */
Kernel us_cached_windows;

#endif
