/* Spatial transformer: descriptor, grid generator, sampler (mcdnn 6.17, 6.18, 7.2). */
#include "kernels/resample/spatial_transformer.h"

#include "check.h"

/* The transformed tensor: the output's type and sizes. Rank 0 until set. */
static Tensor *descriptor(Call *call, mcdnnSpatialTransformerDescriptor_t stDesc)
{
    return descriptor_of(call, "stDesc", stDesc, HANDLE_SPATIAL_TRANSFORMER, "a spatial transformer descriptor");
}

static const Tensor *check_transformer(Call *call, mcdnnSpatialTransformerDescriptor_t stDesc)
{
    const Tensor *transformed = descriptor(call, stDesc);
    us_require(call, transformed->rank > 0, "stDesc", "set", MCDNN_STATUS_BAD_PARAM, "stDesc was given no sizes");
    return transformed;
}

/* Only transforms of images (mcdnn 6.17 #3, 6.18 #4) */
static void check_images(Call *call, const Tensor *transformed)
{
    us_require(call, transformed->rank <= 4, "stDesc", "dimensions", MCDNN_STATUS_NOT_SUPPORTED,
               "the transformed tensor has %d dimensions, supported are 4", transformed->rank);
    check_float_type(call, "stDesc", transformed);
}

mcdnnStatus_t mcdnnCreateSpatialTransformerDescriptor(mcdnnSpatialTransformerDescriptor_t *stDesc)
{
    return descriptor_make("mcdnnCreateSpatialTransformerDescriptor", HANDLE_SPATIAL_TRANSFORMER, "stDesc", stDesc,
                           &(const Tensor){.lanes = 1}, sizeof(Tensor));
}

mcdnnStatus_t mcdnnDestroySpatialTransformerDescriptor(mcdnnSpatialTransformerDescriptor_t stDesc)
{
    return descriptor_end("mcdnnDestroySpatialTransformerDescriptor", HANDLE_SPATIAL_TRANSFORMER, "stDesc", stDesc);
}

mcdnnStatus_t mcdnnSetSpatialTransformerNdDescriptor(
    mcdnnSpatialTransformerDescriptor_t stDesc, mcdnnSamplerType_t samplerType,
    mcdnnDataType_t dataType, const int nbDims, const int dimA[])
{
    Call call = us_call_begin("mcdnnSetSpatialTransformerNdDescriptor");
    Tensor *target = descriptor(&call, stDesc);
    check_given(&call, "dimA", dimA);
    check_range(&call, "samplerType", samplerType, MCDNN_SAMPLER_BILINEAR, MCDNN_SAMPLER_BILINEAR);
    check_range(&call, "dataType", dataType, MCDNN_DATA_FLOAT, MCDNN_DATA_INT64);
    check_range(&call, "nbDims", nbDims, 4, MCDNN_DIM_MAX);
    Tensor wanted = {.type = dataType, .rank = nbDims, .lanes = 1};
    int64_t elements = 1;
    for (int axis = call.status == 0 ? nbDims - 1 : -1; call.status == 0 && axis >= 0; axis--) {
        us_require(&call, dimA[axis] > 0, "dimA", "positive", MCDNN_STATUS_BAD_PARAM,
                   "dimA[%d] is %d, it must be positive", axis, dimA[axis]);
        wanted.sizes[axis] = dimA[axis];
        wanted.strides[axis] = elements;
        elements *= dimA[axis];
        us_require(&call, elements <= INT64_C(1) << 31, "dimA", "elements", MCDNN_STATUS_NOT_SUPPORTED,
                   "the transformed tensor has more than 2^31 elements");
    }
    if (call.status == 0)
        *target = wanted;
    return us_call_end(&call);
}

static void add_theta(Launch *launch, const char *parameter, const Tensor *transformed, const void *data)
{
    const int64_t shape[] = {transformed->sizes[0], 2, 3};
    View view = us_view_contiguous((void *)(uintptr_t)data, type_dtype(transformed->type), 3, shape);
    us_launch_view(launch, parameter, &view);
}

static void add_grid(Launch *launch, const char *parameter, const Tensor *transformed, const void *data)
{
    const int64_t shape[] = {transformed->sizes[0], transformed->sizes[2], transformed->sizes[3], 2};
    View view = us_view_contiguous((void *)(uintptr_t)data, type_dtype(transformed->type), 4, shape);
    us_launch_view(launch, parameter, &view);
}

/* From theta to a grid, or from the slopes of a grid to those of theta. */
static mcdnnStatus_t generate(const char *function, mcdnnHandle_t handle, mcdnnSpatialTransformerDescriptor_t stDesc,
                              const char *from_name, const void *from, const char *to_name, void *to, bool forward)
{
    Call call = us_call_begin(function);
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *transformed = check_transformer(&call, stDesc);
    check_given(&call, from_name, from);
    check_given(&call, to_name, to);
    check_images(&call, transformed);
    if (call.status != 0)
        return us_call_end(&call);

    const AffineGrid grid = {.align_corners = true};
    Launch launch;
    us_launch_begin(&launch, call.function);
    (forward ? add_theta : add_grid)(&launch, from_name, transformed, from);
    (forward ? add_grid : add_theta)(&launch, to_name, transformed, to);
    us_launch_output(&launch, false);
    return run_kernel(&call, dnn, &launch, forward ? us_grid_forward : us_grid_backward, &grid, sizeof grid);
}

