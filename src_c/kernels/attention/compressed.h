/* Attention to compressed keys, each of which stands for a window of tokens, and what it says of blocks of these tokens. Computed
 * in float32, results rounded once; the same bits for any number of threads. */
#ifndef UNDERSTUDY_COMPRESSED_H
#define UNDERSTUDY_COMPRESSED_H

#include "kernels/kernels.h"

typedef struct Compressed {
    float scale;
    int64_t step, width; /* windows that begin in a block, and that lie over one of their steps */
    int64_t sequences;
    int64_t ends[]; /* of the sequences' rows, then of their keys, then of their blocks */
} Compressed;

/* Of every row of every head: w = softmax(scale * q k^T, masked) along the keys of the row's sequence, out = w v.
 * Block j of a sequence weighs, for a row and a head of the keys, the sum over the query's heads that share it, over m < step
 * and over n < width of w[step * j - m - n], where there is such a key. `blocks` are the heaviest ones in descending order, of
 * equal ones the first one first; those that the second mask leaves out come behind all others.
 * views: query [T, N, D], key [S, M, D], value [S, M, E], mask? and mask of blocks? [i, j] (not 0 is left out; i and j count from
 * the begin of the sequence), out [T, N, E], maximum and sum [T, N, copies] of e^(score - maximum), blocks [T, M, count]
 * (int32). N / M neighbours share a key. A row that sees nothing gives 0, maximum -infinity and sum 0. */
Kernel us_compressed_attention;

#endif
