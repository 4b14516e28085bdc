/* A sampler of tokens: which one of a row's scores is drawn. */
#ifndef UNDERSTUDY_SORT_SAMPLE_H
#define UNDERSTUDY_SORT_SAMPLE_H

#include "kernels/kernels.h"

/* Row by row: a k of 1 … min(columns, most) keeps the k largest scores, other ones all. prob = softmax of what is kept, in
 * float32 with sums in double, or with `normalized` the scores. p below 1 keeps the fewest of the largest whose prob make
 * p, and least above 0 those whose prob is at least the largest's times least, and the largest at any rate. chosen = the
 * column of the largest prob / (q[place] + eps), or of the largest prob; place is that among the kept ones, which are in
 * descending order (stable; NaN is the greatest) unless k, p and least keep all. Of equal ones the first is chosen.
 * left = the kept scores, each in its column, elsewhere -infinity, with `normalized` 0; columns and probs = those of
 * all that k kept, in descending order, where p or least dropped one prob 0, and behind them 0 and 0.
 * views: scores [rows, columns], k and p [rows]; then, or absent: q [rows, columns], least [rows], chosen [rows] (int64),
 * left, columns (int64) and probs [rows, columns]. */
typedef struct SampleTokens {
    int64_t most;
    double eps;
    bool normalized;
} SampleTokens;
Kernel us_sample_tokens;

#endif
