/* Tasks that the runtime itself brings: reductions and random numbers (cann-runtime-3 10, doc 12, 25-04). */
#include "ascend/ascendcl/runtime.h"
#include "ascend/common/dtype.h"
#include "kernels/map/formulas.h"
#include "kernels/random/draws.h"
#include "launch/launch.h"
#include "tensor/convert.h"

#include <string.h>

static void require_unreserved(Call *call, const void *reserve)
{
    us_require(call, reserve == NULL, "reserve", "reserved", ACL_ERROR_RT_PARAM_INVALID, "reserve is %p; it must be NULL",
               reserve);
}

static void submit(Call *call, const LaunchTask *task, Stream *stream)
{
    us_require(call, us_launch_submit_task(task, stream), "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory to queue the task");
}

/* ---- reductions ---- */

static bool reduces(aclDataType type, aclrtReduceKind kind)
{
    if (ascend_product()->product == PRODUCT_910A) {
        return type == ACL_FLOAT && kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM;
    }
    return type == ACL_INT8 || type == ACL_INT16 || type == ACL_INT32 || type == ACL_FLOAT16 || type == ACL_FLOAT ||
           type == ACL_BF16;
}

static const MapFormula *formula_of(aclrtReduceKind kind)
{
    return kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM   ? &us_map_add
           : kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX ? &us_map_maximum
                                                      : &us_map_minimum;
}

aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
                          aclrtStream stream, void *reserve)
{
    Call call = us_call_begin("aclrtReduceAsync");
    us_require(&call, dst != NULL, "dst", "null", ACL_ERROR_INVALID_PARAM, "dst is NULL");
    us_require(&call, src != NULL, "src", "null", ACL_ERROR_INVALID_PARAM, "src is NULL");
    us_require(&call, count > 0, "count", "zero", ACL_ERROR_INVALID_PARAM, "count is 0; it must be at least 1");
    us_require(&call, kind >= ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM && kind <= ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN, "kind",
               "range", ACL_ERROR_RT_PARAM_INVALID, "kind is %d; it must be 10 to 12", (int)kind);
    require_unreserved(&call, reserve);
    us_require(&call, reduces(type, kind), "type", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "devices of the %s do not reduce elements of type %d so (kind %d)", ascend_product()->series, (int)type,
               (int)kind);
    DType dtype = call.status == 0 ? dtype_of_acl(type) : DTYPE_INT8;
    us_require(&call, count % us_dtype_size(dtype) == 0 && count <= INT64_MAX, "count", "elements",
               ACL_ERROR_RT_PARAM_INVALID, "count is %llu bytes; elements of type %s have %zu each",
               (unsigned long long)count, us_dtype_name(dtype), us_dtype_size(dtype));
    Stream *on = acl_require_task_stream(&call, stream);
    if (on != NULL) {
        int64_t elements = (int64_t)(count / us_dtype_size(dtype));
        View target = us_view_contiguous(dst, dtype, 1, &elements);
        View source = us_view_contiguous((void *)src, dtype, 1, &elements);
        MapCall formula = {.formula = formula_of(kind), .compute = dtype, .result = dtype, .inputs = 2, .outputs = 1,
                           .items = 1, .numbers = {{.real = 1, .integer = 1}}};
        static const char *const names[] = {"dst", "src", "dst"};
        static const ViewAccess access[] = {VIEW_READ, VIEW_READ, VIEW_READ_WRITE};
        LaunchTask task = {.function = "aclrtReduceAsync", .kernel = us_map, .view_count = 3,
                           .views = (const View *[]){&target, &source, &target}, .names = names, .access = access,
                           .attributes = &formula, .attribute_size = sizeof formula};
        submit(&call, &task, on);
    }
    return acl_end(&call);
}

/* ---- random numbers ---- */

/* A number of the task: in the description, or one element at an address of the device. */
typedef struct Parameter {
    uint64_t bits;
    View view; /* absent: `bits` has the value */
    bool given; /* its size fits its type */
} Parameter;

static Parameter parameter_of(const aclrtRandomParaInfo *info, DType dtype)
{
    Parameter parameter = {.view = us_view_absent(), .given = true};
    memcpy(&parameter.bits, info->valueOrAddr, sizeof parameter.bits);
    if (info->isAddr == 1) {
        parameter.view = us_view_contiguous((void *)(uintptr_t)parameter.bits, dtype, 0, NULL);
        parameter.given = parameter.bits != 0;
    } else {
        parameter.given = info->isAddr == 0 && info->size == us_dtype_size(dtype);
    }
    return parameter;
}

static double value_of(const Parameter *parameter, DType dtype)
{
    double value = 0;
    if (us_view_is_absent(&parameter->view)) {
        us_convert(&value, DTYPE_FLOAT64, &parameter->bits, dtype, 1);
    }
    return value;
}

static bool draws_type(aclrtRandomNumFuncType function, aclDataType type)
{
    bool floats = type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
    bool integers = type == ACL_INT32 || type == ACL_INT64 || type == ACL_UINT32 || type == ACL_UINT64;
    return floats || (integers && function == ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS);
}

static Distribution distribution_of(aclrtRandomNumFuncType function)
{
    switch (function) {
    case ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS:
        return DRAW_NORMAL;
    case ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS:
        return DRAW_TRUNCATED_NORMAL;
    default:
        return DRAW_UNIFORM;
    }
}

