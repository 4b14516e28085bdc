/* Connectionist temporal classification (mcdnn-cnn 16). */
#include "check.h"
#include "kernels/loss/ctc_costs.h"
#include "maca/common/platform.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_HOST_LABELS = 256, MOST_LABELS = 255 }; /* of one sequence, with host arrays and with device arrays */

typedef struct CtcDescriptor {
    bool set;
    mcdnnDataType_t type;
    mcdnnLossNormalizationMode_t normalization;
    mcdnnNanPropagation_t nan;
    int32_t longest;
} CtcDescriptor;

static CtcDescriptor *descriptor(Call *call, mcdnnCTCLossDescriptor_t ctcLossDesc)
{
    return descriptor_of(call, "ctcLossDesc", ctcLossDesc, HANDLE_CTC_LOSS, "a CTC loss descriptor");
}

static const CtcDescriptor *check_descriptor(Call *call, mcdnnCTCLossDescriptor_t ctcLossDesc)
{
    const CtcDescriptor *ctc = descriptor(call, ctcLossDesc);
    us_require(call, ctc->set, "ctcLossDesc", "set", MCDNN_STATUS_BAD_PARAM, "ctcLossDesc was given no type");
    return ctc;
}

mcdnnStatus_t mcdnnCreateCTCLossDescriptor(mcdnnCTCLossDescriptor_t *ctcLossDesc)
{
    return descriptor_make("mcdnnCreateCTCLossDescriptor", HANDLE_CTC_LOSS, "ctcLossDesc", ctcLossDesc,
                           &(const CtcDescriptor){0}, sizeof(CtcDescriptor));
}

mcdnnStatus_t mcdnnDestroyCTCLossDescriptor(mcdnnCTCLossDescriptor_t ctcLossDesc)
{
    return descriptor_end("mcdnnDestroyCTCLossDescriptor", HANDLE_CTC_LOSS, "ctcLossDesc", ctcLossDesc);
}

/* ---- setters and getters ---- */

static mcdnnStatus_t set(Call *call, mcdnnCTCLossDescriptor_t ctcLossDesc, const CtcDescriptor *wanted)
{
    CtcDescriptor *target = descriptor(call, ctcLossDesc);
    check_range(call, "normMode", wanted->normalization, MCDNN_LOSS_NORMALIZATION_NONE,
                MCDNN_LOSS_NORMALIZATION_SOFTMAX);
    check_range(call, "gradMode", wanted->nan, MCDNN_NOT_PROPAGATE_NAN, MCDNN_PROPAGATE_NAN);
    check_range(call, "maxLabelLength", wanted->longest, 0, MOST_LABELS);
    us_require(call, wanted->type == MCDNN_DATA_FLOAT, "compType", "unsupported-type", MCDNN_STATUS_NOT_SUPPORTED,
               "compType is %s, supported is FLOAT", type_name(wanted->type));
    if (call->status == 0)
        *target = *wanted;
    return us_call_end(call);
}

mcdnnStatus_t mcdnnSetCTCLossDescriptor(mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t compType)
{
    Call call = us_call_begin("mcdnnSetCTCLossDescriptor");
    return set(&call, ctcLossDesc, &(CtcDescriptor){true, compType, MCDNN_LOSS_NORMALIZATION_NONE,
                                                    MCDNN_NOT_PROPAGATE_NAN, MOST_LABELS});
}

mcdnnStatus_t mcdnnSetCTCLossDescriptorEx(
    mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t compType, mcdnnLossNormalizationMode_t normMode,
    mcdnnNanPropagation_t gradMode)
{
    Call call = us_call_begin("mcdnnSetCTCLossDescriptorEx");
    return set(&call, ctcLossDesc, &(CtcDescriptor){true, compType, normMode, gradMode, MOST_LABELS});
}

