#include "kernels/conv/gradients.h"

#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reductions.h"

/* The sum over all axes but the channels. */
static KernelStatus bias_gradient(const View *dy, const View *dbias)
{
    View sums = *dy;
    sums.data = dbias->data;
    sums.dtype = dbias->dtype;
    for (int32_t axis = 0; axis < dy->rank; axis++) {
        sums.shape[axis] = axis == 1 ? dy->shape[1] : 1;
        sums.strides[axis] = axis == 1 ? dbias->strides[0] : 0;
    }
    const DType compute = dy->dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    const ReduceCall sum = {.reduction = &us_reduce_sum, .compute = compute, .result = compute,
                            .axes = ((UINT32_C(1) << dy->rank) - 1) & ~UINT32_C(2), .outputs = 1};
    const View views[] = {*dy, sums};
    return us_reduce(views, &sum);
}

KernelStatus us_conv_gradients(const View *views, const void *attributes)
{
    const ConvGradients *gradients = attributes;
    const View *dy = &views[0], *x = &views[1], *w = &views[2], *dx = &views[3], *dw = &views[4], *dbias = &views[5];
    const View absent = us_view_absent();
    KernelStatus status = KERNEL_OK;
    if (!us_view_is_absent(dx)) {
        const View of_x[] = {*dy, *w, absent, absent, *dx};
        status = gradients->transposed ? us_conv_forward(of_x, &gradients->conv)
                                       : us_conv_backward_data(of_x, &gradients->conv);
    }
    if (status == KERNEL_OK && !us_view_is_absent(dw)) {
        const View of_w[] = {gradients->transposed ? *dy : *x, gradients->transposed ? *x : *dy, *dw};
        status = us_conv_backward_filter(of_w, &gradients->conv);
    }
    return status != KERNEL_OK || us_view_is_absent(dbias) ? status : bias_gradient(dy, dbias);
}
