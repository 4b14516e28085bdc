#include "norm_call.h"

/* ---- handle, descriptors, pointers ---- */

/* A query of sizes has descriptors only. */
static void check_pointer(NormCall *norm, const char *name, const void *pointer)
{
    if (!norm->is_query)
        check_given(&norm->call, name, pointer);
}

static void check_scaling(NormCall *norm, const char *name, const void *factor)
{
    if (!norm->is_query)
        check_on_host(&norm->call, name, factor);
}

static void check_size_place(NormCall *norm)
{
    if (norm->is_query)
        check_given(&norm->call, "sizeInBytes", norm->size);
}

static void open_tensor(NormCall *norm, NormTensor *tensor)
{
    tensor->tensor = check_tensor(&norm->call, tensor->descriptor_name, tensor->descriptor);
}

static void open_parameters(NormCall *norm)
{
    open_tensor(norm, &norm->parameters);
    if (norm->statistics.descriptor_name != NULL)
        open_tensor(norm, &norm->statistics);
    else
        norm->statistics.tensor = norm->parameters.tensor;
}

static void begin(NormCall *norm, mcdnnHandle_t handle)
{
    norm->per_activation = norm->mode == MCDNN_NORM_PER_ACTIVATION;
    norm->fused = norm->ops != MCDNN_NORM_OPS_NORM;
    norm->adds = norm->ops == MCDNN_NORM_OPS_NORM_ADD_ACTIVATION;
    norm->call = us_call_begin(norm->function);
    norm->dnn = check_handle(&norm->call, handle);
}

static void check_modes(NormCall *norm)
{
    Call *call = &norm->call;
    const bool newer = norm->interface == NORMALIZATION;
    check_range(call, "mode", norm->mode, 0, newer ? (int)MCDNN_NORM_PER_CHANNEL : (int)MCDNN_BATCHNORM_SPATIAL_PERSISTENT);
    check_range(call, newer ? "normOps" : "bnOps", norm->ops, 0, MCDNN_NORM_OPS_NORM_ADD_ACTIVATION);
    if (newer)
        check_range(call, "algo", norm->algo, MCDNN_NORM_ALGO_STANDARD, MCDNN_NORM_ALGO_PERSIST);
}

/* The end of what opens a call. */
static void open_activation(NormCall *norm)
{
    if (norm->fused)
        norm->activation = check_activation(&norm->call, norm->activation_descriptor);
    if (norm->adds) {
        open_tensor(norm, &norm->z);
        check_pointer(norm, norm->z.name, norm->z.pointer);
    }
    check_size_place(norm);
    check_modes(norm);
}

void norm_open_forward(NormCall *norm, mcdnnHandle_t handle)
{
    begin(norm, handle);
    open_tensor(norm, &norm->x);
    open_tensor(norm, &norm->y);
    open_parameters(norm);
    check_scaling(norm, "alpha", norm->alpha);
    check_scaling(norm, "beta", norm->beta);
    check_pointer(norm, norm->x.name, norm->x.pointer);
    check_pointer(norm, norm->y.name, norm->y.pointer);
    check_pointer(norm, norm->scale.name, norm->scale.pointer);
    check_pointer(norm, norm->bias.name, norm->bias.pointer);
    if (norm->mean.name != NULL) {
        check_pointer(norm, norm->mean.name, norm->mean.pointer);
        check_pointer(norm, norm->variance.name, norm->variance.pointer);
    }
    open_activation(norm);
}

void norm_open_reserve(NormCall *norm, mcdnnHandle_t handle)
{
    norm->is_query = true;
    begin(norm, handle);
    norm->adds = false; /* the mask has one size with and without */
    if (norm->fused)
        norm->activation = check_activation(&norm->call, norm->activation_descriptor);
    open_tensor(norm, &norm->x);
    check_size_place(norm);
    check_modes(norm);
}