mcdnnStatus_t mcdnnSetCTCLossDescriptor_v8(
    mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t compType, mcdnnLossNormalizationMode_t normMode,
    mcdnnNanPropagation_t gradMode, int maxLabelLength)
{
    Call call = us_call_begin("mcdnnSetCTCLossDescriptor_v8");
    return set(&call, ctcLossDesc, &(CtcDescriptor){true, compType, normMode, gradMode, maxLabelLength});
}

static mcdnnStatus_t get(const char *function, mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t *compType,
                         mcdnnLossNormalizationMode_t *normMode, mcdnnNanPropagation_t *gradMode, int *maxLabelLength)
{
    Call call = us_call_begin(function);
    const CtcDescriptor *ctc = check_descriptor(&call, ctcLossDesc);
    if (call.status != 0)
        return us_call_end(&call);
    GIVE(compType, ctc->type);
    GIVE(normMode, ctc->normalization);
    GIVE(gradMode, ctc->nan);
    GIVE(maxLabelLength, ctc->longest);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetCTCLossDescriptor(mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t *compType)
{
    return get("mcdnnGetCTCLossDescriptor", ctcLossDesc, compType, NULL, NULL, NULL);
}

mcdnnStatus_t mcdnnGetCTCLossDescriptorEx(
    mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t *compType, mcdnnLossNormalizationMode_t *normMode,
    mcdnnNanPropagation_t *gradMode)
{
    return get("mcdnnGetCTCLossDescriptorEx", ctcLossDesc, compType, normMode, gradMode, NULL);
}

mcdnnStatus_t mcdnnGetCTCLossDescriptor_v8(
    mcdnnCTCLossDescriptor_t ctcLossDesc, mcdnnDataType_t *compType, mcdnnLossNormalizationMode_t *normMode,
    mcdnnNanPropagation_t *gradMode, int *maxLabelLength)
{
    return get("mcdnnGetCTCLossDescriptor_v8", ctcLossDesc, compType, normMode, gradMode, maxLabelLength);
}

/* ---- the loss ---- */

/* The arrays of labels and lengths lie on the host in the first interface, on the device in v8. */
typedef struct ArrayNames {
    const char *labels, *label_lengths, *input_lengths;
    bool on_host;
} ArrayNames;
static const ArrayNames host_arrays = {"hostLabels", "hostLabelLengths", "hostInputLengths", true};
static const ArrayNames device_arrays = {"labels", "labelLengths", "inputLengths", false};
/* A size query of the first interface names them without "host". */
static const ArrayNames query_arrays = {"labels", "labelLengths", "inputLengths", true};

typedef struct CtcCall {
    Call call;
    const Dnn *dnn;
    const CtcDescriptor *ctc;
    const Tensor *probs, *gradients; /* gradients: NULL where there are none */
    const ArrayNames *names;
    const int *labels, *label_lengths, *input_lengths;
    const void *probs_data, *costs, *gradients_data, *workspace;
} CtcCall;

static void open_call(CtcCall *ctc, const char *function, mcdnnHandle_t handle, mcdnnCTCLossDescriptor_t ctcLossDesc,
                      mcdnnTensorDescriptor_t probsDesc, mcdnnTensorDescriptor_t gradientsDesc)
{
    *ctc = (CtcCall){.call = us_call_begin(function)};
    Call *call = &ctc->call;
    ctc->dnn = check_handle(call, handle);
    ctc->ctc = check_descriptor(call, ctcLossDesc);
    ctc->probs = check_tensor(call, "probsDesc", probsDesc);
    ctc->gradients = gradientsDesc != NULL ? check_tensor(call, "gradientsDesc", gradientsDesc) : NULL;
}

static void set_arrays(CtcCall *ctc, const ArrayNames *names, const int *labels, const int *label_lengths,
                       const int *input_lengths)
{
    ctc->names = names;
    ctc->labels = labels, ctc->label_lengths = label_lengths, ctc->input_lengths = input_lengths;
}

static void check_arrays(CtcCall *ctc)
{
    void (*check)(Call *, const char *, const void *) = ctc->names->on_host ? check_on_host : check_given;
    check(&ctc->call, ctc->names->labels, ctc->labels);
    check(&ctc->call, ctc->names->label_lengths, ctc->label_lengths);
    check(&ctc->call, ctc->names->input_lengths, ctc->input_lengths);
}

static void check_packed(Call *call, const char *parameter, const Tensor *tensor)
{
    ShapeText text;
    const View view = tensor_view(tensor, NULL, 3);
    us_require(call, us_view_is_contiguous(&view), parameter, "packed", MCDNN_STATUS_NOT_SUPPORTED,
               "%s has strides %s: it must be packed", parameter, strides_text(tensor, text));
    us_require(call, tensor->type == MCDNN_DATA_FLOAT, parameter, "unsupported-type", MCDNN_STATUS_NOT_SUPPORTED,
               "%s is %s, supported is FLOAT", parameter, type_name(tensor->type));
}

/* Lengths that the host has. */
static void check_lengths(CtcCall *ctc)
{
    Call *call = &ctc->call;
    for (int64_t i = 0; call->status == 0 && i < ctc->probs->sizes[1]; i++) {
        check_range(call, ctc->names->label_lengths, ctc->label_lengths[i], 0, MOST_HOST_LABELS);
        check_range(call, ctc->names->input_lengths, ctc->input_lengths[i], 0, ctc->probs->sizes[0]);
    }
}

static void check_tensors(CtcCall *ctc, mcdnnCTCLossAlgo_t algo, bool lengths)
{
    Call *call = &ctc->call;
    check_range(call, "algo", algo, MCDNN_CTC_LOSS_ALGO_DETERMINISTIC, MCDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC);
    us_require(call, ctc->probs->rank == 3, "probsDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "probsDesc has %d dimensions, not 3: steps, batch and labels", ctc->probs->rank);
    if (ctc->gradients != NULL)
        check_same_sizes(call, MCDNN_STATUS_BAD_PARAM, "gradientsDesc", ctc->gradients, "probsDesc", ctc->probs);
    if (lengths)
        check_lengths(ctc);
    if (call->status == 0)
        check_packed(call, "probsDesc", ctc->probs);
    if (call->status == 0 && ctc->gradients != NULL)
        check_packed(call, "gradientsDesc", ctc->gradients);
}

static size_t memory_of(const CtcCall *ctc)
{
    return us_ctc_costs_memory(ctc->probs->sizes[0], ctc->probs->sizes[1], ctc->probs->sizes[2]);
}

static void check_memory(CtcCall *ctc, size_t bytes)
{
    us_require(&ctc->call, ctc->call.status != 0 || bytes >= memory_of(ctc), "workSpaceSizeInBytes", "minimum",
               MCDNN_STATUS_BAD_PARAM, "workSpaceSizeInBytes is %zu, %zu are needed", bytes, memory_of(ctc));
}

static mcdnnStatus_t tell_memory(CtcCall *ctc, size_t *sizeInBytes)
{
    if (ctc->call.status == 0)
        *sizeInBytes = memory_of(ctc);
    return us_call_end(&ctc->call);
}

static void add_tensors(const CtcCall *ctc, Launch *launch)
{
    const int64_t batch = ctc->probs->sizes[1];
    const bool differentiates = ctc->gradients != NULL && ctc->gradients_data != NULL;
    const View costs = us_view_contiguous((void *)(uintptr_t)ctc->costs, DTYPE_FLOAT32, 1, &batch);
    const View gradients = differentiates ? tensor_view(ctc->gradients, ctc->gradients_data, 3) : us_view_absent();
    us_launch_begin(launch, ctc->call.function);
    launch_tensor(launch, "probs", ctc->probs, ctc->probs_data, 3);
    us_launch_access(launch, "costs", &costs, VIEW_WRITE);
    us_launch_access(launch, "gradients", &gradients, VIEW_WRITE);
    launch_bytes(launch, "workspace", ctc->workspace, memory_of(ctc), VIEW_WRITE);
}

static void set_costs(const CtcCall *ctc, int32_t longest, CtcCosts *costs)
{
    costs->softmax = ctc->ctc->normalization == MCDNN_LOSS_NORMALIZATION_SOFTMAX;
    costs->drops_nan = ctc->ctc->nan == MCDNN_NOT_PROPAGATE_NAN;
    costs->longest = longest;
}

/* The program may change its arrays as soon as the call returns: they go with the launch. */
static mcdnnStatus_t run_with_host_arrays(CtcCall *ctc)
{
    Call *call = &ctc->call;
    const int64_t batch = ctc->probs->sizes[1];
    int64_t labels = 0;
    for (int64_t i = 0; i < batch; i++)
        labels += ctc->label_lengths[i];
    const size_t size = sizeof(CtcCosts) + (size_t)(2 * batch + labels) * sizeof(int32_t);
    CtcCosts *costs = malloc(size);
    us_require(call, costs != NULL, "handle", "launch", MCDNN_STATUS_EXECUTION_FAILED,
               "no host memory to queue the call");
    if (costs == NULL)
        return us_call_end(call);
    set_costs(ctc, MOST_HOST_LABELS, costs);
    memcpy(costs->numbers, ctc->label_lengths, (size_t)batch * sizeof(int32_t));
    memcpy(costs->numbers + batch, ctc->input_lengths, (size_t)batch * sizeof(int32_t));
    memcpy(costs->numbers + 2 * batch, ctc->labels, (size_t)labels * sizeof(int32_t));
    Launch launch;
    const View absent = us_view_absent();
    add_tensors(ctc, &launch);
    for (int i = 0; i < 3; i++)
        us_launch_view(&launch, "labels", &absent);
    const View *views[LAUNCH_VIEW_LIMIT];
    LaunchTask task = us_launch_task(&launch, views);
    task.kernel = us_ctc_costs;
    task.attributes = costs;
    task.attribute_size = size;
    submit_task(call, ctc->dnn, &task);
    free(costs);
    return us_call_end(call);
}

/* The numbers at a device address: how many labels there are is known only when the call runs, so up to the end of the
 * memory they are in. */
static View labels_view(const int *labels)
{
    Allocation found;
    int64_t count = 1;
    if (us_memory_find(maca_platform(), labels, &found)) {
        const size_t rest = found.address + found.size - (uintptr_t)labels;
        count = (int64_t)(rest / sizeof *labels);
    }
    return us_view_contiguous((void *)(uintptr_t)labels, DTYPE_INT32, 1, &count);
}

static mcdnnStatus_t run_with_device_arrays(CtcCall *ctc)
{
    const int64_t batch = ctc->probs->sizes[1];
    const View labels = labels_view(ctc->labels);
    const View label_lengths = us_view_contiguous((void *)(uintptr_t)ctc->label_lengths, DTYPE_INT32, 1, &batch);
    const View input_lengths = us_view_contiguous((void *)(uintptr_t)ctc->input_lengths, DTYPE_INT32, 1, &batch);
    Launch launch;
    add_tensors(ctc, &launch);
    us_launch_view(&launch, ctc->names->labels, &labels);
    us_launch_view(&launch, ctc->names->label_lengths, &label_lengths);
    us_launch_view(&launch, ctc->names->input_lengths, &input_lengths);
    CtcCosts costs;
    set_costs(ctc, ctc->ctc->longest, &costs);
    return run_kernel(&ctc->call, ctc->dnn, &launch, us_ctc_costs, &costs, sizeof costs);
}

static mcdnnStatus_t compute(CtcCall *ctc, mcdnnCTCLossAlgo_t algo, size_t workspace_size)
{
    check_given(&ctc->call, "probs", ctc->probs_data);
    check_arrays(ctc);
    check_given(&ctc->call, "costs", ctc->costs);
    check_given(&ctc->call, "workspace", ctc->workspace);
    check_tensors(ctc, algo, ctc->names->on_host);
    check_memory(ctc, workspace_size);
    if (ctc->call.status != 0)
        return us_call_end(&ctc->call);
    return ctc->names->on_host ? run_with_host_arrays(ctc) : run_with_device_arrays(ctc);
}

mcdnnStatus_t mcdnnCTCLoss(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t probsDesc, const void *probs, const int hostLabels[],
    const int hostLabelLengths[], const int hostInputLengths[], void *costs,
    const mcdnnTensorDescriptor_t gradientsDesc, void *gradients, mcdnnCTCLossAlgo_t algo,
    mcdnnCTCLossDescriptor_t ctcLossDesc, void *workspace, size_t workSpaceSizeInBytes)
{
    CtcCall ctc;
    open_call(&ctc, "mcdnnCTCLoss", handle, ctcLossDesc, probsDesc, gradientsDesc);
    set_arrays(&ctc, &host_arrays, hostLabels, hostLabelLengths, hostInputLengths);
    ctc.probs_data = probs, ctc.costs = costs, ctc.gradients_data = gradients, ctc.workspace = workspace;
    return compute(&ctc, algo, workSpaceSizeInBytes);
}

mcdnnStatus_t mcdnnCTCLoss_v8(
    mcdnnHandle_t handle, mcdnnCTCLossAlgo_t algo, mcdnnCTCLossDescriptor_t ctcLossDesc,
    const mcdnnTensorDescriptor_t probsDesc, const void *probs, const int labels[], const int labelLengths[],
    const int inputLengths[], void *costs, const mcdnnTensorDescriptor_t gradientsDesc, void *gradients,
    size_t workSpaceSizeInBytes, void *workspace)
{
    CtcCall ctc;
    open_call(&ctc, "mcdnnCTCLoss_v8", handle, ctcLossDesc, probsDesc, gradientsDesc);
    set_arrays(&ctc, &device_arrays, labels, labelLengths, inputLengths);
    ctc.probs_data = probs, ctc.costs = costs, ctc.gradients_data = gradients, ctc.workspace = workspace;
    return compute(&ctc, algo, workSpaceSizeInBytes);
}

mcdnnStatus_t mcdnnGetCTCLossWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t probsDesc,
    const mcdnnTensorDescriptor_t gradientsDesc, const int *labels, const int *labelLengths,
    const int *inputLengths, mcdnnCTCLossAlgo_t algo, mcdnnCTCLossDescriptor_t ctcLossDesc,
    size_t *sizeInBytes)
{
    CtcCall ctc;
    open_call(&ctc, "mcdnnGetCTCLossWorkspaceSize", handle, ctcLossDesc, probsDesc, gradientsDesc);
    set_arrays(&ctc, &query_arrays, labels, labelLengths, inputLengths);
    check_arrays(&ctc);
    check_given(&ctc.call, "sizeInBytes", sizeInBytes);
    check_tensors(&ctc, algo, true);
    return tell_memory(&ctc, sizeInBytes);
}

mcdnnStatus_t mcdnnGetCTCLossWorkspaceSize_v8(
    mcdnnHandle_t handle, mcdnnCTCLossAlgo_t algo, mcdnnCTCLossDescriptor_t ctcLossDesc,
    const mcdnnTensorDescriptor_t probsDesc, const mcdnnTensorDescriptor_t gradientsDesc,
    size_t *sizeInBytes)
{
    CtcCall ctc;
    open_call(&ctc, "mcdnnGetCTCLossWorkspaceSize_v8", handle, ctcLossDesc, probsDesc, gradientsDesc);
    check_given(&ctc.call, "sizeInBytes", sizeInBytes);
    check_tensors(&ctc, algo, false);
    return tell_memory(&ctc, sizeInBytes);
}
