/* Attention between pairs: a row (n, m) sees the pairs (n, k) and (k, m) for every k. Computed in float32, results rounded once;
 * the same bits for any number of threads. */
#ifndef UNDERSTUDY_FLOYD_H
#define UNDERSTUDY_FLOYD_H

#include "kernels/kernels.h"

typedef struct FloydAttention {
    float scale;
} FloydAttention;

/* Of every batch and head, with s[n, m, k] = scale * (q[n, m] k1[n, k] + q[n, m] k2[k, m]) and w = softmax(s) along k, where the
 * mask does not leave k out: out[n, m] = the sum over k of w[n, m, k] (v1[n, k] + v2[k, m]).
 * views: query [B, H, N, M, D], key1 and value1 [B, H, N, K, D], key2 and value2 [B, H, K, M, D], mask? [B, 1, N, 1, K] (not 0
 * is left out), out as the query, maximum and sum [B, H, N, M, copies] of e^(score - maximum). A row that sees nothing gives 0,
 * maximum -infinity and sum 0. */
Kernel us_floyd_attention;

/* views: those above, which are all read, then dout, dquery, dkey1, dvalue1, dkey2 and dvalue2. */
Kernel us_floyd_attention_backward;

#endif
