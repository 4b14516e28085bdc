/* Gradient of an embedding table. Libraries: libopapi_nn.so, libopapi.so. */
#ifndef OP_API_INC_EMBEDDING_DENSE_BACKWARD_H
#define OP_API_INC_EMBEDDING_DENSE_BACKWARD_H

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[w] = sum of the rows of grad whose index is w, added in fp32; with scaleGradByFreq divided by their number.
 * Rows that no index names, and row paddingIdx, are 0. paddingIdx is read as a signed number: -1 for none. grad
 * [..., D] of ACL_FLOAT, ACL_FLOAT16 or, not on Ascend910, ACL_BF16; indices: as many as grad has rows, ACL_FLOAT16,
 * ACL_FLOAT, ACL_DOUBLE, ACL_INT8, ACL_UINT8, ACL_INT16, ACL_INT32, ACL_INT64 or ACL_BOOL; out [numWeights, D],
 * written. Indices outside 0 ... numWeights-1 are skipped. 161001: a NULL parameter. 161002: a type, rank, shape or
 * format that is not allowed. 561103: a view leaves its storage, or scaleGradByFreq with rows too long for
 * Ascend910. */
ACLNN_API aclnnStatus aclnnEmbeddingDenseBackwardGetWorkspaceSize(const aclTensor *grad, const aclTensor *indices,
                                                                  uint64_t numWeights, uint64_t paddingIdx,
                                                                  bool scaleGradByFreq, const aclTensor *out,
                                                                  uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the computation on the stream. The executor ends here unless it is repeatable. */
ACLNN_API aclnnStatus aclnnEmbeddingDenseBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                                  const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
