/* Results of attention to parts of the keys, merged into that of attention to all of them. */
#ifndef UNDERSTUDY_ATTENTION_MERGE_H
#define UNDERSTUDY_ATTENTION_MERGE_H

#include "kernels/kernels.h"

/* Two parts: M = max(m1, m2), S = s1 e^(m1 - M) + s2 e^(m2 - M), y = y1 e^(m1 - M) s1 / S + y2 e^(m2 - M) s2 / S, in float32.
 * A row without keys in either part, with maxima of -infinity, gets 0, and 0 as sum.
 * Views: y1 [rows…, depth], m1 and s1 [rows…, copies] (float32), rows having three axes, of which every copy becomes its own
 * M and S and the first one counts for y; y2, m2, s2; y, M, S. */
Kernel us_merge_two_parts;

/* Any number of parts, with l = m + ln s: M = max l, L = M + ln(sum of e^(l - M)), y = sum of y_i e^(l_i - L), in float32, parts
 * in their order. A part whose l is infinite, of either sign, has no keys for the row; without any y is 0 and L is +infinity, as
 * of attention without keys.
 * Views: for each part l [rows] (float32), then for each part y [rows, depth], then y, L?. */
typedef struct MergeParts {
    int32_t count;
} MergeParts;
Kernel us_merge_parts;

#endif
