/* Pooling descriptors and the sizes that follow from them (mcdnn 6.15, 7.2, 7.3). */
#include "pooling.h"

static PoolingDescriptor *descriptor(Call *call, mcdnnPoolingDescriptor_t poolingDesc)
{
    return descriptor_of(call, "poolingDesc", poolingDesc, HANDLE_POOLING, "a pooling descriptor");
}

const PoolingDescriptor *check_pooling(Call *call, mcdnnPoolingDescriptor_t poolingDesc)
{
    const PoolingDescriptor *pooling = descriptor(call, poolingDesc);
    us_require(call, pooling->axes > 0, "poolingDesc", "set", MCDNN_STATUS_BAD_PARAM,
               "poolingDesc was given no window");
    return pooling;
}

int64_t pooling_output(const PoolingDescriptor *pooling, int axis, int64_t size)
{
    int64_t room = size + 2 * (int64_t)pooling->padding[axis] - pooling->window[axis];
    return room < 0 ? 0 : 1 + room / pooling->stride[axis];
}

mcdnnStatus_t mcdnnCreatePoolingDescriptor(mcdnnPoolingDescriptor_t *poolingDesc)
{
    return descriptor_make("mcdnnCreatePoolingDescriptor", HANDLE_POOLING, "poolingDesc", poolingDesc,
                           &(const PoolingDescriptor){0}, sizeof(PoolingDescriptor));
}

mcdnnStatus_t mcdnnDestroyPoolingDescriptor(mcdnnPoolingDescriptor_t poolingDesc)
{
    return descriptor_end("mcdnnDestroyPoolingDescriptor", HANDLE_POOLING, "poolingDesc", poolingDesc);
}

static void check_options(Call *call, mcdnnPoolingMode_t mode, mcdnnNanPropagation_t nan)
{
    check_range(call, "mode", mode, MCDNN_POOLING_MAX, MCDNN_POOLING_MAX_DETERMINISTIC);
    check_range(call, "maxpoolingNanOpt", nan, MCDNN_NOT_PROPAGATE_NAN, MCDNN_PROPAGATE_NAN);
}

static void check_least(Call *call, const char *parameter, int value, int least)
{
    us_require(call, value >= least, parameter, "range", MCDNN_STATUS_BAD_PARAM, "%s is %d, at least %d is needed",
               parameter, value, least);
}

