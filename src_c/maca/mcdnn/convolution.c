/* Convolutions: forward, with bias and activation, and the gradients (mcdnn-cnn 5, 8, 10, 11). No algorithm needs a
 * workspace: one that is given is not touched. */
#include "convolution.h"

#include "kernels/blend/tensor_ops.h"
#include "kernels/conv/reorder.h"

/* ---- launches ---- */

static Convolution kernel_of(const ConvCall *conv, const ConvData *data)
{
    const ConvDescriptor *descriptor = conv->conv;
    Convolution kernel = {.axes = descriptor->axes,
                          .groups = descriptor->groups,
                          .mirrored = convolution_is_mirrored(descriptor, &conv->w),
                          .method = data->method,
                          .relu = data->relu,
                          .alpha = data->alpha,
                          .beta = data->beta,
                          .addend_scale = data->z_scale};
    for (int axis = 0; axis < descriptor->axes; axis++) {
        kernel.stride[axis] = descriptor->stride[axis];
        kernel.padding[axis] = descriptor->padding[axis];
        kernel.dilation[axis] = descriptor->dilation[axis];
    }
    return kernel;
}

static void add_view(Launch *launch, const char *name, const View *view, bool given)
{
    const View absent = us_view_absent();
    us_launch_view(launch, name, given ? view : &absent);
}

static View bias_view(const ConvData *data)
{
    View view = us_view_absent();
    if (data->bias != NULL) {
        const Tensor *tensor = data->bias_tensor;
        view = (View){.data = (void *)(uintptr_t)data->bias, .dtype = type_dtype(tensor->type), .rank = 1,
                      .shape = {tensor->sizes[1]}, .strides = {tensor->strides[1]}};
    }
    return view;
}

/* One lane of the output maps: every lanes-th of an axis. */
static void take_lane(View *view, int32_t axis, int64_t lane, int64_t lanes)
{
    if (us_view_is_absent(view))
        return;
    view->data = (char *)view->data + lane * view->strides[axis] * (int64_t)us_dtype_size(view->dtype);
    view->shape[axis] /= lanes;
    view->strides[axis] *= lanes;
}

/* y of vectors: the lane takes the place of the first spatial axis. */
static View result_lane(const Tensor *tensor, const void *data, int64_t lane)
{
    if (tensor->lanes == 1) {
        const View plain = tensor_view(tensor, data, 4);
        return (View){.data = plain.data, .dtype = plain.dtype, .rank = 5,
                      .shape = {plain.shape[0], plain.shape[1], 1, plain.shape[2], plain.shape[3]},
                      .strides = {plain.strides[0], plain.strides[1], 0, plain.strides[2], plain.strides[3]}};
    }
    View view = tensor_lanes(tensor, data, tensor->lanes);
    view.data = (char *)view.data + lane;
    view.shape[2] = 1;
    return view;
}

/* The lanes are a first spatial axis, summed like taps; each lane of y has filters of its own. NO_REORDER: they have been
 * reordered. */
static void launch_vectors(const ConvCall *conv, const ConvData *data, ConvUse *use, void *context)
{
    Convolution kernel = kernel_of(conv, data);
    kernel.axes = 3;
    for (int axis = 2; axis > 0; axis--) {
        kernel.stride[axis] = kernel.stride[axis - 1];
        kernel.padding[axis] = kernel.padding[axis - 1];
        kernel.dilation[axis] = kernel.dilation[axis - 1];
    }
    kernel.stride[0] = kernel.dilation[0] = 1;
    kernel.padding[0] = 0;
    const bool reordered = conv->conv->reorder == MCDNN_NO_REORDER && conv->y->type == MCDNN_DATA_INT8x32;
    const View x = tensor_lanes(conv->x, data->x, conv->x->lanes);
    for (int64_t lane = 0; lane < conv->y->lanes; lane++) {
        View w = tensor_lanes(&conv->w, data->w, conv->w.lanes), bias = bias_view(data);
        take_lane(&bias, 0, reordered ? us_conv_reordered_bias(lane) : lane, conv->y->lanes);
        if (!reordered)
            take_lane(&w, 0, lane, conv->y->lanes);
        if (kernel.mirrored && !reordered) { /* the lanes are channels, which are not mirrored: mirrored twice */
            w.data = (char *)w.data + (w.shape[2] - 1) * w.strides[2];
            w.strides[2] = -w.strides[2];
        }
        const View y = result_lane(conv->y, data->y, lane);
        const View z = data->z != NULL ? result_lane(data->z_tensor, data->z, lane) : us_view_absent();
        Launch launch;
        us_launch_begin(&launch, conv->function);
        us_launch_view(&launch, "x", &x);
        us_launch_view(&launch, "w", &w);
        us_launch_view(&launch, "bias", &bias);
        us_launch_view(&launch, "z", &z);
        us_launch_view(&launch, "y", &y);
        us_launch_output(&launch, kernel.beta != 0);
        if (reordered)
            us_launch_kernel(&launch, us_conv_forward_reordered, &(ReorderedConvolution){kernel, lane},
                             sizeof(ReorderedConvolution));
        else
            us_launch_kernel(&launch, us_conv_forward, &kernel, sizeof kernel);
        use(context, &launch);
    }
}

