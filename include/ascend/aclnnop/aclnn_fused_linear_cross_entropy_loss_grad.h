/* Gradients of the cross entropy of a linear layer, whose logits are never stored. Library: libopapi_nn.so,
 * libopapi.so. */
#ifndef OP_API_INC_FUSED_LINEAR_CROSS_ENTROPY_LOSS_GRAD_H
#define OP_API_INC_FUSED_LINEAR_CROSS_ENTROPY_LOSS_GRAD_H

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Q = (P - [v == maskedTarget, unless masked]) * grad, rounded to input's type; inputGradOut = Q . weight,
 * weightGradOut = Q^T . input. P is softmaxOptional when given, else exp(input . weight^T - logitsMaxOptional) /
 * sumExpLogitsOptional. grad [BT] ACL_FLOAT; input [BT, H], weight [V, H] and the outputs ACL_FLOAT16 or ACL_BF16,
 * all alike; targetMask ACL_BOOL [BT] or ACL_UINT8 with a bit per token, lowest first; maskedTarget [BT] ACL_INT32
 * or ACL_INT64; logitsMaxOptional, sumExpLogitsOptional [BT] and softmaxOptional [BT, V] ACL_FLOAT. Format
 * ACL_FORMAT_ND. labelSmoothing must be 0; V at least 128 with softmaxOptional. Without elements in input or weight
 * nothing is written. 161001: a required tensor is NULL. 161002: a type, format, rank or shape that is not allowed.
 * 361001: Ascend910. 561003: no CBLAS was found. 561103: sizes beyond the vendor's kernel, or a view leaves its
 * storage. */
ACLNN_API aclnnStatus aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(const aclTensor *grad,
                                                                           const aclTensor *input,
                                                                           const aclTensor *weight,
                                                                           const aclTensor *targetMask,
                                                                           const aclTensor *maskedTarget,
                                                                           float labelSmoothing,
                                                                           const aclTensor *logitsMaxOptional,
                                                                           const aclTensor *sumExpLogitsOptional,
                                                                           const aclTensor *softmaxOptional,
                                                                           aclTensor *inputGradOut,
                                                                           aclTensor *weightGradOut,
                                                                           uint64_t *workspaceSize,
                                                                           aclOpExecutor **executor);

/* Queues the computation on the stream. The executor ends here unless it is repeatable. */
ACLNN_API aclnnStatus aclnnFusedLinearCrossEntropyLossGrad(void *workspace, uint64_t workspaceSize,
                                                           aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