mcdnnStatus_t mcdnnSpatialTfGridGeneratorForward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *theta,
    void *grid)
{
    return generate("mcdnnSpatialTfGridGeneratorForward", handle, stDesc, "theta", theta, "grid", grid, true);
}

mcdnnStatus_t mcdnnSpatialTfGridGeneratorBackward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *dgrid,
    void *dtheta)
{
    return generate("mcdnnSpatialTfGridGeneratorBackward", handle, stDesc, "dgrid", dgrid, "dtheta", dtheta, false);
}

/* parameter/source-sizes: an image tensor without the transformed tensor's n and c */
static void check_source(Call *call, const Operand *source, const Tensor *transformed)
{
    ShapeText text, wanted;
    const Tensor *tensor = source->tensor;
    us_require(call,
               tensor->rank == transformed->rank && tensor->sizes[0] == transformed->sizes[0] &&
                   tensor->sizes[1] == transformed->sizes[1],
               source->shape_name, "source-sizes", MCDNN_STATUS_BAD_PARAM,
               "%s is %s, stDesc is %s: images and channels must agree", source->shape_name, sizes_text(tensor, text),
               sizes_text(transformed, wanted));
}

/* The transformed tensor, with which others are compared. */
static Operand operand_of(const Tensor *transformed)
{
    return (Operand){.shape_name = "stDesc", .tensor = transformed};
}

mcdnnStatus_t mcdnnSpatialTfSamplerForward(
    mcdnnHandle_t handle, mcdnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *grid, const void *beta,
    mcdnnTensorDescriptor_t yDesc, void *y)
{
    enum { X, Y, TRANSFORMED };
    static const TensorRule sizes[] = {{SAME_SIZES, Y, TRANSFORMED}},
                            types[] = {{SAME_TYPE, X, TRANSFORMED}, {SAME_TYPE, Y, TRANSFORMED}};
    Call call = us_call_begin("mcdnnSpatialTfSamplerForward");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *transformed = check_transformer(&call, stDesc);
    Operand operands[] = {operand("xDesc", xDesc, "x", x), operand("yDesc", yDesc, "y", y), operand_of(transformed)};
    check_operands(&call, alpha, beta, operands, TRANSFORMED);
    check_given(&call, "grid", grid);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, sizes, COUNT_OF(sizes));
    check_source(&call, &operands[X], transformed);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, types, COUNT_OF(types));
    check_images(&call, transformed);
    check_apart(&call, "yDesc", operands[Y].tensor);
    if (call.status != 0)
        return us_call_end(&call);

    const Tensor *ty = operands[Y].tensor;
    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_operand(&launch, &operands[X], 4);
    add_grid(&launch, "grid", transformed, grid);
    launch_result(&launch, &operands[Y], 4, beta);
    const Sampling kernel = {.alpha = scaling_factor(alpha, ty), .beta = scaling_factor(beta, ty)};
    return run_kernel(&call, dnn, &launch, us_sample_forward, &kernel, sizeof kernel);
}

mcdnnStatus_t mcdnnSpatialTfSamplerBackward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx, const void *alphaDgrid,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const void *grid,
    const void *betaDgrid, void *dgrid)
{
    enum { X, DX, DY, TRANSFORMED };
    static const TensorRule of_dy[] = {{SAME_SIZES, DY, TRANSFORMED}},
                            others[] = {{SAME_SIZES, DX, X}, {SAME_TYPE, X, TRANSFORMED}, {SAME_TYPE, DX, TRANSFORMED},
                                        {SAME_TYPE, DY, TRANSFORMED}};
    Call call = us_call_begin("mcdnnSpatialTfSamplerBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *transformed = check_transformer(&call, stDesc);
    Operand operands[] = {operand("xDesc", xDesc, "x", x), operand("dxDesc", dxDesc, "dx", dx),
                          operand("dyDesc", dyDesc, "dy", dy), operand_of(transformed)};
    check_operands(&call, alpha, beta, operands, TRANSFORMED);
    check_on_host(&call, "alphaDgrid", alphaDgrid);
    check_given(&call, "grid", grid);
    check_on_host(&call, "betaDgrid", betaDgrid);
    check_given(&call, "dgrid", dgrid);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, of_dy, COUNT_OF(of_dy));
    check_source(&call, &operands[X], transformed);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, others, COUNT_OF(others));
    check_images(&call, transformed);
    check_apart(&call, "dxDesc", operands[DX].tensor);
    if (call.status != 0)
        return us_call_end(&call);

    const Tensor *tdx = operands[DX].tensor;
    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_operand(&launch, &operands[X], 4);
    launch_operand(&launch, &operands[DY], 4);
    add_grid(&launch, "grid", transformed, grid);
    launch_result(&launch, &operands[DX], 4, beta);
    add_grid(&launch, "dgrid", transformed, dgrid);
    us_launch_output(&launch, scaling_factor(betaDgrid, tdx) != 0.0);
    const Sampling kernel = {.alpha = scaling_factor(alpha, tdx),
                             .beta = scaling_factor(beta, tdx),
                             .alpha_grid = scaling_factor(alphaDgrid, tdx),
                             .beta_grid = scaling_factor(betaDgrid, tdx)};
    return run_kernel(&call, dnn, &launch, us_sample_backward, &kernel, sizeof kernel);
}
