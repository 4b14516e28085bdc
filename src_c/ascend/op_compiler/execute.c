/* Operators by name (named.h). What is not emulated is refused with a sentence that tells what was given. */
#include "ascend/common/dtype.h"
#include "ascend/common/platform.h"
#include "ascend/op_compiler/named.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Sentence {
    char text[1024];
    size_t used;
} Sentence;

static US_PRINTF(2, 3) void append(Sentence *sentence, const char *format, ...)
{
    size_t room = sizeof sentence->text - sentence->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(sentence->text + sentence->used, room, format, arguments);
    va_end(arguments);
    sentence->used += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

/* "ACL_FLOAT [2,3], ACL_INT64 []" */
static void append_descriptions(Sentence *sentence, const char *label, const aclTensorDesc *const *descriptions,
                                int count)
{
    append(sentence, "%s", label);
    for (int i = 0; descriptions != NULL && i < count; i++) {
        const aclTensorDesc *description = descriptions[i];
        append(sentence, "%s%s [", i > 0 ? ", " : "", acl_dtype_name(aclGetTensorDescType(description)));
        size_t rank = aclGetTensorDescNumDims(description);
        for (size_t axis = 0; rank != ACL_UNKNOWN_RANK && axis < rank; axis++) {
            int64_t size = -1;
            aclGetTensorDescDimV2(description, axis, &size);
            append(sentence, "%s%lld", axis > 0 ? "," : "", (long long)size);
        }
        append(sentence, "%s]", rank == ACL_UNKNOWN_RANK ? "?" : "");
    }
}

/* What a call was given; buffers NULL: it only compiles. */
typedef struct Given {
    const char *type;
    int input_count, output_count;
    const aclTensorDesc *const *input_descriptions, *const *output_descriptions;
    const aclDataBuffer *const *inputs;
    aclDataBuffer *const *outputs;
    const aclopAttr *attributes;
    aclrtStream stream;
    bool executes;
} Given;

static void refuse(Call *call, const Given *given)
{
    Sentence sentence = {.used = 0};
    append_descriptions(&sentence, "inputs ", given->input_descriptions, given->input_count);
    append_descriptions(&sentence, "; outputs ", given->output_descriptions, given->output_count);
    const OperatorAttributes *attributes = us_handle_object(given->attributes, HANDLE_OPERATOR_ATTRIBUTES);
    append(&sentence, "; attributes %s", attributes != NULL && attributes->text != NULL ? attributes->text : "none");
    us_refuse(call, "opType", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "operator %.64s by name is not emulated (%s)", given->type, sentence.text);
}

/* The row-major array that a description tells; absent where it has no type. */
static View view_of(Call *call, const char *parameter, int index, const aclTensorDesc *handle)
{
    View view = us_view_absent();
    us_require(call, handle != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s[%d] is NULL", parameter, index);
    const aclTensorDesc *description = us_handle_object(handle, HANDLE_TENSOR_DESCRIPTION);
    us_require(call, description != NULL, parameter, "dead", ACL_ERROR_INVALID_PARAM,
               "%s[%d] was destroyed, or never came from this library", parameter, index);
    if (call->status != 0 || description->type == ACL_DT_UNDEFINED) {
        return view;
    }
    const Dimensions *dimensions = &description->dimensions;
    const DType dtype = dtype_of_acl(description->type);
    us_require(call, dtype != DTYPE_NONE, parameter, "type", ACL_ERROR_UNSUPPORTED_DATA_TYPE, "%s[%d] is of type %s", parameter,
               index, acl_dtype_name(description->type));
    us_require(call, !acl_format_is_private(description->storage_format), parameter, "format", ACL_ERROR_FORMAT_NOT_MATCH,
               "%s[%d] is in the private format %d", parameter, index, (int)description->storage_format);
    const bool known = dimensions->count <= VIEW_RANK_LIMIT && us_shape_elements(dimensions->count, dimensions->sizes) >= 0;
    us_require(call, known, parameter, "shape", ACL_ERROR_INVALID_PARAM,
               "the dimensions of %s[%d] are not known, are more than %d or have more elements than any memory", parameter, index,
               VIEW_RANK_LIMIT);
    return call->status == 0 ? us_view_contiguous(NULL, dtype, dimensions->count, dimensions->sizes) : view;
}

static void require_bytes(Call *call, const char *parameter, int index, const View *view, size_t bytes)
{
    const size_t size = us_dtype_size(view->dtype), elements = (size_t)us_view_elements(view);
    us_require(call, elements <= bytes / size, parameter, "size", ACL_ERROR_INVALID_PARAM,
               "%s[%d] has %zu bytes; its description tells %zu elements of %zu bytes", parameter, index, bytes, elements, size);
}

/* False: the operand has elements, and no address. */
static bool give_memory(Call *call, View *view, const char *parameter, int index, const aclDataBuffer *buffer)
{
    if (us_view_is_absent(view) || us_view_is_empty(view)) {
        return true;
    }
    view->data = aclGetDataBufferAddr(buffer);
    if (view->data != NULL) {
        require_bytes(call, parameter, index, view, aclGetDataBufferSizeV2(buffer));
    }
    return view->data != NULL;
}

/* A constant of the description or the buffer's memory; without an address the input is left out, as the PyTorch adapter does. */
static void give_input(Named *named, int index, const aclTensorDesc *description, const aclDataBuffer *buffer)
{
    View *view = &named->inputs[index];
    if (us_view_is_absent(view)) {
        return;
    }
    if (description->constant != NULL) {
        view->data = description->constant;
        require_bytes(&named->call, "inputs", index, view, description->constant_size);
    } else if (!give_memory(&named->call, view, "inputs", index, buffer)) {
        *view = us_view_absent();
    }
    const bool on_host = description->constant != NULL || description->memory_type != ACL_MEMTYPE_DEVICE;
    named->constants[index] = on_host ? view->data : NULL;
}

static void take_inputs(Named *named, const Given *given)
{
    for (int i = 0; i < given->input_count && named->call.status == 0; i++) {
        const aclTensorDesc *description = given->input_descriptions[i];
        named->inputs[i] = view_of(&named->call, "inputDesc", i, description);
        named->input_types[i] = aclGetTensorDescType(description);
        if (named->call.status == 0 && given->executes) {
            give_input(named, i, us_handle_object(description, HANDLE_TENSOR_DESCRIPTION), given->inputs[i]);
        }
    }
}

static void take_outputs(Named *named, const Given *given)
{
    for (int i = 0; i < given->output_count && named->call.status == 0; i++) {
        named->outputs[i] = view_of(&named->call, "outputDesc", i, given->output_descriptions[i]);
        named->output_types[i] = aclGetTensorDescType(given->output_descriptions[i]);
        us_require(&named->call, !us_view_is_absent(&named->outputs[i]), "outputDesc", "absent", ACL_ERROR_OP_OUTPUT_NOT_MATCH,
                   "output %d of %s has no type", i, named->type);
        const bool there = named->call.status != 0 || !given->executes ||
                           give_memory(&named->call, &named->outputs[i], "outputs", i, given->outputs[i]);
        us_require(&named->call, there, "outputs", "null", ACL_ERROR_INVALID_PARAM, "outputs[%d] has no address", i);
    }
}

static void require_lists(Call *call, const Given *given)
{
    us_require(call, given->input_count >= 0 && given->input_count <= NAMED_LIMIT, "numInputs", "range", ACL_ERROR_INVALID_PARAM,
               "numInputs is %d; it must be 0 to %d", given->input_count, NAMED_LIMIT);
    us_require(call, given->output_count >= 0 && given->output_count <= NAMED_LIMIT, "numOutputs", "range",
               ACL_ERROR_INVALID_PARAM, "numOutputs is %d; it must be 0 to %d", given->output_count, NAMED_LIMIT);
    us_require(call, given->input_count == 0 || given->input_descriptions != NULL, "inputDesc", "null", ACL_ERROR_INVALID_PARAM,
               "inputDesc is NULL");
    us_require(call, given->output_count == 0 || given->output_descriptions != NULL, "outputDesc", "null",
               ACL_ERROR_INVALID_PARAM, "outputDesc is NULL");
    us_require(call, !given->executes || given->input_count == 0 || given->inputs != NULL, "inputs", "null",
               ACL_ERROR_INVALID_PARAM, "inputs is NULL");
    us_require(call, !given->executes || given->output_count == 0 || given->outputs != NULL, "outputs", "null",
               ACL_ERROR_INVALID_PARAM, "outputs is NULL");
}

/* The operator's place in the stream: clients that call from a thread of their own go on after a refusal, as the PyTorch
 * adapter's queue does, and would take what lies in memory for results. */
static KernelStatus fail(const View *views, const void *attributes)
{
    (void)views;
    return us_kernel_fault("%s", ((const Explanation *)attributes)->text);
}

static void fail_stream(const char *function, Stream *stream)
{
    Explanation why;
    us_explain(&why, "%s", us_last_error_of_thread()->text);
    const LaunchTask task = {.function = function, .kernel = fail, .attributes = &why, .attribute_size = sizeof why};
    (void)us_launch_submit_task(&task, stream); /* without memory for it the status alone tells */
}

/* What must hold before the operator is looked at. */
static void begin(Named *named, const Given *given)
{
    Call *call = &named->call;
    us_require(call, given->type != NULL, "opType", "null", ACL_ERROR_INVALID_PARAM, "opType is NULL");
    require_lists(call, given);
    named->attributes = us_handle_object(given->attributes, HANDLE_OPERATOR_ATTRIBUTES);
    us_require(call, given->attributes == NULL || named->attributes != NULL, "attr", "dead", ACL_ERROR_INVALID_PARAM,
               "attr was destroyed, or never came from this library");
    named->stream = given->executes ? ascend_stream(given->stream) : NULL;
    us_require(call, named->stream != NULL || !given->executes, "stream", "dead", ACL_ERROR_INVALID_PARAM,
               "stream %p has been destroyed, or never existed, or the thread has no context", given->stream);
    named->stream_handle = given->stream;
    named->input_count = given->input_count;
    named->output_count = given->output_count;
}

static void plan(Named *named, const Given *given)
{
    named->entry = named_entry(given->type);
    if (named->entry == NULL) {
        refuse(&named->call, given);
        return;
    }
    named->type = named->entry->type;
    take_inputs(named, given);
    take_outputs(named, given);
    if (named->call.status == 0 && given->executes) {
        named->entry->plan(named);
    }
}

static aclError run(const char *function, const Given *given)
{
    Call call = us_call_begin(function);
    Named *named = calloc(1, sizeof *named); /* too large for small stacks */
    us_require(&call, named != NULL, "opType", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for an operator");
    if (named != NULL) {
        named->call = call;
        begin(named, given);
        if (named->call.status == 0) {
            plan(named, given);
            if (named->call.status != 0 && given->executes) {
                fail_stream(function, named->stream);
            }
        }
        call = named->call;
        free(named);
    }
    return us_call_end(&call);
}

aclError aclopCompile(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[], int numOutputs,
                      const aclTensorDesc *const outputDesc[], const aclopAttr *attr, aclopEngineType engineType,
                      aclopCompileType compileFlag, const char *opPath)
{
    (void)engineType, (void)compileFlag, (void)opPath;
    const Given given = {.type = opType, .input_count = numInputs, .output_count = numOutputs, .attributes = attr,
                         .input_descriptions = inputDesc, .output_descriptions = outputDesc};
    return run("aclopCompile", &given);
}

aclError aclopCompileAndExecute(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[],
                                const aclDataBuffer *const inputs[], int numOutputs,
                                const aclTensorDesc *const outputDesc[], aclDataBuffer *const outputs[],
                                const aclopAttr *attr, aclopEngineType engineType, aclopCompileType compileFlag,
                                const char *opPath, aclrtStream stream)
{
    (void)engineType, (void)compileFlag, (void)opPath;
    const Given given = {opType, numInputs, numOutputs, inputDesc, outputDesc, inputs, outputs, attr, stream, true};
    return run("aclopCompileAndExecute", &given);
}

aclError aclopCompileAndExecuteV2(const char *opType, int numInputs, aclTensorDesc *inputDesc[],
                                  aclDataBuffer *inputs[], int numOutputs, aclTensorDesc *outputDesc[],
                                  aclDataBuffer *outputs[], aclopAttr *attr, aclopEngineType engineType,
                                  aclopCompileType compileFlag, const char *opPath, aclrtStream stream)
{
    (void)engineType, (void)compileFlag, (void)opPath;
    const Given given = {opType, numInputs, numOutputs, (const aclTensorDesc *const *)inputDesc,
                         (const aclTensorDesc *const *)outputDesc, (const aclDataBuffer *const *)inputs, outputs, attr, stream,
                         true};
    return run("aclopCompileAndExecuteV2", &given);
}
