/* Attention in which each token has blocks of keys of its own, and its gradients. Computed in float32, results rounded once;
 * the same bits for any number of threads. */
#ifndef UNDERSTUDY_SELECTED_H
#define UNDERSTUDY_SELECTED_H

#include "kernels/kernels.h"

typedef struct Selected {
    float scale;
    bool causal;   /* row i of a sequence does not see its keys behind i */
    int64_t block; /* keys of a block */
    int64_t sequences;
    int64_t ends[]; /* of the sequences' rows, then of their keys; in pages, then, how many rows each one has */
} Selected;

/* out = softmax(scale * q k^T, masked) v for every row of every head, k and v being those of the blocks that the row names for
 * the key's head: number b stands for keys b * block … of the row's sequence; one that is named twice counts twice.
 * views: query [T, N, D], key [S, M, D], value [S, M, E], blocks [T, M, C] (int32), mask? [i, j] (not 0 is left out; i and j
 * count from the begin of the sequence), out [T, N, E], maximum and sum [T, N, copies] of e^(score - maximum). N / M neighbours
 * share a key. A row that sees nothing gives 0, maximum -infinity and sum 0. */
Kernel us_selected_attention;

/* The same of keys in pages: key p of sequence s is row p % rows of page pages[s, p / rows]. Of a block there are the keys that
 * the sequence has; number -1 is none, and a row that its sequence does not have gives 0. No mask, not causal.
 * views: query [T…, N, D], key [pages, rows, M, D], value [pages, rows, M, E], blocks [T…, M, C], absent, out [T…, N, E], absent,
 * absent, pages [sequences, …] (int32); T…: one axis, or two. */
Kernel us_selected_attention_in_pages;

/* views: those above the pages, which are all read, then dout, dquery, dkey, dvalue. */
Kernel us_selected_attention_backward;

#endif
