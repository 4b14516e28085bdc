#include "aclnnop/aclnn_embedding.h"
#include "ascend/common/op_call.h"
#include "kernels/index/embedding.h"

static const DTypeSet index_dtypes = DTYPE_BIT(ACL_INT32) | DTYPE_BIT(ACL_INT64);

/* The sheet says "wide list, BF16 only on A2/A3"; unsigned types of more than 8 bits are not in it. */
static DTypeSet table_dtypes(const OpCall *op)
{
    return op_float_dtypes(op) | DTYPE_BIT(ACL_DOUBLE) | DTYPE_BIT(ACL_INT8) | DTYPE_BIT(ACL_INT16) |
           DTYPE_BIT(ACL_INT32) | DTYPE_BIT(ACL_INT64) | DTYPE_BIT(ACL_UINT8) | DTYPE_BIT(ACL_BOOL) |
           DTYPE_BIT(ACL_COMPLEX64) | DTYPE_BIT(ACL_COMPLEX128);
}

/* aclnn-ops 4.2. */
aclnnStatus aclnnEmbeddingGetWorkspaceSize(const aclTensor *weight, const aclTensor *indices, const aclTensor *out,
                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    OpCall op = op_begin("aclnnEmbedding", workspaceSize, executor);
    const Operand *table = op_input(&op, "weight", weight);
    const Operand *k = op_input(&op, "indices", indices);
    const Operand *result = op_output(&op, "out", out);

    op_require_dtype(&op, table, table_dtypes(&op));
    op_require_dtype(&op, k, index_dtypes);
    op_require_same_dtype(&op, result, table);
    op_require_public_format(&op, table);
    op_require_public_format(&op, k);
    op_require_public_format(&op, result);

    op_require_rank(&op, table, 2, 2); /* follows from out's rank, one more than that of indices */
    op_require_rank(&op, k, 0, 8);
    op_require_rank(&op, result, 0, 8);
    if (op_refused(&op)) {
        return op_plan_nothing(&op);
    }
    Shape expected = op_shape(k);
    expected.sizes[expected.rank++] = table->view.shape[1];
    op_require_shape(&op, result, &expected);

    if (op_empty(table) || op_empty(k)) {
        return op_plan_nothing(&op);
    }
    return op_plan(&op, us_embedding, NULL, 0);
}
