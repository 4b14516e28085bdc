/* Products of batches, one for each expert, between ranks that have different experts and ranks that share the columns or rows of
 * each. */
#ifndef ASCEND_OPAPI_RANK_BATCHES_H
#define ASCEND_OPAPI_RANK_BATCHES_H

#include "ascend/opapi/matmul.h"
#include "ascend/opapi/ranks.h"

/* x [experts, rows, columns] of all experts and a part of the columns, or of the rows, `by_rows`; weight [own, k, n] of those of
 * this rank. */
typedef struct RankBatches {
    Room *experts, *parts; /* ranks that have other experts, other parts */
    bool by_rows;
    const Operand *x, *weight, *bias, *out;
    const Operand *gathered, *product; /* of op_gather_batches, if they are given */
    int64_t activation;                /* 0: none */
} RankBatches;

/* Sizes and shapes: the rules stand on the pages. */
void op_require_gathered_batches(OpCall *op, const RankBatches *of, int64_t experts, int64_t parts);
void op_require_scattered_batches(OpCall *op, const RankBatches *of, int64_t experts, int64_t parts);
/* Rows of this rank's experts come from all ranks, and their parts; then they are multiplied. */
aclnnStatus op_gather_batches(OpCall *op, const RankBatches *of);
/* Products are summed up over the ranks that have parts of k, in parts, and leave for the ranks that they are of. */
aclnnStatus op_scatter_batches(OpCall *op, const RankBatches *of);

#endif
