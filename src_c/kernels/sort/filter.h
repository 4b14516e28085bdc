/* What a sampler of tokens leaves of the scores: the k largest, and of these as many as make a probability of p. */
#ifndef UNDERSTUDY_SORT_FILTER_H
#define UNDERSTUDY_SORT_FILTER_H

#include "kernels/kernels.h"

/* out = scores, but -infinity where they are below the row's k-th largest; then, of the rest in ascending order (stable), where
 * the sum of the softmax up to there is at most 1 - p, the last one excepted. Powers of e in float32, sums in double.
 * A k outside 1 ... columns leaves nothing out. views: scores [rows, columns], p [rows] or absent, k [rows] or absent, out. */
Kernel us_filter_scores;

#endif
