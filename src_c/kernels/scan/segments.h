/* Exponentials of the sums of all segments of lines: the decay between any two places of a sequence. */
#ifndef UNDERSTUDY_SEGMENTS_H
#define UNDERSTUDY_SEGMENTS_H

#include "kernels/kernels.h"

/* out[..., i, j] = exp(x[..., j + 1] + … + x[..., i]), 1 where i = j and 0 above. Sums in float64. Views: x, out, with the
 * last axis twice. */
Kernel us_exp_segments;
/* dx[..., i] = the sum of slope[..., k, j] * out[..., k, j] over j < i <= k, in float64. Views: slope, out, dx. */
Kernel us_exp_segments_backward;

#endif
