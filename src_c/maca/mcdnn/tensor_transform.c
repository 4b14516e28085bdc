/* Changes of layout with padding and folding (mcdnn 5.1, 7.3). */
#include "kernels/blend/tensor_transform.h"

#include "check.h"
#include "filter.h"

typedef struct TransformDescriptor {
    int32_t rank; /* 0 until set */
    mcdnnTensorFormat_t format;
    mcdnnFoldingDirection_t direction;
    int32_t before[MCDNN_DIM_MAX], after[MCDNN_DIM_MAX];
    uint32_t fold[MCDNN_DIM_MAX]; /* of the spatial axes: fold[0] belongs to axis 2 */
} TransformDescriptor;

static TransformDescriptor *descriptor(Call *call, const char *parameter, mcdnnTensorTransformDescriptor_t handle)
{
    return descriptor_of(call, parameter, handle, HANDLE_TENSOR_TRANSFORM, "a transform descriptor");
}

static const TransformDescriptor *check_transform(Call *call, const char *parameter,
                                                  mcdnnTensorTransformDescriptor_t handle)
{
    const TransformDescriptor *transform = descriptor(call, parameter, handle);
    us_require(call, transform->rank > 0, parameter, "set", MCDNN_STATUS_BAD_PARAM, "%s was given no transform",
               parameter);
    return transform;
}

mcdnnStatus_t mcdnnCreateTensorTransformDescriptor(mcdnnTensorTransformDescriptor_t *transformDesc)
{
    return descriptor_make("mcdnnCreateTensorTransformDescriptor", HANDLE_TENSOR_TRANSFORM, "transformDesc", transformDesc,
                           &(const TransformDescriptor){0}, sizeof(TransformDescriptor));
}

mcdnnStatus_t mcdnnDestroyTensorTransformDescriptor(mcdnnTensorTransformDescriptor_t transformDesc)
{
    return descriptor_end("mcdnnDestroyTensorTransformDescriptor", HANDLE_TENSOR_TRANSFORM, "transformDesc", transformDesc);
}

static int32_t check_padding(Call *call, const char *parameter, const int32_t *padding, int axis)
{
    const int32_t value = padding != NULL ? padding[axis] : 0;
    us_require(call, value >= 0, parameter, "negative", MCDNN_STATUS_BAD_PARAM, "%s[%d] is %d, negative", parameter,
               axis, (int)value);
    return value;
}

