/* Attention of packed or batched rows to the keys that each selects, in pages too. Computed in float32, results rounded once;
 * the same bits for any number of threads. */
#ifndef UNDERSTUDY_ATTENTION_SPARSE_H
#define UNDERSTUDY_ATTENTION_SPARSE_H

#include "kernels/attention/tokens.h"

typedef struct SparseAttention {
    TokenLayout layout;
    float scale;
    int64_t block; /* keys of a block */
} SparseAttention;

/* out = softmax(scale * (q k^T + q' k'^T)) v, of the keys of the blocks that the row names: number b stands for the keys
 * b * block … of its sequence, as far as there are any and it sees them; the first negative number ends them.
 * views: query [rows…, N, D], key and value [keys…, 1, D], indices [rows…, 1, count] (int32), row lengths?, key lengths? and
 * pages? as in tokens.h, further parts q' [rows…, N, R] and k' [keys…, 1, R], out [rows…, N, D], maximum? and sum? of
 * e^(score - maximum): [batch, 1, row, N], or [1, row, N] of packed rows. A row that sees nothing gives 0, maximum -infinity and
 * sum 0. */
Kernel us_sparse_attention;

/* The gradients, of rows in their order: several select the same keys.
 * views: query, key, value?, indices, row lengths?, key lengths?, q'?, k'? as above, out, maximum, sum and dout, which are read,
 * then dquery, dkey, dvalue?, dq'? and dk'?. Without a value it is the key, and dkey is the sum of both slopes. What no row
 * selects, and rows of no sequence, have slopes of 0. */
Kernel us_sparse_attention_backward;

#endif