void norm_open_backward(NormCall *norm, mcdnnHandle_t handle)
{
    begin(norm, handle);
    open_tensor(norm, &norm->x);
    open_tensor(norm, &norm->dy);
    open_tensor(norm, &norm->dx);
    open_parameters(norm);
    if (norm->y.descriptor != NULL || norm->fused)
        open_tensor(norm, &norm->y);
    check_scaling(norm, "alphaDataDiff", norm->alpha);
    check_scaling(norm, "betaDataDiff", norm->beta);
    check_scaling(norm, "alphaParamDiff", norm->alpha_param);
    check_scaling(norm, "betaParamDiff", norm->beta_param);
    check_pointer(norm, norm->x.name, norm->x.pointer);
    if (norm->fused)
        check_pointer(norm, norm->y.name, norm->y.pointer);
    check_pointer(norm, norm->dy.name, norm->dy.pointer);
    check_pointer(norm, norm->dx.name, norm->dx.pointer);
    check_pointer(norm, norm->scale.name, norm->scale.pointer);
    check_pointer(norm, norm->scale_gradient.name, norm->scale_gradient.pointer);
    check_pointer(norm, norm->bias_gradient.name, norm->bias_gradient.pointer);
    open_activation(norm);
}

/* ---- the remaining checks ---- */

static void check_rank(NormCall *norm, const NormTensor *tensor)
{
    if (tensor->tensor != NULL)
        check_norm_rank(&norm->call, tensor->descriptor_name, tensor->tensor);
}

static void check_shape(NormCall *norm)
{
    check_norm_shape(&norm->call, norm->parameters.descriptor_name, norm->parameters.tensor, norm->x.tensor,
                     norm->per_activation);
}

static void check_pair(NormCall *norm, const NormPointer *first, const NormPointer *second)
{
    check_norm_pair(&norm->call, first->name, first->pointer, second->pointer);
}

/* Sizes and type of a tensor as those of x. */
static void check_like(NormCall *norm, const NormTensor *tensor)
{
    if (tensor->tensor != NULL)
        check_norm_like(&norm->call, tensor->descriptor_name, tensor->tensor, norm->x.tensor);
}

static void check_statistics(NormCall *norm, int32_t status)
{
    if (norm->statistics.descriptor_name != NULL)
        check_norm_statistics(&norm->call, status, norm->statistics.descriptor_name, norm->statistics.tensor,
                              norm->parameters.descriptor_name, norm->parameters.tensor);
}

static void check_epsilon(NormCall *norm)
{
    check_norm_epsilon(&norm->call, norm->epsilon, norm->interface == BATCH_NORM ? MCDNN_BN_MIN_EPSILON : 0);
}

static bool takes_bfloat16(const NormCall *norm)
{
    return norm->takes_bfloat16 || norm->interface == NORMALIZATION;
}

static void check_reserve(NormCall *norm)
{
    check_norm_reserve(&norm->call, norm->reserve, norm->reserve_bytes, norm->x.tensor, norm->per_activation);
}

static void check_types(NormCall *norm)
{
    check_norm_type(&norm->call, norm->x.descriptor_name, norm->x.tensor, takes_bfloat16(norm));
    check_norm_parameter_type(&norm->call, norm->parameters.descriptor_name, norm->parameters.tensor, norm->x.tensor);
}

/* With an activation: its mode, and tensors with the channels last. `others`: NULL at the end. */
static void check_fused(NormCall *norm, bool forward, const NormTensor *const *others)
{
    Call *call = &norm->call;
    if (norm->fused) {
        check_norm_activation(call, norm->activation, forward);
        for (; *others != NULL; others++)
            check_norm_channels_last(call, (*others)->descriptor_name, (*others)->tensor);
    }
    if (norm->adds)
        check_norm_channels_last(call, norm->z.descriptor_name, norm->z.tensor);
    if (norm->adds && norm->adds_half_only)
        check_norm_sum_type(call, norm->z.descriptor_name, norm->z.tensor);
    if (norm->interface == NORMALIZATION)
        check_norm_groups(call, norm->groups);
}

/* ---- launch ---- */

static BatchNorm kernel_of(const NormCall *norm, const Tensor *data)
{
    BatchNorm kernel = {.per_activation = norm->per_activation,
                        .alpha = scaling_factor(norm->alpha, data),
                        .beta = scaling_factor(norm->beta, data),
                        .factor = norm->factor,
                        .epsilon = norm->epsilon};
    if (norm->fused) {
        kernel.activation = norm->activation->mode == MCDNN_ACTIVATION_SWISH ? NORM_SWISH : NORM_RELU;
        kernel.propagate_nan = norm->activation->nan == MCDNN_PROPAGATE_NAN;
        kernel.swish_beta = norm->activation->swish_beta;
    }
    return kernel;
}

