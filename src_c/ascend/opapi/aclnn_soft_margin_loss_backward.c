#include "aclnnop/aclnn_soft_margin_loss_backward.h"
#include "ascend/opapi/families.h"

#include "kernels/map/formulas.h"

static bool any_empty(const Operand *a, const Operand *b, const Operand *c)
{
    return op_empty(a) || op_empty(b) || op_empty(c);
}

/* aclnn-ops 1.3, in its order. */
aclnnStatus aclnnSoftMarginLossBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                        const aclTensor *target, int64_t reduction, aclTensor *out,
                                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    OpCall op = op_begin("aclnnSoftMarginLossBackward", workspaceSize, executor);
    const Operand *g = op_input(&op, "gradOutput", gradOutput);
    const Operand *x = op_input(&op, "self", self);
    const Operand *y = op_input(&op, "target", target);
    const Operand *result = op_output(&op, "out", out);

    op_require_dtype(&op, g, op_float_dtypes(&op));
    op_require_dtype(&op, x, op_float_dtypes(&op));
    op_require_dtype(&op, y, op_float_dtypes(&op));
    op_require_dtype(&op, result, op_float_dtypes(&op));

    op_require_rank(&op, g, 0, 8);
    op_require_rank(&op, x, 0, 8);
    op_require_rank(&op, y, 0, 8);

    Shape shape = op_shape(g);
    op_require_broadcast(&op, x, &shape);
    op_require_broadcast(&op, y, &shape);
    op_require_shape(&op, result, &shape);
    int64_t elements = op_elements(result);

    /* The vendor looks at self only; an empty gradOutput or target comes to the same, an empty result (1.4). */
    if (any_empty(g, x, y)) {
        return op_plan_nothing(&op);
    }
    /* The vendor indexes a table of three without looking; the page allows 0, 1 and 2. */
    op_require(&op, reduction >= 0 && reduction <= 2, "reduction", "range", ACLNN_ERR_PARAM_INVALID,
               "reduction is %lld; it may be 0 (none), 1 (mean) or 2 (sum)", (long long)reduction);

    const double factor = reduction == 1 ? (double)(float)(1.0 / (double)elements) : 1;
    return op_map(&op, &us_map_soft_margin_loss_backward, acl_promote(acl_promote(g->dtype, x->dtype), y->dtype),
                  OPERANDS(g, x, y), OPERANDS(result), NUMBERS({.real = factor}));
}
