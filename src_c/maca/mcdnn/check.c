#include "check.h"

#include "maca/common/platform.h"

#include <string.h>

const Dnn *check_handle(Call *call, mcdnnHandle_t handle)
{
    return descriptor_of(call, "handle", handle, HANDLE_DNN, "a library handle");
}

const Tensor *check_tensor(Call *call, const char *parameter, mcdnnTensorDescriptor_t descriptor)
{
    const Tensor *tensor = descriptor_of(call, parameter, descriptor, HANDLE_TENSOR, "a tensor descriptor");
    us_require(call, tensor->rank > 0, parameter, "set", MCDNN_STATUS_BAD_PARAM, "%s was given no shape", parameter);
    return tensor;
}

void check_given(Call *call, const char *parameter, const void *pointer)
{
    us_require(call, pointer != NULL, parameter, "null", MCDNN_STATUS_BAD_PARAM, "%s is NULL: a pointer is required",
               parameter);
}

void check_on_host(Call *call, const char *parameter, const void *pointer)
{
    check_given(call, parameter, pointer);
    us_require(call, !maca_is_device_memory(pointer), parameter, "device", MCDNN_STATUS_BAD_PARAM,
               "%s is device memory: the host reads it", parameter);
}

void check_range(Call *call, const char *parameter, int64_t value, int64_t lowest, int64_t highest)
{
    us_require(call, value >= lowest && value <= highest, parameter, "range", MCDNN_STATUS_BAD_PARAM,
               "%s is %lld, allowed are %lld to %lld", parameter, (long long)value, (long long)lowest,
               (long long)highest);
}

static bool same_numbers(int32_t rank_a, const int64_t *a, int32_t rank_b, const int64_t *b)
{
    return rank_a == rank_b && memcmp(a, b, (size_t)rank_a * sizeof *a) == 0;
}

static bool same_strides(const Tensor *a, const Tensor *b)
{
    return same_numbers(a->rank, a->strides, b->rank, b->strides);
}

void check_same_sizes(Call *call, int32_t status, const char *parameter, const Tensor *tensor,
                      const char *model_parameter, const Tensor *model)
{
    ShapeText text, model_text;
    us_require(call, same_numbers(tensor->rank, tensor->sizes, model->rank, model->sizes), parameter, "sizes", status,
               "%s is %s, %s is %s: the sizes must be equal", parameter, sizes_text(tensor, text), model_parameter,
               sizes_text(model, model_text));
}

void check_same_strides(Call *call, int32_t status, const char *parameter, const Tensor *tensor,
                        const char *model_parameter, const Tensor *model)
{
    ShapeText text, model_text;
    us_require(call, same_strides(tensor, model), parameter, "strides", status,
               "%s has strides %s, %s has %s: they must be equal", parameter, strides_text(tensor, text),
               model_parameter, strides_text(model, model_text));
}

void check_same_type(Call *call, int32_t status, const char *parameter, const Tensor *tensor,
                     const char *model_parameter, const Tensor *model)
{
    us_require(call, tensor->type == model->type, parameter, "type", status,
               "%s is %s, %s is %s: the types must be equal",
               parameter, type_name(tensor->type), model_parameter, type_name(model->type));
}

void check_in_place(Call *call, const char *parameter, const void *output, const Tensor *output_tensor,
                    const void *input, const Tensor *input_tensor)
{
    ShapeText text, input_text;
    us_require(call, output != input || same_strides(output_tensor, input_tensor), parameter, "in-place",
               MCDNN_STATUS_BAD_PARAM, "%s is also an input, with strides %s and %s: in place they must be equal",
               parameter, strides_text(output_tensor, text), strides_text(input_tensor, input_text));
}

void check_float_type(Call *call, const char *parameter, const Tensor *tensor)
{
    us_require(call, us_dtype_is_float(type_dtype(tensor->type)), parameter, "unsupported-type",
               MCDNN_STATUS_NOT_SUPPORTED, "%s is %s, supported are HALF, BFLOAT16, FLOAT and DOUBLE", parameter,
               type_name(tensor->type));
}

void check_float_or_int8(Call *call, const char *parameter, const Tensor *tensor, bool vectors)
{
    if (call->status != 0 || tensor->type == MCDNN_DATA_INT8 ||
        (vectors && tensor->type == MCDNN_DATA_INT8x4 && tensor->lanes == 4))
        return;
    us_require(call, us_dtype_is_float(type_dtype(tensor->type)), parameter, "unsupported-type",
               MCDNN_STATUS_NOT_SUPPORTED, "%s is %s, supported are HALF, BFLOAT16, FLOAT, DOUBLE and INT8%s",
               parameter, type_name(tensor->type), vectors ? ", and INT8x4 of two spatial dimensions in NCHW_VECT_C" : "");
}

