#include "ascend/op_compiler/calls.h"

#include "acl/acl_rt.h"
#include "tensor/convert.h"

#include <string.h>

/* ---- objects ---- */

/* Kept until the call ends. NULL: there is no memory, or something has been refused. */
static void *keep(AclnnCall *call, void *object, EndObject *end)
{
    us_require(&call->named->call, object != NULL, "opType", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for %s",
               call->named->type);
    if (object != NULL) {
        call->objects[call->object_count++] = (CallObject){object, end};
    }
    return object;
}

static void end_tensor(void *tensor)
{
    (void)aclDestroyTensor(tensor);
}

static void end_array(void *array)
{
    (void)aclDestroyIntArray(array);
}

static void end_bools(void *array)
{
    (void)aclDestroyBoolArray(array);
}

static void end_scalar(void *scalar)
{
    (void)aclDestroyScalar(scalar);
}

aclTensor *call_view(AclnnCall *call, bool input, int32_t index, const View *view, int64_t offset)
{
    Named *named = call->named;
    const View *whole = input ? &named->inputs[index] : &named->outputs[index];
    if (call_refused(call)) {
        return NULL;
    }
    const int64_t elements = us_view_elements(whole);
    int64_t lowest, highest, first, last; /* the arithmetic may overflow: strides are the program's */
    const bool inside = us_view_extent(view, &lowest, &highest) && !__builtin_add_overflow(offset, lowest, &first) &&
                        !__builtin_add_overflow(offset, highest, &last) && first >= 0 && last < elements;
    us_require(&named->call, inside || us_view_is_empty(view), input ? "inputDesc" : "outputDesc", "reach",
               ACL_ERROR_INVALID_PARAM, "%s would leave the elements of %s %d", named->type, input ? "input" : "output",
               (int)index);
    const aclDataType type = input ? named->input_types[index] : named->output_types[index];
    return call_refused(call) ? NULL
                              : keep(call, aclCreateTensor(view->shape, (uint64_t)view->rank, type, view->strides, offset,
                                                           call->format, &elements, 1, whole->data), end_tensor);
}

aclTensor *call_input(AclnnCall *call, int32_t index)
{
    const Named *named = call->named;
    const bool given = index < named->input_count && !us_view_is_absent(&named->inputs[index]);
    return given ? call_view(call, true, index, &named->inputs[index], 0) : NULL;
}

aclTensor *call_output(AclnnCall *call, int32_t index)
{
    return call_view(call, false, index, &call->named->outputs[index], 0);
}

aclIntArray *call_array(AclnnCall *call, const int64_t *values, uint64_t count)
{
    return call_refused(call) ? NULL : keep(call, aclCreateIntArray(values, count), end_array);
}

aclBoolArray *call_bools(AclnnCall *call, const bool *values, uint64_t count)
{
    return call_refused(call) ? NULL : keep(call, aclCreateBoolArray(values, count), end_bools);
}

static aclScalar *make_scalar(AclnnCall *call, const void *value, aclDataType type)
{
    return call_refused(call) ? NULL : keep(call, aclCreateScalar((void *)(uintptr_t)value, type), end_scalar);
}

aclScalar *call_float(AclnnCall *call, float value)
{
    return make_scalar(call, &value, ACL_FLOAT);
}

aclScalar *call_scalar(AclnnCall *call, int32_t index)
{
    return make_scalar(call, call->named->constants[index], call->named->input_types[index]);
}

/* ---- the call ---- */

/* Memory is wanted only where UNDERSTUDY_CHECK says so; it is lent until the kernel has run. */
static aclnnStatus run_planned(AclnnCall *call, AclnnRun *run)
{
    void *workspace = NULL;
    aclnnStatus status = call->workspace_size == 0 ? 0 : aclrtMalloc(&workspace, call->workspace_size, ACL_MEM_MALLOC_HUGE_FIRST);
    status = status != 0 ? status : run(workspace, call->workspace_size, call->executor, call->named->stream_handle);
    if (workspace != NULL) {
        (void)aclrtSynchronizeStream(call->named->stream_handle); /* what failed there is told by the program's own */
        (void)aclrtFree(workspace);
    }
    return status;
}

static void end_objects(AclnnCall *call)
{
    while (call->object_count > 0) {
        const CallObject *last = &call->objects[--call->object_count];
        last->end(last->object);
    }
}

void call_end(AclnnCall *call, aclnnStatus planned, AclnnRun *run)
{
    Named *named = call->named;
    if (!call_refused(call)) {
        const aclnnStatus status = planned != 0 ? planned : run_planned(call, run);
        Explanation why; /* the last error is where the new one is written */
        us_explain(&why, "%s", us_last_error_of_thread()->text);
        us_require(&named->call, status == 0, "opType", "refused", ACL_ERROR_GE_FAILURE, "%s: %s", named->type, why.text);
    }
    end_objects(call);
}

/* ---- host values ---- */

static void require_on_host(Named *named, int32_t index, bool needed)
{
    us_require(&named->call, !needed || named->constants[index] != NULL, "inputs", "host", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input %d of %s must be a constant or lie in host memory", (int)index, named->type);
}

double call_number(Named *named, int32_t index)
{
    double value = 0;
    named_require_input(named, index, 0);
    require_on_host(named, index, named->call.status == 0);
    if (named->call.status == 0) {
        us_load_double(&value, named->constants[index], named->inputs[index].dtype, 1, 1);
    }
    return value;
}

int32_t call_integers(Named *named, int32_t index, int64_t *values, int32_t limit)
{
    if (named->call.status != 0) {
        return 0;
    }
    const View *view = &named->inputs[index];
    const int64_t count = us_view_is_absent(view) ? 0 : us_view_elements(view);
    us_require(&named->call, count <= limit && view->rank <= 1, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input %d of %s has %lld elements and %d dimensions; it must have at most %d in one dimension", (int)index, named->type,
               (long long)count, (int)view->rank, (int)limit);
    us_require(&named->call, count == 0 || view->dtype == DTYPE_INT64 || view->dtype == DTYPE_INT32, "inputDesc", "type",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "input %d of %s must be of type int32 or int64", (int)index, named->type);
    require_on_host(named, index, count > 0);
    for (int64_t i = 0; i < count && named->call.status == 0; i++) {
        if (view->dtype == DTYPE_INT64) {
            memcpy(&values[i], (const char *)named->constants[index] + i * 8, 8);
        } else {
            int32_t value;
            memcpy(&value, (const char *)named->constants[index] + i * 4, 4);
            values[i] = value;
        }
    }
    return named->call.status == 0 ? (int32_t)count : 0;
}