void conv_launch(const ConvCall *conv, const ConvData *data, ConvUse *use, void *context)
{
    if (conv->x->lanes > 1) {
        launch_vectors(conv, data, use, context);
        return;
    }
    const int32_t rank = conv->conv->axes + 2;
    const Convolution kernel = kernel_of(conv, data);
    const View x = tensor_view(conv->x, data->x, rank), w = tensor_view(&conv->w, data->w, rank);
    const View y = tensor_view(conv->y, data->y, rank), bias = bias_view(data);
    const View z = data->z != NULL ? tensor_view(data->z_tensor, data->z, rank) : us_view_absent();
    Launch launch;
    us_launch_begin(&launch, conv->function);
    if (conv->direction == CONV_FILTER) {
        us_launch_view(&launch, "x", &x);
        us_launch_view(&launch, "dy", &y);
        us_launch_view(&launch, "dw", &w);
        us_launch_output(&launch, kernel.beta != 0);
        us_launch_kernel(&launch, us_conv_backward_filter, &kernel, sizeof kernel);
    } else {
        const bool forward = conv->direction == CONV_FORWARD;
        us_launch_view(&launch, forward ? "x" : "dy", forward ? &x : &y);
        us_launch_view(&launch, "w", &w);
        add_view(&launch, "bias", &bias, data->bias != NULL);
        add_view(&launch, "z", &z, data->z != NULL);
        us_launch_view(&launch, forward ? "y" : "dx", forward ? &y : &x);
        us_launch_output(&launch, kernel.beta != 0);
        us_launch_kernel(&launch, forward ? us_conv_forward : us_conv_backward_data, &kernel, sizeof kernel);
    }
    use(context, &launch);
}

/* ---- calls ---- */

static void queue(void *context, const Launch *launch)
{
    ConvCall *conv = context;
    submit(&conv->call, conv->dnn, launch);
}

/* The end of a call: the remaining checks, and the launch. */
static mcdnnStatus_t conv_run(ConvCall *conv, int algorithm, const void *alpha, const void *beta, ConvData *data)
{
    check_range(&conv->call, "algo", algorithm, 0, conv_algorithms(conv->direction) - 1);
    conv_check(conv);
    data->method = conv_check_algorithm(conv, algorithm);
    if (conv->call.status != 0)
        return us_call_end(&conv->call);
    data->alpha = scaling_factor(alpha, conv->y);
    data->beta = beta != NULL ? scaling_factor(beta, conv->y) : 0;
    conv_launch(conv, data, queue, conv);
    return us_call_end(&conv->call);
}

typedef struct Pointer {
    const char *name;
    const void *data;
} Pointer;

/* A call without bias and activation. `pointers`: the two operands and the result. */
static mcdnnStatus_t convolve(mcdnnHandle_t handle, ConvCall of, int algorithm, const void *alpha, const void *beta,
                              const Pointer *pointers, ConvData data)
{
    ConvCall *conv = &of;
    conv_open(conv, handle);
    check_on_host(&conv->call, "alpha", alpha);
    check_on_host(&conv->call, "beta", beta);
    for (int i = 0; i < 3; i++)
        check_given(&conv->call, pointers[i].name, pointers[i].data);
    return conv_run(conv, algorithm, alpha, beta, &data);
}

