#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "ascend/opapi/fused_cross_entropy_checks.h"
#include "kernels/loss/fused_cross_entropy.h"

/* aclnn-ops 4.4. */
aclnnStatus aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
    const aclTensor *logitsMax, const aclTensor *sumExpLogits, const aclTensor *predictedLogits, float labelSmoothing,
    const aclTensor *inputOptional, const aclTensor *weightOptional, const aclTensor *vocabParallelLogitsOptional,
    aclTensor *lossOut, aclTensor *softMaxOutOptional, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    OpCall op = op_begin("aclnnFusedCrossEntropyLossWithMaxSum", workspaceSize, executor);
    const Operand *max = op_input(&op, "logitsMax", logitsMax);
    const Operand *sum = op_input(&op, "sumExpLogits", sumExpLogits);
    const Operand *predicted = op_input(&op, "predictedLogits", predictedLogits);
    const Operand *logits = op_optional_input(&op, "vocabParallelLogitsOptional", vocabParallelLogitsOptional);
    const Operand *loss = op_output(&op, "lossOut", lossOut);
    const bool with_softmax = vocabParallelLogitsOptional != NULL;
    op_require(&op, !with_softmax || softMaxOutOptional != NULL, "softMaxOutOptional", "null", ACLNN_ERR_PARAM_NULLPTR,
               "softMaxOutOptional is NULL although vocabParallelLogitsOptional is given");
    const Operand *softmax =
        op_optional_output(&op, "softMaxOutOptional", with_softmax ? softMaxOutOptional : NULL);
    (void)inputOptional; /* nothing needs them, and programs pass anything */
    (void)weightOptional;
    require_no_label_smoothing(&op, labelSmoothing);
    if (op_refused(&op)) {
        return op_plan_nothing(&op);
    }

    op_require_dtype(&op, max, DTYPE_BIT(ACL_FLOAT));
    op_require_dtype(&op, sum, DTYPE_BIT(ACL_FLOAT));
    op_require_dtype(&op, predicted, DTYPE_BIT(ACL_FLOAT));
    op_require_dtype(&op, loss, DTYPE_BIT(ACL_FLOAT));
    if (with_softmax) {
        op_require_dtype(&op, logits, DTYPE_BIT(ACL_FLOAT) | DTYPE_BIT(ACL_FLOAT16) | DTYPE_BIT(ACL_BF16));
        op_require_dtype(&op, softmax, DTYPE_BIT(ACL_FLOAT));
    }

    op_require_rank(&op, max, 1, 1);
    const int64_t tokens = max->view.shape[0];
    op_require_size(&op, sum, tokens);
    op_require_size(&op, predicted, tokens);
    op_require_size(&op, loss, tokens);
    if (with_softmax) {
        op_require_rank(&op, logits, 2, 2);
        op_require_sizes(&op, logits, tokens, logits->view.shape[1]);
        op_require_sizes(&op, softmax, tokens, logits->view.shape[1]);
    }

    if (op_empty(max)) {
        return op_plan_nothing(&op);
    }
    require_product(&op);
    return op_plan(&op, us_fused_cross_entropy_loss, NULL, 0);
}
