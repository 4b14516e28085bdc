/* Reductions over the dimensions in which the result has size 1 (mcdnn 7.3). */
#include "kernels/blend/tensor_ops.h"

#include "check.h"

typedef struct ReduceDescriptor {
    bool set;
    mcdnnReduceTensorOp_t op;
    mcdnnDataType_t compute;
    mcdnnNanPropagation_t nan;
    mcdnnReduceTensorIndices_t indices;
    mcdnnIndicesType_t indices_type;
} ReduceDescriptor;

static ReduceDescriptor *descriptor(Call *call, mcdnnReduceTensorDescriptor_t reduceTensorDesc)
{
    return descriptor_of(call, "reduceTensorDesc", reduceTensorDesc, HANDLE_REDUCE_TENSOR, "a reduction descriptor");
}

static const ReduceDescriptor *check_reduction(Call *call, mcdnnReduceTensorDescriptor_t reduceTensorDesc)
{
    const ReduceDescriptor *reduction = descriptor(call, reduceTensorDesc);
    us_require(call, reduction->set, "reduceTensorDesc", "set", MCDNN_STATUS_BAD_PARAM,
               "reduceTensorDesc was given no operation");
    return reduction;
}

mcdnnStatus_t mcdnnCreateReduceTensorDescriptor(mcdnnReduceTensorDescriptor_t *reduceTensorDesc)
{
    return descriptor_make("mcdnnCreateReduceTensorDescriptor", HANDLE_REDUCE_TENSOR, "reduceTensorDesc", reduceTensorDesc,
                           &(const ReduceDescriptor){0}, sizeof(ReduceDescriptor));
}

mcdnnStatus_t mcdnnDestroyReduceTensorDescriptor(mcdnnReduceTensorDescriptor_t reduceTensorDesc)
{
    return descriptor_end("mcdnnDestroyReduceTensorDescriptor", HANDLE_REDUCE_TENSOR, "reduceTensorDesc", reduceTensorDesc);
}