mcdnnStatus_t mcdnnConvolutionForward(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnFilterDescriptor_t wDesc, const void *w, const mcdnnConvolutionDescriptor_t convDesc,
    mcdnnConvolutionFwdAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y)
{
    (void)workSpace;
    (void)workSpaceSizeInBytes;
    return convolve(handle, conv_of("mcdnnConvolutionForward", CONV_FORWARD, "xDesc", xDesc, "wDesc", wDesc, "yDesc",
                                    yDesc, convDesc),
                    (int)algo, alpha, beta, (const Pointer[]){{"x", x}, {"w", w}, {"y", y}},
                    (ConvData){.x = x, .w = w, .y = y});
}

mcdnnStatus_t mcdnnConvolutionBackwardData(
    mcdnnHandle_t handle, const void *alpha, const mcdnnFilterDescriptor_t wDesc, const void *w,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const mcdnnConvolutionDescriptor_t convDesc,
    mcdnnConvolutionBwdDataAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx)
{
    (void)workSpace;
    (void)workSpaceSizeInBytes;
    return convolve(handle, conv_of("mcdnnConvolutionBackwardData", CONV_DATA, "dxDesc", dxDesc, "wDesc", wDesc,
                                    "dyDesc", dyDesc, convDesc),
                    (int)algo, alpha, beta, (const Pointer[]){{"w", w}, {"dy", dy}, {"dx", dx}},
                    (ConvData){.x = dx, .w = w, .y = dy});
}

mcdnnStatus_t mcdnnConvolutionBackwardFilter(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const mcdnnConvolutionDescriptor_t convDesc,
    mcdnnConvolutionBwdFilterAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const mcdnnFilterDescriptor_t dwDesc, void *dw)
{
    (void)workSpace;
    (void)workSpaceSizeInBytes;
    return convolve(handle, conv_of("mcdnnConvolutionBackwardFilter", CONV_FILTER, "xDesc", xDesc, "dwDesc", dwDesc,
                                    "dyDesc", dyDesc, convDesc),
                    (int)algo, alpha, beta, (const Pointer[]){{"x", x}, {"dy", dy}, {"dw", dw}},
                    (ConvData){.x = x, .w = dw, .y = dy});
}

/* ---- bias and activation (mcdnn-cnn 10) ---- */

static void check_bias(Call *call, const Tensor *bias, const ConvCall *conv)
{
    ShapeText text;
    bool fits = call->status == 0 && bias->rank == conv->y->rank && bias->sizes[1] == conv->w.sizes[0];
    for (int32_t axis = 0; fits && axis < bias->rank; axis++)
        fits = axis == 1 || bias->sizes[axis] == 1;
    us_require(call, fits, "biasDesc", "shape", MCDNN_STATUS_NOT_SUPPORTED, "biasDesc is %s, 1 x %lld x 1 … is needed",
               sizes_text(bias, text), (long long)conv->w.sizes[0]);
    us_require(call, bias->strides[1] == 1, "biasDesc", "stride", MCDNN_STATUS_NOT_SUPPORTED,
               "biasDesc has the stride %lld along its maps, supported is 1", (long long)bias->strides[1]);
    const bool floats = call->status == 0 && us_dtype_is_float(type_dtype(conv->y->type));
    const mcdnnDataType_t wanted = floats ? conv->y->type : MCDNN_DATA_FLOAT;
    us_require(call, bias->type == wanted, "biasDesc", "bias-type", MCDNN_STATUS_NOT_SUPPORTED,
               "biasDesc is %s, this convolution needs %s", type_name(bias->type), type_name(wanted));
}

static void check_fused_activation(Call *call, const ActivationDescriptor *activation)
{
    us_require(call, activation->mode == MCDNN_ACTIVATION_RELU || activation->mode == MCDNN_ACTIVATION_IDENTITY,
               "activationDesc", "fused-mode", MCDNN_STATUS_NOT_SUPPORTED,
               "the descriptor's mode is %d; fused are RELU (1) and IDENTITY (5)", (int)activation->mode);
    us_require(call, activation->nan == MCDNN_NOT_PROPAGATE_NAN, "activationDesc", "nan-option",
               MCDNN_STATUS_NOT_SUPPORTED, "NaN can not be propagated in a fused activation");
}

