#include "aclnnop/aclnn_soft_margin_loss.h"
#include "ascend/common/op_call.h"
#include "ascend/common/promotion.h"
#include "ascend/opapi/loss.h"
#include "kernels/map/formulas.h"

/* aclnn-ops 4.1. */
aclnnStatus aclnnSoftMarginLossGetWorkspaceSize(const aclTensor *self, const aclTensor *target, int64_t reduction,
                                                aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    OpCall op = op_begin("aclnnSoftMarginLoss", workspaceSize, executor);
    const Operand *x = op_input(&op, "self", self);
    const Operand *y = op_input(&op, "target", target);
    const Operand *result = op_output(&op, "out", out);

    op_require_dtype(&op, x, op_float_dtypes(&op));
    op_require_dtype(&op, y, op_float_dtypes(&op));
    op_require_dtype(&op, result, op_float_dtypes(&op));

    op_require_rank(&op, x, 0, 8);
    op_require_rank(&op, y, 0, 8);

    Shape shape = op_shape(x);
    op_require_broadcast(&op, y, &shape);
    Shape scalar = {.rank = 0};
    op_require_shape(&op, result, reduction == 0 ? &shape : &scalar);

    if (reduction == 0 && (op_empty(x) || op_empty(y))) {
        return op_plan_nothing(&op);
    }
    const int64_t mean_or_sum = reduction == 0 || reduction == 1 ? reduction : 2;
    return op_loss(&op, &us_map_soft_margin_loss, acl_promote(x->dtype, y->dtype), OPERANDS(x, y), result, mean_or_sum, 0,
                   NULL);
}