/* NULL arrays: no padding, no folding. */
mcdnnStatus_t mcdnnSetTensorTransformDescriptor(
    mcdnnTensorTransformDescriptor_t transformDesc, const uint32_t nbDims,
    const mcdnnTensorFormat_t destFormat, const int32_t padBeforeA[], const int32_t padAfterA[],
    const uint32_t foldA[], const mcdnnFoldingDirection_t direction)
{
    Call call = us_call_begin("mcdnnSetTensorTransformDescriptor");
    TransformDescriptor *target = descriptor(&call, "transformDesc", transformDesc);
    check_range(&call, "destFormat", destFormat, MCDNN_TENSOR_NCHW, MCDNN_TENSOR_NCHW_VECT_C);
    check_range(&call, "direction", direction, MCDNN_TRANSFORM_FOLD, MCDNN_TRANSFORM_UNFOLD);
    us_require(&call, nbDims > 2, "nbDims", "minimum", MCDNN_STATUS_BAD_PARAM, "nbDims is %u, at least 3 are needed",
               nbDims);
    us_require(&call, nbDims <= MCDNN_DIM_MAX, "nbDims", "limit", MCDNN_STATUS_NOT_SUPPORTED,
               "nbDims is %u, at most %d are supported", nbDims, MCDNN_DIM_MAX);
    us_require(&call, destFormat != MCDNN_TENSOR_NCHW_VECT_C, "destFormat", "supported", MCDNN_STATUS_NOT_SUPPORTED,
               "destFormat is NCHW_VECT_C: vectors of channels cannot be transformed");
    TransformDescriptor wanted = {(int32_t)nbDims, destFormat, direction, {0}, {0}, {0}};
    for (int axis = 0; call.status == 0 && axis < (int)nbDims; axis++) {
        wanted.before[axis] = check_padding(&call, "padBeforeA", padBeforeA, axis);
        wanted.after[axis] = check_padding(&call, "padAfterA", padAfterA, axis);
    }
    for (int axis = 0; call.status == 0 && axis < (int)nbDims - 2; axis++) {
        wanted.fold[axis] = foldA != NULL ? foldA[axis] : 1;
        us_require(&call, wanted.fold[axis] >= 1 && wanted.fold[axis] <= INT32_MAX, "foldA", "positive",
                   MCDNN_STATUS_BAD_PARAM, "foldA[%d] is %u, it must be from 1 to 2^31 - 1", axis, wanted.fold[axis]);
    }
    if (call.status == 0)
        *target = wanted;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetTensorTransformDescriptor(
    mcdnnTensorTransformDescriptor_t transformDesc, uint32_t nbDimsRequested,
    mcdnnTensorFormat_t *destFormat, int32_t padBeforeA[], int32_t padAfterA[],
    uint32_t foldA[], mcdnnFoldingDirection_t *direction)
{
    Call call = us_call_begin("mcdnnGetTensorTransformDescriptor");
    const TransformDescriptor *transform = descriptor(&call, "transformDesc", transformDesc);
    if (call.status != 0)
        return us_call_end(&call);
    GIVE(destFormat, transform->format);
    GIVE(direction, transform->direction);
    for (int32_t axis = 0; axis < transform->rank && (uint32_t)axis < nbDimsRequested; axis++) {
        if (padBeforeA != NULL)
            padBeforeA[axis] = transform->before[axis];
        if (padAfterA != NULL)
            padAfterA[axis] = transform->after[axis];
        if (foldA != NULL && axis + 2 < transform->rank && (uint32_t)axis + 2 < nbDimsRequested)
            foldA[axis] = transform->fold[axis];
    }
    return us_call_end(&call);
}

/* The sizes that the source gets: parameter/rank, parameter/fold, parameter/elements. Sizes stay below 2^31, so one
 * product of a size and a factor cannot overflow. */
static Tensor result_of(Call *call, const TransformDescriptor *transform, const char *parameter, const Tensor *source)
{
    Tensor result = {.lanes = 1};
    us_require(call, source->rank == transform->rank, parameter, "rank", MCDNN_STATUS_BAD_PARAM,
               "%s has %d dimensions, the transform %d", parameter, source->rank, transform->rank);
    if (call->status != 0)
        return result;
    const bool unfold = transform->direction == MCDNN_TRANSFORM_UNFOLD;
    const int64_t limit = INT64_C(1) << 31;
    result.rank = source->rank;
    result.type = source->type;
    int64_t blocks = 1, elements = 1;
    for (int32_t axis = 2; axis < source->rank && blocks <= limit; axis++)
        blocks *= transform->fold[axis - 2];
    us_require(call, !unfold || source->sizes[1] % blocks == 0, parameter, "fold", MCDNN_STATUS_BAD_PARAM,
               "%lld channels cannot be unfolded into blocks of %lld", (long long)source->sizes[1], (long long)blocks);
    for (int32_t axis = 0; call->status == 0 && axis < source->rank; axis++) {
        const int64_t padding = (int64_t)transform->before[axis] + transform->after[axis], size = source->sizes[axis];
        const int64_t fold = axis < 2 ? 1 : transform->fold[axis - 2];
        const int64_t folded = blocks <= limit / (size + padding) ? (size + padding) * blocks : limit + 1;
        result.sizes[axis] = axis == 1 ? (unfold ? size / blocks + padding : folded)
                             : unfold  ? size * fold + padding
                                       : (size + padding + fold - 1) / fold;
        us_require(call, result.sizes[axis] <= limit / elements, parameter, "elements", MCDNN_STATUS_NOT_SUPPORTED,
                   "the result would have more than 2^31 elements");
        elements *= call->status == 0 ? result.sizes[axis] : 1;
    }
    return result;
}

mcdnnStatus_t mcdnnInitTransformDest(
    const mcdnnTensorTransformDescriptor_t transformDesc, const mcdnnTensorDescriptor_t srcDesc,
    mcdnnTensorDescriptor_t destDesc, size_t *destSizeInBytes)
{
    Call call = us_call_begin("mcdnnInitTransformDest");
    const TransformDescriptor *transform = check_transform(&call, "transformDesc", transformDesc);
    const Tensor *source = check_tensor(&call, "srcDesc", srcDesc);
    Tensor *target = descriptor_of(&call, "destDesc", destDesc, HANDLE_TENSOR, "a tensor descriptor");
    check_given(&call, "destSizeInBytes", destSizeInBytes);
    check_float_type(&call, "srcDesc", source);
    if (call.status != 0)
        return us_call_end(&call);
    Tensor result = result_of(&call, transform, "srcDesc", source);
    if (call.status == 0) {
        tensor_pack(&result, transform->format);
        *target = result;
        *destSizeInBytes = (size_t)tensor_elements(&result) * us_dtype_size(type_dtype(result.type));
    }
    return us_call_end(&call);
}

static bool moves(const TransformDescriptor *transform)
{
    bool found = false;
    for (int32_t axis = 0; axis < transform->rank; axis++)
        found |= transform->before[axis] != 0 || transform->after[axis] != 0 ||
                 (axis >= 2 && transform->fold[axis - 2] > 1);
    return found;
}

/* What the functions on tensors and on filters have in common, from the checks of shapes on. */
static void transform_data(Call *call, const Dnn *dnn, const TransformDescriptor *transform, const void *alpha,
                           const Tensor *source, const void *source_data, const void *beta, const Tensor *target,
                           void *target_data)
{
    if (call->status != 0)
        return;
    Tensor wanted = result_of(call, transform, "srcDesc", source);
    check_same_sizes(call, MCDNN_STATUS_BAD_PARAM, "destDesc", target, "the transformed srcDesc", &wanted);
    check_float_type(call, "srcDesc", source);
    check_float_type(call, "destDesc", target);
    check_apart(call, "destDesc", target);
    const bool folds = moves(transform) && transform->direction == MCDNN_TRANSFORM_FOLD;
    us_require(call, !folds || scaling_factor(beta, target) == 0, "beta", "zero", MCDNN_STATUS_NOT_SUPPORTED,
               "beta is %g, with padding or folding it must be 0", scaling_factor(beta, target));
    if (call->status != 0)
        return;
    TensorTransform kernel = {.unfold = transform->direction == MCDNN_TRANSFORM_UNFOLD,
                              .moves = moves(transform),
                              .alpha = scaling_factor(alpha, target),
                              .beta = scaling_factor(beta, target)};
    for (int32_t axis = 0; axis < transform->rank; axis++) {
        kernel.pad_before[axis] = transform->before[axis];
        kernel.pad_after[axis] = transform->after[axis];
        kernel.fold[axis] = axis < 2 ? 1 : (int32_t)transform->fold[axis - 2];
    }
    Launch launch;
    us_launch_begin(&launch, call->function);
    launch_tensor(&launch, "srcData", source, source_data, 1);
    launch_output(&launch, "destData", target, target_data, 1, kernel.beta);
    us_launch_kernel(&launch, us_tensor_transform, &kernel, sizeof kernel);
    submit(call, dnn, &launch);
}

mcdnnStatus_t mcdnnTransformTensorEx(
    mcdnnHandle_t handle, const mcdnnTensorTransformDescriptor_t transDesc, const void *alpha,
    const mcdnnTensorDescriptor_t srcDesc, const void *srcData, const void *beta,
    const mcdnnTensorDescriptor_t destDesc, void *destData)
{
    Call call = us_call_begin("mcdnnTransformTensorEx");
    const Dnn *dnn = check_handle(&call, handle);
    const TransformDescriptor *transform = check_transform(&call, "transDesc", transDesc);
    const Tensor *source = check_tensor(&call, "srcDesc", srcDesc);
    const Tensor *target = check_tensor(&call, "destDesc", destDesc);
    check_on_host(&call, "alpha", alpha);
    check_given(&call, "srcData", srcData);
    check_on_host(&call, "beta", beta);
    check_given(&call, "destData", destData);
    transform_data(&call, dnn, transform, alpha, source, srcData, beta, target, destData);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnTransformFilter(
    mcdnnHandle_t handle, const mcdnnTensorTransformDescriptor_t transDesc, const void *alpha,
    const mcdnnFilterDescriptor_t srcDesc, const void *srcData, const void *beta,
    const mcdnnFilterDescriptor_t destDesc, void *destData)
{
    Call call = us_call_begin("mcdnnTransformFilter");
    const Dnn *dnn = check_handle(&call, handle);
    const TransformDescriptor *transform = check_transform(&call, "transDesc", transDesc);
    const Tensor source = check_filter(&call, "srcDesc", srcDesc);
    const Tensor target = check_filter(&call, "destDesc", destDesc);
    check_on_host(&call, "alpha", alpha);
    check_given(&call, "srcData", srcData);
    check_on_host(&call, "beta", beta);
    check_given(&call, "destData", destData);
    transform_data(&call, dnn, transform, alpha, &source, srcData, beta, &target, destData);
    return us_call_end(&call);
}