/* How many values; seed and count are unsigned integers of at most 8 bytes. */
static uint64_t require_count(Call *call, const aclrtRandomParaInfo *info)
{
    uint64_t count = 0;
    us_require(call, info->isAddr == 0, "randomNum", "address", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "randomNum lies in memory of the device (isAddr is %d): the number of values must be in the call",
               (int)info->isAddr);
    us_require(call, info->size <= sizeof count, "randomNum", "size", ACL_ERROR_RT_PARAM_INVALID,
               "randomNum has %d bytes; it must have at most 8", (int)info->size);
    if (call->status == 0) {
        memcpy(&count, info->valueOrAddr, info->size);
    }
    us_require(call, count > 0 && count <= INT64_MAX / 8, "randomNum", "range", ACL_ERROR_RT_PARAM_INVALID,
               "randomNum is %llu; it must be at least 1", (unsigned long long)count);
    return count;
}

static void require_task(Call *call, const aclrtRandomNumTaskInfo *info)
{
    aclrtRandomNumFuncType function = call->status == 0 ? info->randomNumFuncParaInfo.funcType : 0;
    us_require(call, (int)function >= 0 && function <= ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS, "taskInfo",
               "function", ACL_ERROR_RT_PARAM_INVALID, "funcType is %d; it must be 0 to 3", (int)function);
    us_require(call, draws_type(function, info->dataType), "taskInfo", "type", ACL_ERROR_RT_PARAM_INVALID,
               "dataType is %d, which funcType %d does not draw", (int)info->dataType, (int)function);
    us_require(call, info->randomResultAddr != NULL, "randomResultAddr", "null", ACL_ERROR_INVALID_PARAM,
               "randomResultAddr is NULL");
    us_require(call, info->randomCounterAddr != NULL, "randomCounterAddr", "null", ACL_ERROR_INVALID_PARAM,
               "randomCounterAddr is NULL");
}

static void draw(Call *call, const aclrtRandomNumTaskInfo *info, Stream *stream, int64_t count)
{
    DType dtype = dtype_of_acl(info->dataType);
    bool mask = info->randomNumFuncParaInfo.funcType == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK;
    const aclrtUniformDisInfo *numbers = &info->randomNumFuncParaInfo.paramInfo.uniformDisInfo; /* all begin so */
    Parameter first = parameter_of(&numbers->min, dtype);
    Parameter second = mask ? (Parameter){.view = us_view_absent(), .given = true} : parameter_of(&numbers->max, dtype);
    us_require(call, first.given && second.given, "taskInfo", "parameter", ACL_ERROR_RT_PARAM_INVALID,
               "a parameter has not %zu bytes, as values of its type have, or address 0", us_dtype_size(dtype));
    Parameter seed = parameter_of(&info->randomSeed, DTYPE_INT64);
    us_require(call, seed.given, "taskInfo", "seed", ACL_ERROR_RT_PARAM_INVALID,
               "randomSeed has %d bytes, or address 0; it must have 8", (int)info->randomSeed.size);
    if (call->status != 0) {
        return;
    }
    DrawsWith task = {.draws = {.distribution = distribution_of(info->randomNumFuncParaInfo.funcType),
                                .stream = {.seed = seed.bits}, .a = value_of(&first, dtype),
                                .b = mask ? 0 : value_of(&second, dtype)},
                      .bits = mask ? count : 0};
    int64_t bytes = (count + 7) / 8;
    View out = us_view_contiguous(info->randomResultAddr, mask ? DTYPE_UINT8 : dtype, 1, mask ? &bytes : &count);
    View counter = us_view_contiguous(info->randomCounterAddr, DTYPE_INT64, 0, NULL);
    static const char *const names[] = {"randomResultAddr", "randomSeed", "randomCounterAddr", "the first parameter",
                                        "the second parameter"};
    static const ViewAccess access[] = {VIEW_WRITE, VIEW_READ, VIEW_READ, VIEW_READ, VIEW_READ};
    LaunchTask queued = {.function = "aclrtRandomNumAsync", .kernel = us_draws_with, .view_count = 5,
                         .views = (const View *[]){&out, &seed.view, &counter, &first.view, &second.view}, .names = names,
                         .access = access, .attributes = &task, .attribute_size = sizeof task};
    submit(call, &queued, stream);
}

aclError aclrtRandomNumAsync(const aclrtRandomNumTaskInfo *taskInfo, const aclrtStream stream, void *reserve)
{
    Call call = us_call_begin("aclrtRandomNumAsync");
    us_require(&call, taskInfo != NULL, "taskInfo", "null", ACL_ERROR_INVALID_PARAM, "taskInfo is NULL");
    require_unreserved(&call, reserve);
    us_require(&call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s draw no random numbers by themselves",
               ascend_product()->series);
    require_task(&call, taskInfo);
    uint64_t count = call.status == 0 ? require_count(&call, &taskInfo->randomNum) : 0;
    Stream *on = acl_require_task_stream(&call, stream);
    if (on != NULL) {
        draw(&call, taskInfo, on, (int64_t)count);
    }
    return acl_end(&call);
}
