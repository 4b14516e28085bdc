#include "kernels/matmul/summed.h"

#include "kernels/blend/tensor_ops.h"
#include "kernels/scratch.h"

#include <string.h>

/* Matrix `index` of a batch of matrices. */
static View matrix_of(const View *view, int64_t index)
{
    View matrix = *view;
    matrix.data = (char *)view->data + index * view->strides[0] * (int64_t)us_dtype_size(view->dtype);
    matrix.rank = 2;
    for (int32_t axis = 0; axis < 2; axis++) {
        matrix.shape[axis] = view->shape[axis + 1];
        matrix.strides[axis] = view->strides[axis + 1];
    }
    return matrix;
}

KernelStatus us_product_summed(const View *views, const void *attributes)
{
    const ViewProduct *product = attributes;
    const View *addend = &views[2], *c = &views[3];
    const size_t bytes = us_scratch_bytes(us_view_elements(c), us_dtype_size(product->compute));
    void *sums = us_scratch_take(bytes);
    if (sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    memset(sums, 0, bytes);
    const View sum = us_view_contiguous(sums, product->compute, 2, c->shape), absent = us_view_absent();
    const bool counts = product->alpha[0] != 0 && us_view_elements(&views[0]) > 0 && us_view_elements(&views[1]) > 0;
    KernelStatus status = KERNEL_OK;
    for (int64_t i = 0; counts && i < views[0].shape[0] && status == KERNEL_OK; i++) {
        const ViewProduct one = {.compute = product->compute, .alpha = {1}, .beta = {1}};
        const View operands[] = {matrix_of(&views[0], i), matrix_of(&views[1], i), sum, sum, absent, absent};
        status = us_product(operands, &one);
    }
    if (status == KERNEL_OK) {
        const bool added = product->beta[0] != 0 && !us_view_is_absent(addend);
        const TensorArithmetic finish = {.operation = added ? TENSOR_ADD : TENSOR_SCALE, .alpha1 = product->alpha[0],
                                         .alpha2 = product->beta[0]};
        const View operands[] = {sum, added ? *addend : absent, *c};
        status = us_tensor_arithmetic(operands, &finish);
    }
    us_scratch_give_back(sums);
    return status;
}
