#include "kernels/blend/tensor_transform.h"

#include "kernels/blend/tensor_ops.h"

static KernelStatus arithmetic(TensorOperation operation, const View *x, const View *y, double alpha, double beta)
{
    View views[] = {x != NULL ? *x : us_view_absent(), us_view_absent(), *y};
    TensorArithmetic attributes = {.operation = operation, .alpha1 = alpha, .beta = beta};
    return us_tensor_arithmetic(views, &attributes);
}

/* Restricts an axis to every `step`-th element from `first` on, `count` of them. */
static void cut(View *view, int32_t axis, int64_t first, int64_t step, int64_t count)
{
    view->data = (char *)view->data + first * view->strides[axis] * (int64_t)us_dtype_size(view->dtype);
    view->strides[axis] *= step;
    view->shape[axis] = count;
}

/* The elements of one block, in x and in y. */
static KernelStatus move_block(const TensorTransform *transform, const View *views, int64_t block, int64_t channels)
{
    View x = views[0], y = views[1];
    cut(&y, 0, transform->pad_before[0], 1, x.shape[0]);
    if (transform->unfold) {
        cut(&x, 1, block * channels, 1, channels);
        cut(&y, 1, transform->pad_before[1], 1, channels);
    } else {
        const int64_t padded = transform->pad_before[1] + channels + transform->pad_after[1];
        cut(&y, 1, block * padded + transform->pad_before[1], 1, channels);
    }
    for (int32_t axis = x.rank - 1; axis >= 2; axis--) {
        const int64_t fold = transform->fold[axis], pad = transform->pad_before[axis], offset = block % fold;
        block /= fold;
        if (transform->unfold) {
            cut(&y, axis, pad + offset, fold, x.shape[axis]);
            continue;
        }
        const int64_t first = (offset + fold - pad % fold) % fold; /* in x: (pad + first) % fold is the offset */
        const int64_t count = first < x.shape[axis] ? (x.shape[axis] - first + fold - 1) / fold : 0;
        if (count == 0)
            return KERNEL_OK;
        cut(&x, axis, first, fold, count);
        cut(&y, axis, (pad + first) / fold, 1, count);
    }
    return arithmetic(TENSOR_SCALE, &x, &y, transform->alpha, transform->beta);
}

/* What unfolding pads: of each axis the elements before and after, where those of the axes before it lie inside. */
static KernelStatus blend_padding(const TensorTransform *transform, const View *result)
{
    View rest = *result;
    KernelStatus status = KERNEL_OK;
    for (int32_t axis = 0; status == KERNEL_OK && axis < rest.rank; axis++) {
        const int64_t before = transform->pad_before[axis], after = transform->pad_after[axis];
        const int64_t size = rest.shape[axis];
        View ends[] = {rest, rest};
        cut(&ends[0], axis, 0, 1, before);
        cut(&ends[1], axis, size - after, 1, after);
        for (int k = 0; status == KERNEL_OK && k < 2; k++) {
            if (!us_view_is_empty(&ends[k])) {
                status = arithmetic(transform->beta == 0 ? TENSOR_FILL : TENSOR_SCALE,
                                    transform->beta == 0 ? NULL : &ends[k], &ends[k], transform->beta, 0);
            }
        }
        cut(&rest, axis, before, 1, size - before - after);
    }
    return status;
}

KernelStatus us_tensor_transform(const View *views, const void *attributes)
{
    const TensorTransform *transform = attributes;
    if (!transform->moves)
        return arithmetic(TENSOR_SCALE, &views[0], &views[1], transform->alpha, transform->beta);
    int64_t blocks = 1;
    for (int32_t axis = 2; axis < views[0].rank; axis++)
        blocks *= transform->fold[axis];
    const int64_t channels = transform->unfold ? views[0].shape[1] / blocks : views[0].shape[1];
    KernelStatus status = transform->unfold ? blend_padding(transform, &views[1])
                                            : arithmetic(TENSOR_FILL, NULL, &views[1], 0, 0);
    for (int64_t block = 0; status == KERNEL_OK && block < blocks; block++)
        status = move_block(transform, views, block, channels);
    return status;
}
