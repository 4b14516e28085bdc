#include "norm.h"

void check_norm_groups(Call *call, int groupCnt)
{
    us_require(call, groupCnt == 1, "groupCnt", "one", MCDNN_STATUS_NOT_SUPPORTED, "groupCnt is %d, supported is 1",
               groupCnt);
}

void check_norm_rank(Call *call, const char *parameter, const Tensor *tensor)
{
    us_require(call, tensor->rank == 4 || tensor->rank == 5, parameter, "rank", MCDNN_STATUS_BAD_PARAM,
               "%s has %d dimensions, 4 or 5 are needed", parameter, tensor->rank);
}

Tensor norm_derived(const Tensor *x, bool per_activation)
{
    Tensor derived = {.type = x->type == MCDNN_DATA_DOUBLE ? MCDNN_DATA_DOUBLE : MCDNN_DATA_FLOAT, .rank = x->rank,
                      .lanes = 1};
    int64_t stride = 1;
    for (int32_t axis = x->rank - 1; axis >= 0; axis--) {
        derived.sizes[axis] = axis == 0 ? 1 : axis == 1 || per_activation ? x->sizes[axis] : 1;
        derived.strides[axis] = stride;
        stride *= derived.sizes[axis];
    }
    return derived;
}

void check_norm_shape(Call *call, const char *parameter, const Tensor *tensor, const Tensor *x, bool per_activation)
{
    if (call->status != 0)
        return;
    ShapeText text, wanted;
    Tensor derived = norm_derived(x, per_activation);
    bool same = tensor->rank == derived.rank;
    for (int32_t axis = 0; same && axis < derived.rank; axis++)
        same = tensor->sizes[axis] == derived.sizes[axis];
    us_require(call, same, parameter, "shape", MCDNN_STATUS_BAD_PARAM, "%s is %s, this mode and x need %s", parameter,
               sizes_text(tensor, text), sizes_text(&derived, wanted));
}

void check_norm_pair(Call *call, const char *parameter, const void *first, const void *second)
{
    us_require(call, (first == NULL) == (second == NULL), parameter, "pair", MCDNN_STATUS_BAD_PARAM,
               "%s and its partner must both be given or both be NULL; %s is NULL", parameter,
               first == NULL ? parameter : "the partner");
}

void check_norm_epsilon(Call *call, double epsilon, double minimum)
{
    us_require(call, epsilon >= minimum, "epsilon", "minimum", MCDNN_STATUS_BAD_PARAM,
               "epsilon is %g, at least %g is needed", epsilon, minimum);
}

void check_norm_like(Call *call, const char *parameter, const Tensor *tensor, const Tensor *x)
{
    check_same_sizes(call, MCDNN_STATUS_BAD_PARAM, parameter, tensor, "xDesc", x);
    check_same_type(call, MCDNN_STATUS_BAD_PARAM, parameter, tensor, "xDesc", x);
}

void check_norm_type(Call *call, const char *parameter, const Tensor *x, bool bfloat16)
{
    us_require(call,
               us_dtype_is_float(type_dtype(x->type)) && (bfloat16 || x->type != MCDNN_DATA_BFLOAT16), parameter,
               "unsupported-type", MCDNN_STATUS_NOT_SUPPORTED, "%s is %s, supported are HALF, FLOAT%s and DOUBLE",
               parameter, type_name(x->type), bfloat16 ? ", BFLOAT16" : "");
}

void check_norm_parameter_type(Call *call, const char *parameter, const Tensor *tensor, const Tensor *x)
{
    if (call->status != 0)
        return;
    mcdnnDataType_t wanted = x->type == MCDNN_DATA_DOUBLE ? MCDNN_DATA_DOUBLE : MCDNN_DATA_FLOAT;
    us_require(call, tensor->type == wanted, parameter, "parameter-type", MCDNN_STATUS_NOT_SUPPORTED,
               "%s is %s, %s data need %s", parameter, type_name(tensor->type), type_name(x->type), type_name(wanted));
}

void check_norm_statistics(Call *call, int32_t status, const char *parameter, const Tensor *statistics,
                           const char *model_parameter, const Tensor *parameters)
{
    check_same_sizes(call, status, parameter, statistics, model_parameter, parameters);
    check_same_type(call, status, parameter, statistics, model_parameter, parameters);
}

void check_norm_channels_last(Call *call, const char *parameter, const Tensor *tensor)
{
    if (call->status != 0)
        return;
    bool packed = tensor->sizes[1] == 1 || tensor->strides[1] == 1;
    int64_t stride = tensor->sizes[1];
    for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
        if (axis == 1)
            continue;
        packed &= tensor->sizes[axis] == 1 || tensor->strides[axis] == stride;
        stride *= tensor->sizes[axis];
    }
    ShapeText sizes, strides;
    us_require(call, packed, parameter, "channels-last", MCDNN_STATUS_NOT_SUPPORTED,
               "%s is %s with strides %s: with an activation only packed NHWC is supported", parameter,
               sizes_text(tensor, sizes), strides_text(tensor, strides));
}

void check_norm_activation(Call *call, const ActivationDescriptor *activation, bool forward)
{
    us_require(call,
               activation->mode == MCDNN_ACTIVATION_RELU || (forward && activation->mode == MCDNN_ACTIVATION_SWISH),
               "activationDesc", "fused-mode", MCDNN_STATUS_NOT_SUPPORTED,
               "the descriptor's mode is %d; fused are RELU (1)%s", (int)activation->mode,
               forward ? " and SWISH (6)" : "");
}

void check_norm_sum_type(Call *call, const char *parameter, const Tensor *tensor)
{
    us_require(call, tensor->type == MCDNN_DATA_HALF, parameter, "sum-type", MCDNN_STATUS_NOT_SUPPORTED,
               "%s is %s; the form that adds a tensor exists for HALF only", parameter, type_name(tensor->type));
}

size_t norm_reserve_bytes(const Tensor *x, bool per_activation)
{
    return (size_t)us_batch_norm_mask_bytes(x->rank, x->sizes, per_activation);
}

void check_norm_reserve(Call *call, const void *reserve, size_t bytes, const Tensor *x, bool per_activation)
{
    check_given(call, "reserveSpace", reserve);
    us_require(call, bytes >= norm_reserve_bytes(x, per_activation), "reserveSpaceSizeInBytes", "minimum",
               MCDNN_STATUS_BAD_PARAM, "reserveSpaceSizeInBytes is %zu, this call needs %zu", bytes,
               norm_reserve_bytes(x, per_activation));
}