static void add_output(Launch *launch, const char *name, const Tensor *tensor, const void *data, bool reads_prior)
{
    launch_optional(launch, name, tensor, data, 1);
    us_launch_output(launch, reads_prior);
}

static void add_mask(Launch *launch, const NormCall *norm, const BatchNorm *kernel)
{
    View mask = us_view_absent();
    if (kernel->activation == NORM_RELU) {
        int64_t bytes = (int64_t)norm_reserve_bytes(norm->x.tensor, norm->per_activation);
        mask = us_view_contiguous(norm->reserve, DTYPE_UINT8, 1, &bytes);
    }
    us_launch_view(launch, "reserveSpace", &mask);
}

/* x, z, y, scale, bias: what every forward kernel begins with. */
static void begin_forward(Launch *launch, const NormCall *norm, const BatchNorm *kernel)
{
    us_launch_begin(launch, norm->call.function);
    launch_optional(launch, "x", norm->x.tensor, norm->x.pointer, 1);
    launch_optional(launch, "z", norm->z.tensor, norm->z.pointer, 1);
    add_output(launch, "y", norm->y.tensor, norm->y.pointer, kernel->beta != 0.0);
    launch_optional(launch, "scale", norm->parameters.tensor, norm->scale.pointer, 1);
    launch_optional(launch, "bias", norm->parameters.tensor, norm->bias.pointer, 1);
}

static mcdnnStatus_t end(NormCall *norm, Launch *launch, Kernel *function, const BatchNorm *kernel)
{
    us_launch_kernel(launch, function, kernel, sizeof *kernel);
    submit(&norm->call, norm->dnn, launch);
    return us_call_end(&norm->call);
}

mcdnnStatus_t norm_infer(NormCall *norm)
{
    check_rank(norm, &norm->x);
    check_rank(norm, &norm->y);
    check_shape(norm);
    check_epsilon(norm);
    check_like(norm, &norm->y);
    check_like(norm, &norm->z);
    check_types(norm);
    check_statistics(norm, MCDNN_STATUS_NOT_SUPPORTED);
    check_fused(norm, true, (const NormTensor *const[]){&norm->x, &norm->y, NULL});
    check_apart(&norm->call, norm->y.descriptor_name, norm->y.tensor);
    if (norm->call.status != 0)
        return us_call_end(&norm->call);
    const Tensor *statistics = norm->statistics.tensor;
    const BatchNorm kernel = kernel_of(norm, norm->y.tensor);
    Launch launch;
    begin_forward(&launch, norm, &kernel);
    launch_optional(&launch, "estimated mean", statistics, norm->mean.pointer, 1);
    launch_optional(&launch, "estimated variance", statistics, norm->variance.pointer, 1);
    return end(norm, &launch, us_batch_norm_inference, &kernel);
}

/* What a call and the query of its sizes refuse alike. */
static void check_training(NormCall *norm)
{
    check_rank(norm, &norm->x);
    check_rank(norm, &norm->y);
    check_rank(norm, &norm->z);
    check_shape(norm);
    check_pair(norm, &norm->saved_mean, &norm->saved_inverse);
    check_pair(norm, &norm->running_mean, &norm->running_variance);
    check_epsilon(norm);
    check_like(norm, &norm->y);
    check_like(norm, &norm->z);
    if (!norm->is_query && norm->fused && norm->call.status == 0 && norm->activation->mode == MCDNN_ACTIVATION_RELU)
        check_reserve(norm);
    check_types(norm);
    check_statistics(norm, MCDNN_STATUS_NOT_SUPPORTED);
    check_fused(norm, true, (const NormTensor *const[]){&norm->x, &norm->y, NULL});
    check_apart(&norm->call, norm->y.descriptor_name, norm->y.tensor);
    check_apart(&norm->call, norm->statistics.descriptor_name != NULL ? norm->statistics.descriptor_name
                                                                      : norm->parameters.descriptor_name,
                norm->statistics.tensor);
}

