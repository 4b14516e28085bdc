/* Softmax: src_c/kernels/softmax/softmax.c. */
#include "ascend/opapi/softmax.h"

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
