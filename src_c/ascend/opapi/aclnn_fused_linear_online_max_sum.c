#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "ascend/opapi/fused_cross_entropy_checks.h"
#include "kernels/loss/fused_cross_entropy.h"

/* aclnn-ops 4.3. */
aclnnStatus aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
    const aclTensor *input, const aclTensor *weight, const aclTensor *target, int64_t vocabStartIndex,
    int64_t vocabEndIndex, aclTensor *logitsMaxLocalOut, aclTensor *sumExpLogitsLocalOut,
    aclTensor *predictedLogitsLocalOut, aclTensor *targetMaskOut, aclTensor *maskedTargetOut,
    aclTensor *vocabParallelLogitsOutOptional, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    OpCall op = op_begin("aclnnFusedLinearOnlineMaxSum", workspaceSize, executor);
    const Operand *x = op_input(&op, "input", input);
    const Operand *w = op_input(&op, "weight", weight);
    const Operand *t = op_input(&op, "target", target);
    const Operand *max = op_output(&op, "logitsMaxLocalOut", logitsMaxLocalOut);
    const Operand *sum = op_output(&op, "sumExpLogitsLocalOut", sumExpLogitsLocalOut);
    const Operand *predicted = op_output(&op, "predictedLogitsLocalOut", predictedLogitsLocalOut);
    const Operand *mask = op_output(&op, "targetMaskOut", targetMaskOut);
    const Operand *masked = op_output(&op, "maskedTargetOut", maskedTargetOut);
    const Operand *logits = op_optional_output(&op, "vocabParallelLogitsOutOptional", vocabParallelLogitsOutOptional);
    if (op_refused(&op)) {
        return op_plan_nothing(&op);
    }

    op_require_dtype(&op, x, DTYPE_BIT(ACL_FLOAT16) | DTYPE_BIT(ACL_BF16));
    op_require_same_dtype(&op, w, x);
    op_require_dtype(&op, t, DTYPE_BIT(ACL_INT32) | DTYPE_BIT(ACL_INT64));
    op_require_dtype(&op, max, DTYPE_BIT(ACL_FLOAT));
    op_require_dtype(&op, sum, DTYPE_BIT(ACL_FLOAT));
    op_require_dtype(&op, predicted, DTYPE_BIT(ACL_FLOAT));
    op_require_dtype(&op, mask, DTYPE_BIT(ACL_UINT8));
    op_require_same_dtype(&op, masked, t);
    if (op_given(logits)) {
        op_require_same_dtype(&op, logits, x);
    }

    op_require_rank(&op, x, 2, 2);
    op_require_rank(&op, w, 2, 2);
    if (op_refused(&op)) {
        return op_plan_nothing(&op);
    }
    const int64_t tokens = x->view.shape[0];
    const int64_t features = x->view.shape[1];
    const int64_t vocabulary = w->view.shape[0];
    op_require_sizes(&op, w, vocabulary, features);
    op_require_size(&op, t, tokens);
    op_require_size(&op, max, tokens);
    op_require_size(&op, sum, tokens);
    op_require_size(&op, predicted, tokens);
    op_require_size(&op, mask, tokens / 8 + (tokens % 8 != 0));
    op_require_size(&op, masked, tokens);
    if (op_given(logits)) {
        op_require_sizes(&op, logits, tokens, vocabulary);
    }

    op_require(&op, vocabStartIndex >= 0, "vocabStartIndex", "range", ACLNN_ERR_PARAM_INVALID,
               "vocabStartIndex is %lld", (long long)vocabStartIndex);
    op_require(&op, vocabEndIndex >= vocabStartIndex, "vocabEndIndex", "range", ACLNN_ERR_PARAM_INVALID,
               "vocabEndIndex is %lld, vocabStartIndex %lld", (long long)vocabEndIndex, (long long)vocabStartIndex);
    op_require(&op, vocabulary != 0, "weight", "empty", ACLNN_ERR_PARAM_INVALID, "weight has no rows");
    op_require(&op, features <= 65534, "input", "limit", ACLNN_ERR_PARAM_INVALID, "%lld features; at most 65534",
               (long long)features);

    if (op_empty(x) || op_empty(w)) {
        return op_plan_nothing(&op);
    }
    require_product(&op);
    require_matrix_library(&op);
    OnlineMaxSum attributes = {.start = vocabStartIndex, .end = vocabEndIndex};
    return op_plan(&op, us_fused_linear_online_max_sum, &attributes, sizeof attributes);
}
