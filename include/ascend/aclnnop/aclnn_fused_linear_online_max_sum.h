/* Maximum and sum of exponentials of the logits of a linear layer. Library: libopapi_nn.so, libopapi.so. */
#ifndef OP_API_INC_FUSED_LINEAR_ONLINE_MAX_SUM_H
#define OP_API_INC_FUSED_LINEAR_ONLINE_MAX_SUM_H

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* logits = input . weight^T in fp32; logitsMaxLocalOut = their maximum, sumExpLogitsLocalOut = sum of exp(logits -
 * maximum), predictedLogitsLocalOut = logits[maskedTarget] - maximum, or 0 when masked. A token is masked when its
 * target is outside vocabStartIndex ... vocabEndIndex - 1; targetMaskOut has a bit per token, lowest first, those
 * beyond the last token 1; maskedTargetOut = target - vocabStartIndex, or 0 when masked.
 * vocabParallelLogitsOutOptional, when given, gets the logits. input [BT, H], weight [V, H] ACL_FLOAT16 or ACL_BF16,
 * alike; target [BT] ACL_INT32 or ACL_INT64; outputs [BT] ACL_FLOAT; targetMaskOut [(BT+7)/8] ACL_UINT8;
 * maskedTargetOut [BT] as target; vocabParallelLogitsOutOptional [BT, V] as input. Statuses as for
 * aclnnFusedLinearCrossEntropyLossGrad. */
ACLNN_API aclnnStatus aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(const aclTensor *input, const aclTensor *weight,
                                                                   const aclTensor *target, int64_t vocabStartIndex,
                                                                   int64_t vocabEndIndex, aclTensor *logitsMaxLocalOut,
                                                                   aclTensor *sumExpLogitsLocalOut,
                                                                   aclTensor *predictedLogitsLocalOut,
                                                                   aclTensor *targetMaskOut, aclTensor *maskedTargetOut,
                                                                   aclTensor *vocabParallelLogitsOutOptional,
                                                                   uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the computation on the stream. The executor ends here unless it is repeatable. */
ACLNN_API aclnnStatus aclnnFusedLinearOnlineMaxSum(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
