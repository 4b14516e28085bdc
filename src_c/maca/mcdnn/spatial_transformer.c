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

mcdnnStatus_t mcdnnSpatialTfGridGeneratorForward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *theta,
    void *grid)
{
    Call call = us_call_begin("mcdnnSpatialTfGridGeneratorForward");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *transformed = check_transformer(&call, stDesc);
    check_given(&call, "theta", theta);
    check_given(&call, "grid", grid);
    check_images(&call, transformed);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    add_theta(&launch, "theta", transformed, theta);
    add_grid(&launch, "grid", transformed, grid);
    us_launch_output(&launch, false);
    us_launch_kernel(&launch, us_grid_forward, &(AffineGrid){.align_corners = true}, sizeof(AffineGrid));
    submit(&call, dnn, &launch);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSpatialTfGridGeneratorBackward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *dgrid,
    void *dtheta)
{
    Call call = us_call_begin("mcdnnSpatialTfGridGeneratorBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *transformed = check_transformer(&call, stDesc);
    check_given(&call, "dgrid", dgrid);
    check_given(&call, "dtheta", dtheta);
    check_images(&call, transformed);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    add_grid(&launch, "dgrid", transformed, dgrid);
    add_theta(&launch, "dtheta", transformed, dtheta);
    us_launch_output(&launch, false);
    us_launch_kernel(&launch, us_grid_backward, "", 0);
    submit(&call, dnn, &launch);
    return us_call_end(&call);
}

/* parameter/source-sizes: an image tensor without the transformed tensor's n and c */
static void check_source(Call *call, const char *parameter, const Tensor *source, const Tensor *transformed)
{
    ShapeText text, wanted;
    us_require(call,
               source->rank == transformed->rank && source->sizes[0] == transformed->sizes[0] &&
                   source->sizes[1] == transformed->sizes[1],
               parameter, "source-sizes", MCDNN_STATUS_BAD_PARAM,
               "%s is %s, stDesc is %s: images and channels must agree",
               parameter, sizes_text(source, text), sizes_text(transformed, wanted));
}

mcdnnStatus_t mcdnnSpatialTfSamplerForward(
    mcdnnHandle_t handle, mcdnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *grid, const void *beta,
    mcdnnTensorDescriptor_t yDesc, void *y)
{
    Call call = us_call_begin("mcdnnSpatialTfSamplerForward");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *transformed = check_transformer(&call, stDesc);
    const Tensor *tx = check_tensor(&call, "xDesc", xDesc);
    const Tensor *ty = check_tensor(&call, "yDesc", yDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "x", x);
    check_given(&call, "grid", grid);
    check_given(&call, "beta", beta);
    check_given(&call, "y", y);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "stDesc", transformed);
    check_source(&call, "xDesc", tx, transformed);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "xDesc", tx, "stDesc", transformed);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "stDesc", transformed);
    check_images(&call, transformed);
    check_apart(&call, "yDesc", ty);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "x", tx, x, 4);
    add_grid(&launch, "grid", transformed, grid);
    launch_output(&launch, "y", ty, y, 4, scaling_factor(beta, ty));
    Sampling kernel = {.alpha = scaling_factor(alpha, ty), .beta = scaling_factor(beta, ty)};
    return run_kernel(&call, dnn, &launch, us_sample_forward, &kernel, sizeof kernel);
}

mcdnnStatus_t mcdnnSpatialTfSamplerBackward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx, const void *alphaDgrid,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const void *grid,
    const void *betaDgrid, void *dgrid)
{
    Call call = us_call_begin("mcdnnSpatialTfSamplerBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *transformed = check_transformer(&call, stDesc);
    const Tensor *tx = check_tensor(&call, "xDesc", xDesc);
    const Tensor *tdx = check_tensor(&call, "dxDesc", dxDesc);
    const Tensor *tdy = check_tensor(&call, "dyDesc", dyDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "x", x);
    check_given(&call, "beta", beta);
    check_given(&call, "dx", dx);
    check_given(&call, "alphaDgrid", alphaDgrid);
    check_given(&call, "dy", dy);
    check_given(&call, "grid", grid);
    check_given(&call, "betaDgrid", betaDgrid);
    check_given(&call, "dgrid", dgrid);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "dyDesc", tdy, "stDesc", transformed);
    check_source(&call, "xDesc", tx, transformed);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "dxDesc", tdx, "xDesc", tx);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "xDesc", tx, "stDesc", transformed);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "dxDesc", tdx, "stDesc", transformed);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "dyDesc", tdy, "stDesc", transformed);
    check_images(&call, transformed);
    check_apart(&call, "dxDesc", tdx);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "x", tx, x, 4);
    launch_tensor(&launch, "dy", tdy, dy, 4);
    add_grid(&launch, "grid", transformed, grid);
    launch_output(&launch, "dx", tdx, dx, 4, scaling_factor(beta, tdx));
    add_grid(&launch, "dgrid", transformed, dgrid);
    us_launch_output(&launch, scaling_factor(betaDgrid, tdx) != 0.0);
    Sampling kernel = {.alpha = scaling_factor(alpha, tdx),
                       .beta = scaling_factor(beta, tdx),
                       .alpha_grid = scaling_factor(alphaDgrid, tdx),
                       .beta_grid = scaling_factor(betaDgrid, tdx)};
    return run_kernel(&call, dnn, &launch, us_sample_backward, &kernel, sizeof kernel);
}
