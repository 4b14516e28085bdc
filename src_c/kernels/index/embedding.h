/* Tables of rows: look-up and its gradient. */
#ifndef UNDERSTUDY_EMBEDDING_H
#define UNDERSTUDY_EMBEDDING_H

#include "kernels/kernels.h"

/* out[w] = s_w * sum of the rows of grad whose index is w, in ascending order, in fp32 (more than 256 rows in parts of so
 * many, which are added up in fp64) with one rounding at the end (aclnn-ops 2.2). Rows that no index names are 0, and so is
 * row `padding`. Indices outside 0 … rows-1 are skipped, floating ones truncate. views: grad [..., D], indices (as many as
 * grad has rows; any type and shape), out [rows, D]. */
typedef struct EmbeddingDenseBackward {
    int64_t padding;
    bool scale_by_frequency; /* s_w = fl32(1 / number of rows added), else 1 */
    bool scale_before_sum;   /* multiply every row instead of the sum */
} EmbeddingDenseBackward;
Kernel us_embedding_dense_backward;

/* out[i, :] = table[indices[i], :]. Rows of indices outside the table are 0, and the first such index is the fault.
 * views: table [rows, D], indices of 32 or 64 bits, out: the indices' shape followed by D. table and out are of one type,
 * any. No attributes. */
Kernel us_embedding;

#endif
