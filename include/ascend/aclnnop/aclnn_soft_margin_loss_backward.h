/* Gradient of the soft margin loss. Libraries: libopapi_nn.so, libopapi.so. */
#ifndef OP_API_INC_SOFT_MARGIN_LOSS_BACKWARD_H
#define OP_API_INC_SOFT_MARGIN_LOSS_BACKWARD_H

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out = f * gradOutput * (-target * exp(-self * target)) / (1 + exp(-self * target)), in the shape that gradOutput,
 * self and target broadcast to; f is 1/(number of elements of that shape) for reduction 1 (mean), 1 for 0 (none) and
 * 2 (sum). Types ACL_FLOAT, ACL_FLOAT16 and, not on Ascend910, ACL_BF16, in any mix; ranks 0 to 8; any strides.
 * 161001: a NULL parameter. 161002: a type, rank, shape or reduction that is not allowed. 561103: a view leaves its
 * storage. */
ACLNN_API aclnnStatus aclnnSoftMarginLossBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                                  const aclTensor *target, int64_t reduction,
                                                                  aclTensor *out, uint64_t *workspaceSize,
                                                                  aclOpExecutor **executor);

/* Queues the computation on the stream. The executor ends here unless it is repeatable. */
ACLNN_API aclnnStatus aclnnSoftMarginLossBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                                  aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
