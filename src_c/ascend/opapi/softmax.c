/* Softmax: src_c/kernels/softmax/softmax.c. */
#include "ascend/opapi/softmax.h"

#include "kernels/softmax/masked.h"

enum { MOST_VIEWS = 3 };

static aclnnStatus plan(OpCall *op, Kernel *kernel, SoftmaxAlgorithm algorithm, int32_t axis, int32_t count,
                        const Operand *const *operands)
{
    const Softmax softmax = {.algorithm = algorithm, .first_axis = axis, .last_axis = axis, .alpha = 1, .beta = 0};
    View views[MOST_VIEWS];
    PlannedView planned[MOST_VIEWS];
    for (int32_t i = 0; i < count; i++) {
        views[i] = operands[i]->view;
        if (views[i].rank == 0) {
            views[i].rank = 1;
            views[i].shape[0] = views[i].strides[0] = 1;
        }
        planned[i] = (PlannedView){operands[i], i == count - 1 ? VIEW_WRITE : VIEW_READ, &views[i]};
    }
    return op_plan_views(op, kernel, &softmax, sizeof softmax, count, planned);
}

aclnnStatus op_softmax(OpCall *op, SoftmaxAlgorithm algorithm, const Operand *self, int32_t axis, const Operand *out)
{
    return plan(op, us_softmax_forward, algorithm, axis, 2, (const Operand *const[]){self, out});
}

aclnnStatus op_softmax_backward(OpCall *op, SoftmaxAlgorithm algorithm, const Operand *gradient, const Operand *result,
                                int32_t axis, const Operand *out)
{
    return plan(op, us_softmax_backward, algorithm, axis, 3, (const Operand *const[]){result, gradient, out});
}

bool op_masks_planes(const Operand *mask, const Operand *x)
{
    bool fits = mask->view.rank == 4 && x->view.rank == 4;
    for (int64_t axis = 0; axis < 4 && fits; axis++) {
        fits = op_size(mask, axis) == op_size(x, axis) || (axis < 2 && op_size(mask, axis) == 1);
    }
    return fits;
}

aclnnStatus op_masked_softmax(OpCall *op, const Operand *x, const Operand *mask, double scale, const Operand *y)
{
    const MaskedSoftmax how = {.scale = scale, .fill = -10000};
    return op_plan_operands(op, us_masked_softmax, &how, sizeof how, OPERANDS(x, mask), OPERANDS(y));
}

aclnnStatus op_masked_softmax_backward(OpCall *op, const Operand *gradient, const Operand *result, const Operand *mask,
                                       double scale, const Operand *out)
{
    const MaskedSoftmax how = {.scale = scale};
    return op_plan_operands(op, us_masked_softmax_backward, &how, sizeof how, OPERANDS(gradient, result, mask), OPERANDS(out));
}
