#include "kernels/tensor_transform.h"

#include "kernels/tensor_ops.h"

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
    View *deep = transform->unfold ? &x : &y; /* the one whose channels hold the blocks */
    cut(&y, 0, transform->pad_before[0], 1, x.shape[0]);
    cut(&y, 1, transform->pad_before[1], 1, transform->unfold ? channels : y.shape[1] - transform->pad_before[1]);
    cut(deep, 1, block * channels, 1, channels);
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

KernelStatus us_tensor_transform(const View *views, const void *attributes)
{
    const TensorTransform *transform = attributes;
    if (!transform->moves)
        return arithmetic(TENSOR_SCALE, &views[0], &views[1], transform->alpha, transform->beta);
    int64_t blocks = 1;
    for (int32_t axis = 2; axis < views[0].rank; axis++)
        blocks *= transform->fold[axis];
    const int64_t channels = transform->unfold ? views[0].shape[1] / blocks : views[0].shape[1];
    KernelStatus status = arithmetic(TENSOR_FILL, NULL, &views[1], 0, 0);
    for (int64_t block = 0; status == KERNEL_OK && block < blocks; block++)
        status = move_block(transform, views, block, channels);
    return status;
}
