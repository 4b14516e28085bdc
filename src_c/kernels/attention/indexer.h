/* For every row the keys that matter most to it. Computed in float32; the same bits for any number of threads. */
#ifndef UNDERSTUDY_ATTENTION_INDEXER_H
#define UNDERSTUDY_ATTENTION_INDEXER_H

#include "kernels/attention/tokens.h"

/* indices = the `count` keys of the row's sequence, of those that it sees, with the largest scores, in descending order, equal
 * ones and NaN, the greatest, as us_topk has them; then -1. A key's score is the sum over heads of weight * max(q k, 0).
 * views: query [rows…, N, D], key [keys…, 1, D], weights [rows…, N], row lengths?, key lengths? and pages? as in tokens.h,
 * indices [rows…, 1, count] (int32), values? of the same shape: the scores, and -infinity behind them.
 * The attributes are a TokenLayout. */
Kernel us_lightning_indexer;

/* The gradients of the values by query, key and weights, of rows in their order: several select the same keys.
 * views: query, key, weights, row lengths? and key lengths? as above, indices [rows…, …, count], slopes of the values as them, then
 * dquery, dkey and dweights. What no row selects, and rows of no sequence, have slopes of 0. */
Kernel us_lightning_indexer_backward;

#endif