void check_packed_space(Call *call, const char *parameter, const Tensor *tensor)
{
    if (call->status != 0 || tensor->rank <= 5)
        return;
    ShapeText sizes, strides;
    bool packed = true;
    for (int32_t axis = 2; axis + 1 < tensor->rank; axis++)
        packed &= tensor->strides[axis] == tensor->strides[axis + 1] * tensor->sizes[axis + 1];
    us_require(call, packed, parameter, "packed-space", MCDNN_STATUS_NOT_SUPPORTED,
               "%s is %s with strides %s: beyond 5 dimensions the spatial ones must be packed", parameter,
               sizes_text(tensor, sizes), strides_text(tensor, strides));
}

/* The smallest step, in size, among the axes that are left; INT64_MAX when none is. Axes of one element have none. */
static int64_t next_axis(const Tensor *tensor, unsigned left, int32_t *found)
{
    int64_t least = INT64_MAX;
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        const int64_t step = tensor->strides[axis] < 0 ? -tensor->strides[axis] : tensor->strides[axis];
        if ((left >> axis & 1) != 0 && tensor_steps(tensor, axis) > 1 && step < least) {
            least = step;
            *found = axis;
        }
    }
    return least;
}

static bool overlaps(const Tensor *tensor)
{
    unsigned left = ~0u;
    int64_t reach = 0;
    int32_t axis = 0;
    for (int64_t step = next_axis(tensor, left, &axis); step != INT64_MAX; step = next_axis(tensor, left, &axis)) {
        if (step <= reach)
            return true;
        reach += (tensor_steps(tensor, axis) - 1) * step;
        left &= ~(1u << axis);
    }
    return false;
}

void check_apart(Call *call, const char *parameter, const Tensor *tensor)
{
    ShapeText sizes, strides;
    us_require(call, !overlaps(tensor), parameter, "overlap", MCDNN_STATUS_NOT_SUPPORTED,
               "%s is %s with strides %s: elements that are written lie over each other", parameter,
               sizes_text(tensor, sizes), strides_text(tensor, strides));
}

void check_steps(Call *call, int32_t status, const char *parameter, const Tensor *tensor)
{
    ShapeText text;
    for (int32_t axis = 0; call->status == 0 && axis < tensor->rank; axis++)
        us_require(call, tensor->strides[axis] >= 0, parameter, "negative-stride", status,
                   "%s has strides %s, one of them negative", parameter, strides_text(tensor, text));
    check_apart(call, parameter, tensor);
}

void check_packed_planes(Call *call, const char *parameter, const Tensor *tensor)
{
    if (call->status != 0 || tensor->rank != 5)
        return;
    int64_t stride = 1;
    bool packed = true;
    for (int32_t axis = 4; axis >= 2; axis--) {
        packed &= tensor->sizes[axis] == 1 || tensor->strides[axis] == stride;
        stride *= tensor->sizes[axis];
    }
    ShapeText text;
    us_require(call, packed, parameter, "packed-planes", MCDNN_STATUS_BAD_PARAM,
               "%s has strides %s: tensors of 5 dimensions must be NCDHW with packed DHW", parameter,
               strides_text(tensor, text));
}

void check_shapes(Call *call, Operand *operands, int count)
{
    for (int i = 0; i < count; i++)
        operands[i].tensor = check_tensor(call, operands[i].shape_name, operands[i].shape);
}

void check_pointers(Call *call, const Operand *operands, int count)
{
    for (int i = 0; i < count; i++)
        check_given(call, operands[i].name, operands[i].data);
}

void check_operands(Call *call, const void *alpha, const void *beta, Operand *operands, int count)
{
    check_shapes(call, operands, count);
    check_on_host(call, "alpha", alpha);
    check_on_host(call, "beta", beta);
    check_pointers(call, operands, count);
}

