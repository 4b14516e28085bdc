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

/* The same of integers: a product q k is multiplied by the scales of both first. views: query, key, weights, lengths?, pages?,
 * indices and values? as above, then the scales of the query [rows…, N] and of the keys [keys…, 1]. */
Kernel us_quantized_indexer;

/* maximum = the largest score of the keys that a row sees, sum = that of e^(score - maximum); -infinity and 0 where it sees none.
 * views: query, key and weights as above, maximum and sum, a number for each row in their order. The attributes are
 * ListedTokens. */
Kernel us_indexer_statistics;

/* The gradients of the values by query, key and weights, of rows in their order: several select the same keys.
 * views: query, key, weights, row lengths? and key lengths? as above, indices [rows…, …, count], slopes of the values as them,
 * then dquery, dkey and dweights. What no row selects, and rows of no sequence, have slopes of 0. */
Kernel us_lightning_indexer_backward;

/* The gradients of the loss that teaches it, and this loss: the sum over rows of the divergence of softmax(scores) from p, which
 * is the sum over heads of e^(scale q k - maximum) / sum, divided by its own sum. The slopes of a row's scores are
 * softmax(scores) - p. Keys are those that the row sees, of these the ones that it selects where there are indices.
 * views: query, key and weights of the indexer, indices?, query [rows…, N, D], key [keys…, M, D], their further parts?, maximum
 * and sum [batch, M, row, N / M] or, of packed rows, [M, row, N / M], maximum? and sum? of the indexer's softmax
 * (us_indexer_statistics), then dquery, dkey and dweights of the indexer and the loss, one number. The attributes are
 * ListedTokens. */
Kernel us_indexer_loss_backward;

#endif
