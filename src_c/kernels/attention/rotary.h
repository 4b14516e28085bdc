/* Gradients of rotary position embeddings, and embeddings by a matrix. The embedding itself is the map `rotate`. */
#ifndef UNDERSTUDY_ROTARY_H
#define UNDERSTUDY_ROTARY_H

#include "kernels/kernels.h"

/* With y1 = x1 c1 - x2 s1, y2 = x2 c2 + x1 s2: the gradients of x, and of the cosines and sines, which are summed over
 * the axes along which these are broadcast. Computed in float32, sums in float64.
 * Views: dy1, dy2, x1?, x2?, c1, c2, s1, s2, dx1, dx2, dc1, dc2, ds1, ds2 (these four are written where x is given). */
Kernel us_rotary_backward;

/* y = x * cos + (x @ matrix) * sin, in float32. Views: x [..., n], cos and sin [...: as x or 1, n], matrix [n, n], y. */
Kernel us_rotary_product;

#endif