static void check_rule(Call *call, int32_t status, TensorCheck check, const Operand *operand, const Operand *like)
{
    const char *name = operand->shape_name;
    switch (check) {
    case SAME_SIZES:
        check_same_sizes(call, status, name, operand->tensor, like->shape_name, like->tensor);
        break;
    case SAME_STRIDES:
        check_same_strides(call, status, name, operand->tensor, like->shape_name, like->tensor);
        break;
    case SAME_TYPE:
        check_same_type(call, status, name, operand->tensor, like->shape_name, like->tensor);
        break;
    case IN_PLACE:
        check_in_place(call, operand->name, operand->data, operand->tensor, like->data, like->tensor);
        break;
    case FLOAT_TYPE:
        check_float_type(call, name, operand->tensor);
        break;
    case FLOAT_OR_INT8:
        check_float_or_int8(call, name, operand->tensor, false);
        break;
    case FLOAT_OR_BYTES:
        check_float_or_int8(call, name, operand->tensor, operand->tensor->rank == 4);
        break;
    case PACKED_SPACE:
        check_packed_space(call, name, operand->tensor);
        break;
    case PACKED_PLANES:
        check_packed_planes(call, name, operand->tensor);
        break;
    case STEPS:
        check_steps(call, status, name, operand->tensor);
        break;
    case APART:
        check_apart(call, name, operand->tensor);
        break;
    }
}

void check_rules(Call *call, int32_t status, const Operand *operands, const TensorRule *rules, int count)
{
    for (int i = 0; i < count && call->status == 0; i++)
        check_rule(call, status, rules[i].check, &operands[rules[i].operand], &operands[rules[i].like]);
}

double scaling_factor(const void *factor, const Tensor *destination)
{
    if (destination->type == MCDNN_DATA_DOUBLE) {
        double value;
        memcpy(&value, factor, sizeof value);
        return value;
    }
    float value;
    memcpy(&value, factor, sizeof value);
    return value;
}

void launch_bytes(Launch *launch, const char *parameter, const void *data, size_t bytes, ViewAccess access)
{
    const int64_t count = (int64_t)bytes;
    const View view = us_view_contiguous((void *)(uintptr_t)data, DTYPE_UINT8, 1, &count);
    us_launch_access(launch, parameter, &view, access);
}

void launch_tensor(Launch *launch, const char *parameter, const Tensor *tensor, const void *data, int32_t rank)
{
    View view = tensor_view(tensor, data, rank);
    us_launch_view(launch, parameter, &view);
}

void launch_output(Launch *launch, const char *parameter, const Tensor *tensor, const void *data, int32_t rank,
                   double beta)
{
    launch_tensor(launch, parameter, tensor, data, rank);
    us_launch_output(launch, beta != 0.0);
}

void launch_optional(Launch *launch, const char *parameter, const Tensor *tensor, const void *data, int32_t rank)
{
    const View view = tensor != NULL && data != NULL ? tensor_view(tensor, data, rank) : us_view_absent();
    us_launch_view(launch, parameter, &view);
}

void launch_operand(Launch *launch, const Operand *operand, int32_t rank)
{
    launch_tensor(launch, operand->name, operand->tensor, operand->data, rank);
}

void launch_result(Launch *launch, const Operand *operand, int32_t rank, const void *beta)
{
    launch_output(launch, operand->name, operand->tensor, operand->data, rank, scaling_factor(beta, operand->tensor));
}

/* The handle is bound to its device, so its default stream is that device's, whatever the thread's current device. */
static Stream *stream_of(const Dnn *dnn)
{
    if (dnn->stream != NULL && dnn->stream != mcStreamLegacy)
        return maca_stream(dnn->stream);
    Context *context = us_context_primary(dnn->device);
    return context != NULL ? context->default_stream : NULL;
}

void submit_task(Call *call, const Dnn *dnn, const LaunchTask *task)
{
    if (call->status != 0)
        return;
    Stream *stream = stream_of(dnn);
    us_require(call, stream != NULL, "handle", "launch", MCDNN_STATUS_EXECUTION_FAILED,
               "the stream of the handle, %p, has been destroyed", (void *)dnn->stream);
    maca_check_stream(call, "handle", MCDNN_STATUS_EXECUTION_FAILED, stream);
    us_require(call, maca_launch_task(task, stream), "handle", "launch", MCDNN_STATUS_EXECUTION_FAILED,
               "no host memory to queue the call");
}

void submit(Call *call, const Dnn *dnn, const Launch *launch)
{
    const View *views[LAUNCH_VIEW_LIMIT];
    const LaunchTask task = us_launch_task(launch, views);
    us_require(call, !launch->overfull, "handle", "launch", MCDNN_STATUS_EXECUTION_FAILED,
               "the call has more operands than there is room for");
    submit_task(call, dnn, &task);
}

mcdnnStatus_t run_kernel(Call *call, const Dnn *dnn, Launch *launch, Kernel *kernel, const void *attributes,
                         size_t size)
{
    us_launch_kernel(launch, kernel, attributes, size);
    submit(call, dnn, launch);
    return us_call_end(call);
}
