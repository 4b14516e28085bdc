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

/* The axis of a mask that counts windows, of a bias that counts heads: 3 axes have no other but it and the plane's two. */
static int64_t window_axis(const Operand *mask)
{
    return mask->view.rank == 5 ? 1 : 0;
}

static int64_t head_axis(const Operand *bias)
{
    return bias->view.rank - 3;
}

/* The last two sizes are x's, and all others but that of the axis are 1. */
static bool has_planes_along(const Operand *operand, int64_t axis, const Operand *x)
{
    const int32_t rank = operand->view.rank;
    bool fits = rank >= 3 && rank <= 5 && op_size(operand, -1) == op_size(x, -1) && op_size(operand, -2) == op_size(x, -2);
    for (int64_t other = 0; other < rank - 2 && fits; other++) {
        fits = other == axis || op_size(operand, other) == 1;
    }
    return fits;
}

bool op_masks_windows(const Operand *mask, const Operand *x)
{
    if (!has_planes_along(mask, window_axis(mask), x)) {
        return false;
    }
    const int64_t windows = op_size(mask, window_axis(mask));
    return x->view.rank == 5 ? windows == op_size(x, 1) : windows > 0 && op_size(x, 0) % windows == 0;
}

bool op_shifts_heads(const Operand *bias, const Operand *x)
{
    return has_planes_along(bias, head_axis(bias), x) && op_size(bias, head_axis(bias)) == op_size(x, -3);
}

/* The planes as [B, W, N, H, W'], of which place `to` is the axis. */
static View planes_along(const Operand *operand, int64_t axis, int32_t to)
{
    View planes = operand->view;
    planes.rank = 5;
    for (int32_t i = 0; i < 3; i++) {
        planes.shape[i] = i == to ? operand->view.shape[axis] : 1;
        planes.strides[i] = i == to ? operand->view.strides[axis] : 0;
    }
    for (int32_t i = 3; i < 5; i++) {
        planes.shape[i] = operand->view.shape[operand->view.rank - 5 + i];
        planes.strides[i] = operand->view.strides[operand->view.rank - 5 + i];
    }
    return planes;
}

/* [B * W, …] as [B, W, …]; without a mask, which counts the windows, all are of one batch. */
static View in_windows(const Operand *operand, const Operand *mask)
{
    if (operand->view.rank == 5) {
        return operand->view;
    }
    const int64_t all = operand->view.shape[0], windows = op_given(mask) ? op_size(mask, window_axis(mask)) : all;
    View view = us_view_insert_axis(operand->view, 1, windows, operand->view.strides[0]);
    view.shape[0] = windows > 0 ? all / windows : 1;
    view.strides[0] *= windows;
    return view;
}

aclnnStatus op_shifted_softmax(OpCall *op, const Operand *x, const Operand *mask, const Operand *bias, double scale,
                               const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const bool masked = op_given(mask);
    const View of_x = in_windows(x, mask), of_out = in_windows(out, mask), of_bias = planes_along(bias, head_axis(bias), 2);
    const View of_mask = masked ? planes_along(mask, window_axis(mask), 1) : us_view_absent();
    const MaskedSoftmax how = {.scale = scale};
    const PlannedView views[] = {{x, VIEW_READ, &of_x}, {masked ? mask : NULL, VIEW_READ, &of_mask},
                                 {bias, VIEW_READ, &of_bias}, {out, VIEW_WRITE, &of_out}};
    return op_plan_views(op, us_shifted_softmax, &how, sizeof how, 4, views);
}
