/* Tokens that go to experts of other ranks, and back: src_c/ranks/experts.h. */
#ifndef ASCEND_OPAPI_EXPERTS_H
#define ASCEND_OPAPI_EXPERTS_H

#include "ascend/opapi/norm.h"
#include "ascend/opapi/ranks.h"

/* Which ranks there are and which experts they have, as a page's attributes say. */
typedef struct ExpertRanks {
    Room *room;
    int64_t ranks, rank, tensor_ranks, tensor_rank, shard; /* epWorldSize, epRankId, tpWorldSize, tpRankId, expertShardType */
    int64_t experts, shared, shared_ranks, batch;          /* moeExpertNum, sharedExpertNum, sharedExpertRankNum, globalBs */
    int64_t nothing, copies, constants;                    /* zeroExpertNum, copyExpertNum, constExpertNum */
    const char *batch_name, *algorithm;
} ExpertRanks;

/* All that the attributes say, and the tokens [BS, H] with their expertIds [BS, K], of which `room` has place for all that may
 * arrive: the rules stand on the pages. 561002. */
void op_require_expert_ranks(OpCall *op, const ExpertRanks *of);
void op_require_expert_tokens(OpCall *op, const ExpertRanks *of, int64_t columns, const Operand *tokens, const Operand *ids,
                              const Operand *room);
void op_require_active(OpCall *op, const Operand *active, const Operand *ids);
/* A vector of so many elements, or of more (elements). */
void op_require_vector(OpCall *op, const Operand *vector, int64_t count, bool or_more);
/* Experts of this rank. */
int64_t op_own_experts(const ExpertRanks *of);

typedef struct DispatchCall {
    ExpertRanks ranks;
    const Operand *x, *ids, *smooth, *active, *weights;
    const Operand *out, *steps, *order, *origin, *tokens, *counts, *arrived_weights;
    bool sums;
} DispatchCall;
aclnnStatus op_dispatch_to_experts(OpCall *op, const DispatchCall *call);

/* norm: NULL, or what is added to the tokens, their sum, its norm, and 1 / the root of the mean of its squares. */
typedef struct CombineCall {
    ExpertRanks ranks;
    const Operand *x, *ids, *counts, *weights, *active, *added, *out;
    const Operand *tokens, *factor, *weight, *value; /* of experts on no rank */
    const LayerNorm *norm;
} CombineCall;
/* What experts on no rank need: oriX, and for constants two factors and a value (missing, shape). 561002. */
void op_require_special_experts(OpCall *op, const CombineCall *call);
aclnnStatus op_combine_from_experts(OpCall *op, const CombineCall *call);

#endif