mcdnnStatus_t mcdnnSetPooling2dDescriptor(
    mcdnnPoolingDescriptor_t poolingDesc, mcdnnPoolingMode_t mode,
    mcdnnNanPropagation_t maxpoolingNanOpt, int windowHeight, int windowWidth,
    int verticalPadding, int horizontalPadding, int verticalStride, int horizontalStride)
{
    Call call = us_call_begin("mcdnnSetPooling2dDescriptor");
    PoolingDescriptor *pooling = descriptor(&call, poolingDesc);
    check_options(&call, mode, maxpoolingNanOpt);
    check_least(&call, "windowHeight", windowHeight, 1);
    check_least(&call, "windowWidth", windowWidth, 1);
    check_least(&call, "verticalPadding", verticalPadding, 0);
    check_least(&call, "horizontalPadding", horizontalPadding, 0);
    check_least(&call, "verticalStride", verticalStride, 1);
    check_least(&call, "horizontalStride", horizontalStride, 1);
    if (call.status == 0)
        *pooling = (PoolingDescriptor){2, mode, maxpoolingNanOpt, {windowHeight, windowWidth},
                                       {verticalPadding, horizontalPadding}, {verticalStride, horizontalStride}};
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSetPoolingNdDescriptor(
    mcdnnPoolingDescriptor_t poolingDesc, const mcdnnPoolingMode_t mode,
    const mcdnnNanPropagation_t maxpoolingNanOpt, int nbDims, const int windowDimA[],
    const int paddingA[], const int strideA[])
{
    Call call = us_call_begin("mcdnnSetPoolingNdDescriptor");
    PoolingDescriptor *pooling = descriptor(&call, poolingDesc);
    check_given(&call, "windowDimA", windowDimA);
    check_given(&call, "paddingA", paddingA);
    check_given(&call, "strideA", strideA);
    check_options(&call, mode, maxpoolingNanOpt);
    us_require(&call, nbDims == 2 || nbDims == 3, "nbDims", "supported", MCDNN_STATUS_NOT_SUPPORTED,
               "nbDims is %d, windows have 2 or 3 dimensions", nbDims);
    PoolingDescriptor wanted = {nbDims, mode, maxpoolingNanOpt, {0}, {0}, {0}};
    for (int axis = 0; call.status == 0 && axis < nbDims; axis++) {
        check_least(&call, "windowDimA", windowDimA[axis], 1);
        check_least(&call, "paddingA", paddingA[axis], 0);
        check_least(&call, "strideA", strideA[axis], 1);
        wanted.window[axis] = windowDimA[axis];
        wanted.padding[axis] = paddingA[axis];
        wanted.stride[axis] = strideA[axis];
    }
    if (call.status == 0)
        *pooling = wanted;
    return us_call_end(&call);
}

static void give_options(const PoolingDescriptor *pooling, mcdnnPoolingMode_t *mode, mcdnnNanPropagation_t *nan)
{
    GIVE(mode, pooling->mode);
    GIVE(nan, pooling->nan);
}

mcdnnStatus_t mcdnnGetPooling2dDescriptor(
    const mcdnnPoolingDescriptor_t poolingDesc, mcdnnPoolingMode_t *mode,
    mcdnnNanPropagation_t *maxpoolingNanOpt, int *windowHeight, int *windowWidth,
    int *verticalPadding, int *horizontalPadding, int *verticalStride, int *horizontalStride)
{
    Call call = us_call_begin("mcdnnGetPooling2dDescriptor");
    const PoolingDescriptor *pooling = descriptor(&call, poolingDesc);
    us_require(&call, pooling->axes <= 2, "poolingDesc", "dimensions", MCDNN_STATUS_BAD_PARAM,
               "the window has %d dimensions, not 2", pooling->axes);
    if (call.status == 0) {
        give_options(pooling, mode, maxpoolingNanOpt);
        GIVE(windowHeight, pooling->window[0]);
        GIVE(windowWidth, pooling->window[1]);
        GIVE(verticalPadding, pooling->padding[0]);
        GIVE(horizontalPadding, pooling->padding[1]);
        GIVE(verticalStride, pooling->stride[0]);
        GIVE(horizontalStride, pooling->stride[1]);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetPoolingNdDescriptor(
    const mcdnnPoolingDescriptor_t poolingDesc, int nbDimsRequested, mcdnnPoolingMode_t *mode,
    mcdnnNanPropagation_t *maxpoolingNanOpt, int *nbDims, int windowDimA[], int paddingA[],
    int strideA[])
{
    Call call = us_call_begin("mcdnnGetPoolingNdDescriptor");
    const PoolingDescriptor *pooling = descriptor(&call, poolingDesc);
    if (call.status == 0) {
        give_options(pooling, mode, maxpoolingNanOpt);
        GIVE(nbDims, pooling->axes);
        for (int axis = 0; axis < nbDimsRequested && axis < pooling->axes; axis++) {
            GIVE(windowDimA != NULL ? &windowDimA[axis] : NULL, pooling->window[axis]);
            GIVE(paddingA != NULL ? &paddingA[axis] : NULL, pooling->padding[axis]);
            GIVE(strideA != NULL ? &strideA[axis] : NULL, pooling->stride[axis]);
        }
    }
    return us_call_end(&call);
}

/* Sizes of the output for an input; zero where the window does not fit. */
static void output_sizes(Call *call, const PoolingDescriptor *pooling, const Tensor *input, int64_t *sizes)
{
    us_require(call, input->rank == pooling->axes + 2, "inputTensorDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "the input has %d dimensions, a window of %d needs %d", input->rank, pooling->axes, pooling->axes + 2);
    for (int axis = 0; call->status == 0 && axis < input->rank; axis++) {
        sizes[axis] = axis < 2 ? input->sizes[axis] : pooling_output(pooling, axis - 2, input->sizes[axis]);
        us_require(call, sizes[axis] > 0, "inputTensorDesc", "window", MCDNN_STATUS_BAD_PARAM,
                   "the window of %d does not fit into %lld with padding %d", pooling->window[axis - 2],
                   (long long)input->sizes[axis], pooling->padding[axis - 2]);
    }
}

mcdnnStatus_t mcdnnGetPoolingNdForwardOutputDim(
    const mcdnnPoolingDescriptor_t poolingDesc, const mcdnnTensorDescriptor_t inputTensorDesc,
    int nbDims, int outputTensorDimA[])
{
    Call call = us_call_begin("mcdnnGetPoolingNdForwardOutputDim");
    const PoolingDescriptor *pooling = check_pooling(&call, poolingDesc);
    const Tensor *input = check_tensor(&call, "inputTensorDesc", inputTensorDesc);
    check_given(&call, "outputTensorDimA", outputTensorDimA);
    us_require(&call, nbDims == input->rank, "nbDims", "rank", MCDNN_STATUS_BAD_PARAM,
               "nbDims is %d, the input has %d dimensions", nbDims, input->rank);
    int64_t sizes[MCDNN_DIM_MAX];
    output_sizes(&call, pooling, input, sizes);
    for (int axis = 0; call.status == 0 && axis < nbDims; axis++)
        outputTensorDimA[axis] = size_given(sizes[axis]);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetPooling2dForwardOutputDim(
    const mcdnnPoolingDescriptor_t poolingDesc, const mcdnnTensorDescriptor_t inputTensorDesc,
    int *n, int *c, int *h, int *w)
{
    Call call = us_call_begin("mcdnnGetPooling2dForwardOutputDim");
    const PoolingDescriptor *pooling = check_pooling(&call, poolingDesc);
    const Tensor *input = check_tensor(&call, "inputTensorDesc", inputTensorDesc);
    us_require(&call, pooling->axes == 2, "poolingDesc", "dimensions", MCDNN_STATUS_BAD_PARAM,
               "the window has %d dimensions, not 2", pooling->axes);
    int64_t sizes[MCDNN_DIM_MAX];
    output_sizes(&call, pooling, input, sizes);
    if (call.status == 0) {
        GIVE(n, size_given(sizes[0]));
        GIVE(c, size_given(sizes[1]));
        GIVE(h, size_given(sizes[2]));
        GIVE(w, size_given(sizes[3]));
    }
    return us_call_end(&call);
}