mcdnnStatus_t norm_train(NormCall *norm)
{
    check_training(norm);
    if (norm->call.status != 0)
        return us_call_end(&norm->call);
    const Tensor *statistics = norm->statistics.tensor;
    const BatchNorm kernel = kernel_of(norm, norm->y.tensor);
    Launch launch;
    begin_forward(&launch, norm, &kernel);
    add_output(&launch, "running mean", statistics, norm->running_mean.pointer, kernel.factor != 1.0);
    add_output(&launch, "running variance", statistics, norm->running_variance.pointer, kernel.factor != 1.0);
    add_output(&launch, "saved mean", statistics, norm->saved_mean.pointer, false);
    add_output(&launch, "saved inverse variance", statistics, norm->saved_inverse.pointer, false);
    add_mask(&launch, norm, &kernel);
    us_launch_output(&launch, false);
    return end(norm, &launch, us_batch_norm_training, &kernel);
}

static void check_differentiation(NormCall *norm)
{
    check_rank(norm, &norm->x);
    check_rank(norm, &norm->y);
    check_rank(norm, &norm->dx);
    check_shape(norm);
    check_pair(norm, &norm->mean, &norm->variance);
    check_epsilon(norm);
    check_like(norm, &norm->y);
    check_like(norm, &norm->dy);
    check_like(norm, &norm->dx);
    check_statistics(norm, MCDNN_STATUS_BAD_PARAM);
    check_like(norm, &norm->z);
    if (norm->fused && !norm->is_query)
        check_reserve(norm);
    check_types(norm);
    check_fused(norm, false, (const NormTensor *const[]){&norm->x, &norm->dy, &norm->dx, NULL});
    check_apart(&norm->call, norm->dx.descriptor_name, norm->dx.tensor);
    check_apart(&norm->call, norm->parameters.descriptor_name, norm->parameters.tensor);
}

mcdnnStatus_t norm_differentiate(NormCall *norm)
{
    check_differentiation(norm);
    if (norm->call.status != 0)
        return us_call_end(&norm->call);
    const Tensor *parameters = norm->parameters.tensor, *statistics = norm->statistics.tensor;
    BatchNorm kernel = kernel_of(norm, norm->dx.tensor);
    kernel.alpha_param = scaling_factor(norm->alpha_param, norm->dx.tensor);
    kernel.beta_param = scaling_factor(norm->beta_param, norm->dx.tensor);
    Launch launch;
    us_launch_begin(&launch, norm->call.function);
    launch_optional(&launch, "x", norm->x.tensor, norm->x.pointer, 1);
    launch_optional(&launch, "dy", norm->dy.tensor, norm->dy.pointer, 1);
    add_output(&launch, "dz", norm->z.tensor, norm->z.pointer, kernel.beta != 0.0);
    add_output(&launch, "dx", norm->dx.tensor, norm->dx.pointer, kernel.beta != 0.0);
    launch_optional(&launch, "scale", parameters, norm->scale.pointer, 1);
    add_output(&launch, "scale gradient", parameters, norm->scale_gradient.pointer, kernel.beta_param != 0.0);
    add_output(&launch, "bias gradient", parameters, norm->bias_gradient.pointer, kernel.beta_param != 0.0);
    launch_optional(&launch, "saved mean", statistics, norm->mean.pointer, 1);
    launch_optional(&launch, "saved inverse variance", statistics, norm->variance.pointer, 1);
    add_mask(&launch, norm, &kernel);
    return end(norm, &launch, us_batch_norm_backward, &kernel);
}

/* ---- sizes ---- */

static mcdnnStatus_t give_size(NormCall *norm, size_t size)
{
    if (norm->call.status == 0)
        *norm->size = size;
    return us_call_end(&norm->call);
}

mcdnnStatus_t norm_train_size(NormCall *norm)
{
    check_training(norm);
    return give_size(norm, 0);
}

mcdnnStatus_t norm_differentiate_size(NormCall *norm)
{
    check_differentiation(norm);
    return give_size(norm, 0);
}

mcdnnStatus_t norm_reserve_size(NormCall *norm)
{
    check_rank(norm, &norm->x);
    check_norm_type(&norm->call, norm->x.descriptor_name, norm->x.tensor, takes_bfloat16(norm));
    check_fused(norm, true, (const NormTensor *const[]){&norm->x, NULL});
    const bool masked = norm->call.status == 0 && norm->fused;
    return give_size(norm, masked ? norm_reserve_bytes(norm->x.tensor, norm->per_activation) : 0);
}
