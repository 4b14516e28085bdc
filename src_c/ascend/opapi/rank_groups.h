/* Products of groups whose rows come from other ranks, or go to them: experts of which each rank has some. */
#ifndef ASCEND_OPAPI_RANK_GROUPS_H
#define ASCEND_OPAPI_RANK_GROUPS_H

#include "ascend/opapi/matmul.h"
#include "ascend/opapi/ranks.h"

/* weight [experts, k, n], turned: [experts, n, k]. sent[rank * experts + expert] rows go to a rank, for its expert or from
 * one's own, and as many are received. Beside it mm_y = mm_x @ mm_weight, if they are given. */
typedef struct RankGroups {
    Room *room;
    const Operand *x, *weight, *y, *grouped; /* grouped: the rows by experts, if it is given */
    IntArguments sent, received;
    bool turned;
    const Operand *mm_x, *mm_weight, *mm_y;
    bool mm_turned;
} RankGroups;

/* The most experts of a rank and of all, the rows of `tokens` (rows), sizes, and what the counts say: the rules stand on the
 * pages. */
void op_require_rank_groups(OpCall *op, const RankGroups *of, int64_t ranks, int64_t experts, int64_t all,
                            const Operand *tokens);
/* Rows that arrive, rank by rank, are put in groups and multiplied. */
aclnnStatus op_all_to_all_grouped_matmul(OpCall *op, const RankGroups *of);
/* Rows in groups are multiplied, and leave rank by rank. */
aclnnStatus op_grouped_matmul_all_to_all(OpCall *op, const RankGroups *of);

#endif
