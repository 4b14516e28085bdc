/* Soft margin loss. Libraries: libopapi_nn.so, libopapi.so. */
#ifndef OP_API_INC_SOFT_MARGIN_LOSS_H
#define OP_API_INC_SOFT_MARGIN_LOSS_H

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ln(1 + exp(-self * target)) of every element of the shape that self and target broadcast to. reduction 0 (none):
 * out has that shape; 1 (mean): out is a scalar, rank 0, the mean; any other: the sum. Types ACL_FLOAT, ACL_FLOAT16
 * and, not on Ascend910, ACL_BF16, in any mix; ranks 0 to 8; any strides. Without elements the mean is NaN and the
 * sum 0. 161001: a NULL parameter. 161002: a type, rank or shape that is not allowed. 561103: a view leaves its
 * storage. */
ACLNN_API aclnnStatus aclnnSoftMarginLossGetWorkspaceSize(const aclTensor *self, const aclTensor *target,
                                                          int64_t reduction, aclTensor *out, uint64_t *workspaceSize,
                                                          aclOpExecutor **executor);

/* Queues the computation on the stream. The executor ends here unless it is repeatable. */
ACLNN_API aclnnStatus aclnnSoftMarginLoss(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                          aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