mcdnnStatus_t mcdnnSetReduceTensorDescriptor(
    mcdnnReduceTensorDescriptor_t reduceTensorDesc, mcdnnReduceTensorOp_t reduceTensorOp,
    mcdnnDataType_t reduceTensorCompType, mcdnnNanPropagation_t reduceTensorNanOpt,
    mcdnnReduceTensorIndices_t reduceTensorIndices, mcdnnIndicesType_t reduceTensorIndicesType)
{
    Call call = us_call_begin("mcdnnSetReduceTensorDescriptor");
    ReduceDescriptor *target = descriptor(&call, reduceTensorDesc);
    check_range(&call, "reduceTensorOp", reduceTensorOp, MCDNN_REDUCE_TENSOR_ADD, MCDNN_REDUCE_TENSOR_MUL_NO_ZEROS);
    check_range(&call, "reduceTensorNanOpt", reduceTensorNanOpt, MCDNN_NOT_PROPAGATE_NAN, MCDNN_PROPAGATE_NAN);
    check_range(&call, "reduceTensorIndices", reduceTensorIndices, MCDNN_REDUCE_TENSOR_NO_INDICES,
                MCDNN_REDUCE_TENSOR_FLATTENED_INDICES);
    check_range(&call, "reduceTensorIndicesType", reduceTensorIndicesType, MCDNN_32BIT_INDICES, MCDNN_8BIT_INDICES);
    if (call.status == 0)
        *target = (ReduceDescriptor){true, reduceTensorOp, reduceTensorCompType, reduceTensorNanOpt,
                                     reduceTensorIndices,
                                     reduceTensorIndicesType};
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetReduceTensorDescriptor(
    const mcdnnReduceTensorDescriptor_t reduceTensorDesc, mcdnnReduceTensorOp_t *reduceTensorOp,
    mcdnnDataType_t *reduceTensorCompType, mcdnnNanPropagation_t *reduceTensorNanOpt,
    mcdnnReduceTensorIndices_t *reduceTensorIndices, mcdnnIndicesType_t *reduceTensorIndicesType)
{
    Call call = us_call_begin("mcdnnGetReduceTensorDescriptor");
    const ReduceDescriptor *source = descriptor(&call, reduceTensorDesc);
    if (call.status == 0) {
        GIVE(reduceTensorOp, source->op);
        GIVE(reduceTensorCompType, source->compute);
        GIVE(reduceTensorNanOpt, source->nan);
        GIVE(reduceTensorIndices, source->indices);
        GIVE(reduceTensorIndicesType, source->indices_type);
    }
    return us_call_end(&call);
}

/* Only a minimum or maximum has a place where it was found. */
static bool has_indices(const ReduceDescriptor *reduction)
{
    return reduction->indices == MCDNN_REDUCE_TENSOR_FLATTENED_INDICES &&
           (reduction->op == MCDNN_REDUCE_TENSOR_MIN || reduction->op == MCDNN_REDUCE_TENSOR_MAX ||
            reduction->op == MCDNN_REDUCE_TENSOR_AMAX);
}

static size_t indices_bytes(const ReduceDescriptor *reduction, const Tensor *c)
{
    return has_indices(reduction) ? (size_t)tensor_elements(c) * sizeof(uint32_t) : 0;
}

/* cDesc/reduced: a size that is neither that of A nor 1, or nothing to reduce */
static void check_reduced(Call *call, const Tensor *a, const Tensor *c)
{
    ShapeText text, wanted;
    bool fits = call->status == 0 && a->rank == c->rank, reduces = false;
    for (int32_t axis = 0; fits && axis < a->rank; axis++) {
        fits = c->sizes[axis] == a->sizes[axis] || c->sizes[axis] == 1;
        reduces |= c->sizes[axis] != a->sizes[axis];
    }
    us_require(call, fits && reduces, "cDesc", "reduced", MCDNN_STATUS_BAD_PARAM,
               "cDesc is %s, aDesc %s: sizes must be equal or 1 in cDesc, and some must be reduced", sizes_text(c,
                                                                                                                text),
               sizes_text(a, wanted));
}

static void check_indices_type(Call *call, const ReduceDescriptor *reduction)
{
    us_require(call, !has_indices(reduction) || reduction->indices_type == MCDNN_32BIT_INDICES, "reduceTensorDesc",
               "indices-type", MCDNN_STATUS_NOT_SUPPORTED, "only 32-bit indices are supported");
}

mcdnnStatus_t mcdnnGetReductionIndicesSize(
    mcdnnHandle_t handle, const mcdnnReduceTensorDescriptor_t reduceTensorDesc,
    const mcdnnTensorDescriptor_t aDesc, const mcdnnTensorDescriptor_t cDesc,
    size_t *sizeInBytes)
{
    Call call = us_call_begin("mcdnnGetReductionIndicesSize");
    check_handle(&call, handle);
    const ReduceDescriptor *reduction = check_reduction(&call, reduceTensorDesc);
    const Tensor *a = check_tensor(&call, "aDesc", aDesc);
    const Tensor *c = check_tensor(&call, "cDesc", cDesc);
    check_given(&call, "sizeInBytes", sizeInBytes);
    check_reduced(&call, a, c);
    check_indices_type(&call, reduction);
    if (call.status == 0)
        *sizeInBytes = indices_bytes(reduction, c);
    return us_call_end(&call);
}

/* The kernel needs no workspace. */
mcdnnStatus_t mcdnnGetReductionWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnReduceTensorDescriptor_t reduceTensorDesc,
    const mcdnnTensorDescriptor_t aDesc, const mcdnnTensorDescriptor_t cDesc,
    size_t *sizeInBytes)
{
    Call call = us_call_begin("mcdnnGetReductionWorkspaceSize");
    check_handle(&call, handle);
    check_reduction(&call, reduceTensorDesc);
    const Tensor *a = check_tensor(&call, "aDesc", aDesc);
    const Tensor *c = check_tensor(&call, "cDesc", cDesc);
    check_given(&call, "sizeInBytes", sizeInBytes);
    check_reduced(&call, a, c);
    if (call.status == 0)
        *sizeInBytes = 0;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnReduceTensor(
    mcdnnHandle_t handle, const mcdnnReduceTensorDescriptor_t reduceTensorDesc, void *indices,
    size_t indicesSizeInBytes, void *workspace, size_t workspaceSizeInBytes, const void *alpha,
    const mcdnnTensorDescriptor_t aDesc, const void *A, const void *beta,
    const mcdnnTensorDescriptor_t cDesc, void *C)
{
    (void)workspace;
    (void)workspaceSizeInBytes;
    Call call = us_call_begin("mcdnnReduceTensor");
    const Dnn *dnn = check_handle(&call, handle);
    const ReduceDescriptor *reduction = check_reduction(&call, reduceTensorDesc);
    const bool finds = call.status == 0 && has_indices(reduction);
    const Tensor *a = check_tensor(&call, "aDesc", aDesc);
    const Tensor *c = check_tensor(&call, "cDesc", cDesc);
    check_on_host(&call, "alpha", alpha);
    check_given(&call, "A", A);
    check_on_host(&call, "beta", beta);
    check_given(&call, "C", C);
    if (finds)
        check_given(&call, "indices", indices);
    check_reduced(&call, a, c);
    if (finds) {
        us_require(&call, indicesSizeInBytes >= indices_bytes(reduction, c), "indicesSizeInBytes", "minimum",
                   MCDNN_STATUS_BAD_PARAM, "indicesSizeInBytes is %zu, the indices need %zu", indicesSizeInBytes,
                   indices_bytes(reduction, c));
    }
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "aDesc", a, "cDesc", c);
    check_float_type(&call, "cDesc", c);
    check_apart(&call, "cDesc", c);
    us_require(&call, reduction->compute == (c->type == MCDNN_DATA_DOUBLE ? MCDNN_DATA_DOUBLE : MCDNN_DATA_FLOAT),
               "reduceTensorDesc", "compute-type", MCDNN_STATUS_NOT_SUPPORTED,
               "the descriptor computes in %s, %s data are computed in %s", type_name(reduction->compute),
               type_name(c->type), c->type == MCDNN_DATA_DOUBLE ? "DOUBLE" : "FLOAT");
    check_indices_type(&call, reduction);
    if (call.status != 0)
        return us_call_end(&call);

    static const TensorReduction reductions[] = {
        [MCDNN_REDUCE_TENSOR_ADD] = REDUCE_SUM,          [MCDNN_REDUCE_TENSOR_MUL] = REDUCE_PRODUCT,
        [MCDNN_REDUCE_TENSOR_MIN] = REDUCE_MINIMUM,      [MCDNN_REDUCE_TENSOR_MAX] = REDUCE_MAXIMUM,
        [MCDNN_REDUCE_TENSOR_AMAX] = REDUCE_LARGEST_SIZE, [MCDNN_REDUCE_TENSOR_AVG] = REDUCE_AVERAGE,
        [MCDNN_REDUCE_TENSOR_NORM1] = REDUCE_NORM1,      [MCDNN_REDUCE_TENSOR_NORM2] = REDUCE_NORM2,
        [MCDNN_REDUCE_TENSOR_MUL_NO_ZEROS] = REDUCE_PRODUCT_WITHOUT_ZEROS,
    };
    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "A", a, A, 1);
    launch_output(&launch, "C", c, C, 1, scaling_factor(beta, c));
    int64_t found = tensor_elements(c);
    View index_view = finds ? us_view_contiguous(indices, DTYPE_UINT32, 1, &found) : us_view_absent();
    us_launch_view(&launch, "indices", &index_view);
    us_launch_output(&launch, false);
    TensorReduce kernel = {.reduction = reductions[reduction->op],
                           .propagate_nan = reduction->nan == MCDNN_PROPAGATE_NAN,
                           .alpha = scaling_factor(alpha, c),
                           .beta = scaling_factor(beta, c)};
    return run_kernel(&call, dnn, &launch, us_tensor_reduce, &kernel, sizeof kernel);
}
