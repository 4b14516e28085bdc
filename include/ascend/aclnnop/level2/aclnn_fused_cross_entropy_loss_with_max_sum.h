/* Cross entropy from the maximum and sum of exponentials of the logits. Library: libopapi_nn.so, libopapi.so. */
#ifndef OP_API_INC_FUSED_CROSS_ENTROPY_LOSS_WITH_MAX_SUM_H
#define OP_API_INC_FUSED_CROSS_ENTROPY_LOSS_WITH_MAX_SUM_H

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* lossOut = ln(sumExpLogits) - predictedLogits; softMaxOutOptional = exp(vocabParallelLogitsOptional - logitsMax) *
 * (1 / sumExpLogits), only when vocabParallelLogitsOptional is given, and then required. logitsMax, sumExpLogits,
 * predictedLogits, lossOut [BT] ACL_FLOAT; vocabParallelLogitsOptional [BT, V] ACL_FLOAT16 or ACL_BF16;
 * softMaxOutOptional [BT, V] ACL_FLOAT. labelSmoothing must be 0, inputOptional and weightOptional NULL. 161001: a
 * required tensor is NULL. 161002: a type, rank or shape that is not allowed. 361001: Ascend910. 561103: a view
 * leaves its storage. */
ACLNN_API aclnnStatus aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(const aclTensor *logitsMax,
                                                                           const aclTensor *sumExpLogits,
                                                                           const aclTensor *predictedLogits,
                                                                           float labelSmoothing,
                                                                           const aclTensor *inputOptional,
                                                                           const aclTensor *weightOptional,
                                                                           const aclTensor *vocabParallelLogitsOptional,
                                                                           aclTensor *lossOut,
                                                                           aclTensor *softMaxOutOptional,
                                                                           uint64_t *workspaceSize,
                                                                           aclOpExecutor **executor);

/* Queues the computation on the stream. The executor ends here unless it is repeatable. */
ACLNN_API aclnnStatus aclnnFusedCrossEntropyLossWithMaxSum(void *workspace, uint64_t workspaceSize,
                                                           aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