mcdnnStatus_t mcdnnConvolutionBiasActivationForward(
    mcdnnHandle_t handle, const void *alpha1, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnFilterDescriptor_t wDesc, const void *w, const mcdnnConvolutionDescriptor_t convDesc,
    mcdnnConvolutionFwdAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *alpha2,
    const mcdnnTensorDescriptor_t zDesc, const void *z, const mcdnnTensorDescriptor_t biasDesc,
    const void *bias, const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t yDesc,
    void *y)
{
    (void)workSpace;
    (void)workSpaceSizeInBytes;
    ConvCall conv = conv_of("mcdnnConvolutionBiasActivationForward", CONV_FORWARD, "xDesc", xDesc, "wDesc", wDesc,
                            "yDesc", yDesc, convDesc);
    conv_open(&conv, handle);
    Call *call = &conv.call;
    const Tensor *tz = check_tensor(call, "zDesc", zDesc), *tb = check_tensor(call, "biasDesc", biasDesc);
    const ActivationDescriptor *activation = check_activation(call, activationDesc);
    check_on_host(call, "alpha1", alpha1);
    check_given(call, "x", x);
    check_given(call, "w", w);
    check_on_host(call, "alpha2", alpha2);
    check_given(call, "z", z);
    check_given(call, "bias", bias);
    check_given(call, "y", y);
    check_range(call, "algo", algo, 0, MCDNN_CONVOLUTION_FWD_ALGO_COUNT - 1);
    conv_check(&conv);
    us_require(call, tz->rank == conv.x->rank, "zDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "zDesc has %d dimensions, convDesc is for %d", tz->rank, conv.x->rank);
    check_fused_activation(call, activation);
    check_bias(call, tb, &conv);
    check_same_sizes(call, MCDNN_STATUS_NOT_SUPPORTED, "zDesc", tz, "yDesc", conv.y);
    check_same_strides(call, MCDNN_STATUS_NOT_SUPPORTED, "zDesc", tz, "yDesc", conv.y);
    check_same_type(call, MCDNN_STATUS_NOT_SUPPORTED, "zDesc", tz, "yDesc", conv.y);
    if (call->status != 0)
        return us_call_end(call);
    const double z_scale = scaling_factor(alpha2, conv.y);
    return conv_run(&conv, (int)algo, alpha1, NULL,
                    &(ConvData){.x = x, .w = w, .y = y, .bias = bias, .bias_tensor = tb,
                                .z = z_scale != 0 ? z : NULL, .z_tensor = tz, .z_scale = z_scale,
                                .relu = activation->mode == MCDNN_ACTIVATION_RELU});
}

/* ---- bias gradient (mcdnn-cnn 11) ---- */

mcdnnStatus_t mcdnnConvolutionBackwardBias(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t dyDesc, const void *dy,
    const void *beta, const mcdnnTensorDescriptor_t dbDesc, void *db)
{
    Call call = us_call_begin("mcdnnConvolutionBackwardBias");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *tdy = check_tensor(&call, "dyDesc", dyDesc);
    const Tensor *tdb = check_tensor(&call, "dbDesc", dbDesc);
    check_on_host(&call, "alpha", alpha);
    check_given(&call, "dy", dy);
    check_on_host(&call, "beta", beta);
    check_given(&call, "db", db);
    ShapeText text;
    bool fits = call.status == 0 && tdb->rank == tdy->rank && tdy->rank >= 3;
    for (int32_t axis = 0; fits && axis < tdy->rank; axis++)
        fits = tdb->sizes[axis] == (axis == 1 ? tdy->sizes[1] : 1);
    us_require(&call, fits, "dbDesc", "shape", MCDNN_STATUS_BAD_PARAM,
               "dbDesc is %s, 1 in every dimension but the maps of dyDesc is needed", sizes_text(tdb, text));
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "dbDesc", tdb, "dyDesc", tdy);
    check_float_type(&call, "dyDesc", tdy);
    check_apart(&call, "dbDesc", tdb);
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_tensor(&launch, "dy", tdy, dy, 1);
    launch_output(&launch, "db", tdb, db, 1, scaling_factor(beta, tdb));
    const View absent = us_view_absent();
    us_launch_view(&launch, "indices", &absent);
    const TensorReduce kernel = {.reduction = REDUCE_SUM, .propagate_nan = true,
                                 .alpha = scaling_factor(alpha, tdb), .beta = scaling_factor(beta, tdb)};
    return run_kernel(&call, dnn, &launch, us_tensor_reduce, &kernel, sizeof kernel);
}
