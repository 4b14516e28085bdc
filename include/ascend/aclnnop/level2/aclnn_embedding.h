/* Look-up in an embedding table. Libraries: libopapi_nn.so, libopapi.so. */
#ifndef OP_API_INC_EMBEDDING_H
#define OP_API_INC_EMBEDDING_H

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[i, :] = weight[indices[i], :]. weight [rows, D] of any type of whole bytes (ACL_BF16 not on Ascend910),
 * indices ACL_INT32 or ACL_INT64 of rank 0 to 7; out has weight's type and the shape of indices followed by D. Rows
 * of indices outside the table are 0. out is written. 161001: a NULL parameter. 161002: a type, rank or shape that
 * is not allowed. 561103: a view leaves its storage. */
ACLNN_API aclnnStatus aclnnEmbeddingGetWorkspaceSize(const aclTensor *weight, const aclTensor *indices,
                                                     const aclTensor *out, uint64_t *workspaceSize,
                                                     aclOpExecutor **executor);

/* Queues the computation on the stream. The executor ends here unless it is repeatable. */
ACLNN_API aclnnStatus aclnnEmbedding(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                     const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
