#include "aclnnop/aclnn_embedding_dense_backward.h"
#include "ascend/common/op_call.h"
#include "kernels/index/embedding.h"

static const DTypeSet index_dtypes =
    DTYPE_BIT(ACL_FLOAT16) | DTYPE_BIT(ACL_FLOAT) | DTYPE_BIT(ACL_DOUBLE) | DTYPE_BIT(ACL_INT8) | DTYPE_BIT(ACL_UINT8) |
    DTYPE_BIT(ACL_INT16) | DTYPE_BIT(ACL_INT32) | DTYPE_BIT(ACL_INT64) | DTYPE_BIT(ACL_BOOL);

/* 910A's kernel keeps counts and a row in the on-chip buffer (aclnn-ops 2.3, below the table):
 * columns < (buffer - index_bytes * counts) / column_bytes, as real numbers. */
static bool scaled_row_fits(const OpCall *op, aclDataType index_dtype, uint64_t rows, int64_t columns)
{
    const uint64_t buffer = 192 * 1024 - 16 * 1024 - 32;
    uint64_t cores = (uint64_t)op->product->vector_cores;
    uint64_t counts = rows / cores + rows % cores;
    uint64_t index_bytes = index_dtype == ACL_INT64 ? 8 : 4;
    uint64_t column_bytes = index_dtype == ACL_INT64 ? 20 : 36;
    if (counts >= buffer / index_bytes) {
        return false;
    }
    return (uint64_t)columns <= (buffer - index_bytes * counts - 1) / column_bytes;
}

/* aclnn-ops 2.3, in its order. */
aclnnStatus aclnnEmbeddingDenseBackwardGetWorkspaceSize(const aclTensor *grad, const aclTensor *indices,
                                                        uint64_t numWeights, uint64_t paddingIdx, bool scaleGradByFreq,
                                                        const aclTensor *out, uint64_t *workspaceSize,
                                                        aclOpExecutor **executor)
{
    OpCall op = op_begin("aclnnEmbeddingDenseBackward", workspaceSize, executor);
    const Operand *g = op_input(&op, "grad", grad);
    const Operand *k = op_input(&op, "indices", indices);
    const Operand *result = op_output(&op, "out", out);

    op_require_dtype(&op, g, op_float_dtypes(&op));
    op_require_dtype(&op, k, index_dtypes);
    op_require_dtype(&op, result, op_float_dtypes(&op));

    op_require_rank(&op, g, 1, 8); /* the vendor loops without bound on rank 0 */
    op_require_rank(&op, k, 0, 8);
    op_require_rank(&op, result, 0, 8);
    if (op_refused(&op)) {
        return op_plan_nothing(&op);
    }

    int32_t last = g->view.rank - 1;
    int64_t columns = g->view.shape[last];
    int64_t rows = us_shape_elements(last, g->view.shape);
    op_require(&op, columns == 0 || rows == op_elements(k), "indices", "count", ACLNN_ERR_PARAM_INVALID,
               "indices has %lld elements, grad has %lld rows", (long long)op_elements(k), (long long)rows);
    op_require_rank(&op, result, 2, 2);
    Shape expected = {.rank = 2, .sizes = {(int64_t)numWeights, columns}};
    op_require_shape(&op, result, &expected);
    op_require_public_format(&op, g);
    op_require_public_format(&op, k);
    op_require_public_format(&op, result);

    bool limited = scaleGradByFreq && op.product->product == PRODUCT_910A && !op_empty(g) && !op_empty(k);
    op_require(&op, !limited || scaled_row_fits(&op, k->dtype, numWeights, columns), "scaleGradByFreq", "row-size",
               ACLNN_ERR_INNER_NULLPTR, "%lld columns and %llu rows exceed the on-chip buffer of %s",
               (long long)columns, (unsigned long long)numWeights, op.product->series);

    EmbeddingDenseBackward attributes = {
        .padding = (int64_t)paddingIdx,
        .scale_by_frequency = scaleGradByFreq,
        .scale_before_sum = op.product->product == PRODUCT_910A,
    };
    return op_plan(&op, us_embedding_dense_backward, &attributes, sizeof attributes);
}
