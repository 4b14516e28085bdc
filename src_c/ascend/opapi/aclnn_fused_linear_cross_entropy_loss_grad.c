#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "ascend/opapi/fused_cross_entropy_checks.h"
#include "kernels/loss/fused_cross_entropy.h"

/* What the vendor's kernel can divide (aclnn-ops 3.3 #17). The limit that depends on the on-chip buffer is left out. */
static void require_kernel_limits(OpCall *op, bool from_softmax, int64_t tokens, int64_t features, int64_t vocabulary)
{
    op_require(op, !from_softmax || tokens <= 65536, "grad", "limit", ACLNN_ERR_INNER_NULLPTR,
               "%lld tokens; with softmaxOptional at most 65536", (long long)tokens);
    op_require(op, features <= 65535, "input", "limit", ACLNN_ERR_INNER_NULLPTR, "%lld features; at most 65535",
               (long long)features);
    op_require(op, !from_softmax || vocabulary <= 65280, "weight", "limit", ACLNN_ERR_INNER_NULLPTR,
               "%lld entries of the vocabulary; with softmaxOptional at most 65280", (long long)vocabulary);
}

/* aclnn-ops 3.3, in its order. */
aclnnStatus aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor *grad, const aclTensor *input, const aclTensor *weight, const aclTensor *targetMask,
    const aclTensor *maskedTarget, float labelSmoothing, const aclTensor *logitsMaxOptional,
    const aclTensor *sumExpLogitsOptional, const aclTensor *softmaxOptional, aclTensor *inputGradOut,
    aclTensor *weightGradOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    OpCall op = op_begin("aclnnFusedLinearCrossEntropyLossGrad", workspaceSize, executor);
    const bool from_softmax = softmaxOptional != NULL;
    op_require(&op, from_softmax || (logitsMaxOptional != NULL && sumExpLogitsOptional != NULL), "softmaxOptional",
               "null", ACLNN_ERR_PARAM_NULLPTR,
               "softmaxOptional is NULL, and so is logitsMaxOptional or sumExpLogitsOptional");
    const Operand *g = op_input(&op, "grad", grad);
    const Operand *x = op_input(&op, "input", input);
    const Operand *w = op_input(&op, "weight", weight);
    const Operand *mask = op_input(&op, "targetMask", targetMask);
    const Operand *target = op_input(&op, "maskedTarget", maskedTarget);
    /* With softmaxOptional the two others are not looked at, whatever they are. */
    const Operand *max = op_optional_input(&op, "logitsMaxOptional", from_softmax ? NULL : logitsMaxOptional);
    const Operand *sum = op_optional_input(&op, "sumExpLogitsOptional", from_softmax ? NULL : sumExpLogitsOptional);
    const Operand *softmax = op_optional_input(&op, "softmaxOptional", softmaxOptional);
    const Operand *dx = op_output(&op, "inputGradOut", inputGradOut);
    const Operand *dw = op_output(&op, "weightGradOut", weightGradOut);
    if (op_refused(&op)) {
        return op_plan_nothing(&op);
    }

    const DTypeSet halves = DTYPE_BIT(ACL_FLOAT16) | DTYPE_BIT(ACL_BF16);
    const DTypeSet integers = DTYPE_BIT(ACL_INT32) | DTYPE_BIT(ACL_INT64);
    op_require_dtype(&op, g, DTYPE_BIT(ACL_FLOAT));
    op_require_dtype(&op, x, halves);
    op_require_dtype(&op, w, halves);
    op_require_dtype(&op, mask, DTYPE_BIT(ACL_BOOL) | DTYPE_BIT(ACL_UINT8));
    op_require_dtype(&op, target, integers);
    const Operand *const statistics[] = {softmax, max, sum};
    for (int i = from_softmax ? 0 : 1; i < (from_softmax ? 1 : 3); i++) {
        op_require_dtype(&op, statistics[i], DTYPE_BIT(ACL_FLOAT));
    }
    op_require_same_dtype(&op, w, x);
    op_require_same_dtype(&op, dx, x);
    op_require_same_dtype(&op, dw, x);

    const Operand *const all[] = {g, x, w, mask, target, softmax, max, sum, dx, dw};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (op_given(all[i])) {
            op_require_nd(&op, all[i]);
        }
    }
    require_no_label_smoothing(&op, labelSmoothing);

    static const int32_t ranks[] = {1, 2, 2, 1, 1, 2, 1, 1, 2, 2};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (op_given(all[i])) {
            op_require_rank(&op, all[i], ranks[i], ranks[i]);
        }
    }
    const int64_t tokens = g->view.shape[0];
    const int64_t features = x->view.shape[1];
    const int64_t vocabulary = w->view.shape[0];
    op_require_sizes(&op, x, tokens, features);
    op_require(&op, !from_softmax || vocabulary >= 128, "weight", "vocabulary", ACLNN_ERR_PARAM_INVALID,
               "weight has %lld rows; with softmaxOptional at least 128", (long long)vocabulary);
    op_require_sizes(&op, w, vocabulary, features);
    op_require(&op, mask->dtype == ACL_BOOL ? mask->view.shape[0] == tokens : mask->view.shape[0] >= (tokens + 7) / 8,
               "targetMask", "shape", ACLNN_ERR_PARAM_INVALID, "targetMask has %lld elements for %lld tokens",
               (long long)mask->view.shape[0], (long long)tokens);
    op_require_size(&op, target, tokens);
    if (from_softmax) {
        op_require_sizes(&op, softmax, tokens, vocabulary);
    } else {
        op_require_size(&op, max, tokens);
        op_require_size(&op, sum, tokens);
    }
    op_require_sizes(&op, dx, tokens, features);
    op_require_sizes(&op, dw, vocabulary, features);

    if (op_empty(x) || op_empty(w)) {
        return op_plan_nothing(&op);
    }
    require_product(&op);
    require_kernel_limits(&op, from_softmax, tokens, features, vocabulary);
    require_matrix_library(&op);
    return op_plan(&op, us_fused_cross_entropy_backward, NULL, 0);
}
