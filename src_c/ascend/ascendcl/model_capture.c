/* Capture: streams whose work is recorded (cann-runtime-3 13.1, 13.2, 13.6). */
#include "ascend/ascendcl/model.h"

#include <stdatomic.h>
#include <stdlib.h>

void model_refuse_capture(Call *call, CaptureFault fault)
{
    static const Refusal refusals[] = {
        [CAPTURE_FAULT_BUSY] = {"stream", "capturing", ACL_ERROR_RT_STREAM_CAPTURED,
            "the stream's work is being captured already"},
        [CAPTURE_FAULT_ENDED] = {"stream", "dead", ACL_ERROR_RT_INVALID_HANDLE, "another thread destroys the stream"},
        [CAPTURE_FAULT_IDLE] = {"stream", "idle", ACL_ERROR_RT_STREAM_NOT_CAPTURED,
            "the stream's work is not being captured"},
        [CAPTURE_FAULT_ORIGIN] = {"stream", "origin", ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
            "the capture began on another stream; this one joined it through an event"},
        [CAPTURE_FAULT_THREAD] = {"thread", "other", ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
            "the capture began in another thread, and its mode is not RELAXED"},
        [CAPTURE_FAULT_UNJOINED] = {"stream", "unjoined", ACL_ERROR_RT_STREAM_UNJOINED,
            "work of a stream that joined the capture is not waited for by the stream it began on"},
        [CAPTURE_FAULT_INVALID] = {"capture", "invalidated", ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
            "an earlier call that is not allowed during a capture has made it invalid"},
        [CAPTURE_FAULT_MERGE] = {"event", "other-capture", ACL_ERROR_STREAM_CAPTURE_CONFLICT,
            "event and stream belong to different captures"},
        [CAPTURE_FAULT_UNRECORDED] = {"event", "uncaptured", ACL_ERROR_RT_CAPTURE_DEPENDENCY,
            "the event has no record in the capture of the stream"},
        [CAPTURE_FAULT_CHILD] = {"stream", "child", ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING,
            "a sub-model is still being captured"},
        [CAPTURE_FAULT_GROUP] = {"stream", "group", ACL_ERROR_STREAM_TASK_GROUP_STATUS,
            "task groups and their updates begin and end once each, in turns"},
        [CAPTURE_FAULT_NO_MEMORY] = {"stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
            "no host memory to record the work"},
    };
    if (fault != CAPTURE_OK) {
        us_refuse_as(call, &refusals[fault]);
    }
}

Stream *model_require_stream(Call *call, aclrtStream handle)
{
    us_require(call, handle != NULL, "stream", "null", ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
               "stream is NULL: the default stream cannot be part of a model");
    Context *context = acl_require_context(call, "context", "none");
    Stream *stream = acl_require_stream(call, "stream", "dead", handle);
    us_require(call, stream != context->default_stream, "stream", "default", ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
               "the default stream cannot be part of a model");
    return call->status == 0 ? stream : NULL;
}

static void require_mode(Call *call, int mode)
{
    us_require(call, mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED, "mode",
               "range", ACL_ERROR_RT_PARAM_INVALID, "mode is %d; it must be 0, 1 or 2", mode);
}

/* The stream of a call that only a capture allows. */
static Stream *require_stream(Call *call, aclrtStream handle)
{
    model_require_product(call);
    return model_require_stream(call, handle);
}

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode)
{
    Call call = us_call_begin("aclmdlRICaptureBegin");
    require_mode(&call, (int)mode);
    Stream *found = require_stream(&call, stream);
    if (call.status == 0) {
        model_refuse_capture(&call, us_capture_begin(found, NULL, (CaptureMode)mode));
    }
    Graph *graph = NULL;
    if (call.status == 0 && us_capture_status(found, &graph) != CAPTURE_NONE) {
        model_equip(&call, graph);
    }
    return acl_end(&call);
}

aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI, aclmdlRICaptureMode mode)
{
    Call call = us_call_begin("aclmdlRICaptureToModelRIBegin");
    require_mode(&call, (int)mode);
    Stream *found = require_stream(&call, stream);
    Graph *graph = model_require(&call, modelRI);
    us_require(&call, us_graph_parent(graph) != NULL, "modelRI", "parent", ACL_ERROR_RT_PARAM_INVALID,
               "model %u does not come from aclmdlRIAddCondTask", (unsigned)graph->id);
    us_require(&call, us_graph_branches(graph) == 0, "modelRI", "filled", ACL_ERROR_RT_MODEL_CAPTURED,
               "model %u has been captured, or is being captured", (unsigned)graph->id);
    if (call.status == 0) {
        model_refuse_capture(&call, us_capture_begin(found, graph, (CaptureMode)mode));
    }
    return acl_end(&call);
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI)
{
    Call call = us_call_begin("aclmdlRICaptureEnd");
    us_require(&call, modelRI != NULL, "modelRI", "null", ACL_ERROR_INVALID_PARAM, "modelRI is NULL");
    Stream *found = require_stream(&call, stream);
    Graph *graph = NULL;
    if (call.status == 0) {
        model_refuse_capture(&call, us_capture_end(found, &graph));
    }
    if (call.status == 0) {
        *modelRI = graph->handle;
    }
    return acl_end(&call);
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status, aclmdlRI *modelRI)
{
    static const aclmdlRICaptureStatus statuses[] = {
        [CAPTURE_NONE] = ACL_MODEL_RI_CAPTURE_STATUS_NONE,
        [CAPTURE_ACTIVE] = ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE,
        [CAPTURE_INVALIDATED] = ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED,
    };
    Call call = us_call_begin("aclmdlRICaptureGetInfo");
    us_require(&call, status != NULL, "status", "null", ACL_ERROR_INVALID_PARAM, "status is NULL");
    us_require(&call, modelRI != NULL, "modelRI", "null", ACL_ERROR_INVALID_PARAM, "modelRI is NULL");
    model_require_product(&call);
    Stream *found = acl_require_stream(&call, "stream", "dead", stream);
    if (call.status == 0) {
        Graph *graph = NULL;
        *status = statuses[us_capture_status(found, &graph)];
        *modelRI = graph != NULL ? graph->handle : NULL;
    }
    return acl_end(&call);
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode)
{
    Call call = us_call_begin("aclmdlRICaptureThreadExchangeMode");
    us_require(&call, mode != NULL, "mode", "null", ACL_ERROR_INVALID_PARAM, "mode is NULL");
    if (call.status == 0) {
        require_mode(&call, (int)*mode);
    }
    model_require_product(&call);
    if (call.status == 0) {
        *mode = (aclmdlRICaptureMode)us_capture_exchange_mode((CaptureMode)*mode);
    }
    return acl_end(&call);
}

/* ---- groups of tasks ---- */

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream)
{
    Call call = us_call_begin("aclmdlRICaptureTaskGrpBegin");
    Stream *found = require_stream(&call, stream);
    if (call.status == 0) {
        model_refuse_capture(&call, us_capture_group_begin(found));
    }
    return acl_end(&call);
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle)
{
    Call call = us_call_begin("aclmdlRICaptureTaskGrpEnd");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    Stream *found = require_stream(&call, stream);
    void *group = NULL;
    if (call.status == 0) {
        model_refuse_capture(&call, us_capture_group_end(found, &group));
    }
    if (call.status == 0) {
        *handle = group;
    }
    return acl_end(&call);
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle)
{
    Call call = us_call_begin("aclmdlRICaptureTaskUpdateBegin");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    Stream *found = require_stream(&call, stream);
    CaptureFault fault = call.status == 0 ? us_group_update_begin(found, handle) : CAPTURE_OK;
    us_require(&call, fault != CAPTURE_FAULT_UNRECORDED, "handle", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "handle %p is no task group, or its model has been destroyed", handle);
    model_refuse_capture(&call, fault);
    return acl_end(&call);
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream)
{
    Call call = us_call_begin("aclmdlRICaptureTaskUpdateEnd");
    Stream *found = require_stream(&call, stream);
    CaptureFault fault = call.status == 0 ? us_group_update_end(found) : CAPTURE_OK;
    us_require(&call, fault != CAPTURE_FAULT_UNJOINED, "stream", "tasks", ACL_ERROR_RT_MODEL_UPDATE_FAILED,
               "the operators since aclmdlRICaptureTaskUpdateBegin are not those of the group, in its order");
    model_refuse_capture(&call, fault);
    return acl_end(&call);
}

/* ---- conditions ---- */

enum { HANDLE_CONDITION = 0x2c };

/* Ends with its model. */
typedef struct Condition {
    void *number; /* device memory */
    _Atomic bool used;
} Condition;

static void require_conditions(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s record no work", ascend_product()->series);
}

aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue, aclmdlRICondHandleFlag flag,
                                  aclmdlRICondHandle *handle)
{
    Call call = us_call_begin("aclmdlRICondHandleCreate");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    us_require(&call, (unsigned)flag <= ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, "flag", "range",
               ACL_ERROR_RT_PARAM_INVALID, "flag is %d; it must be 0 or 1", (int)flag);
    require_conditions(&call);
    Graph *graph = model_require(&call, modelRI);
    us_require(&call, graph->from_capture, "modelRI", "kind", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "model %u is built by hand", (unsigned)graph->id);
    us_require(&call, us_graph_is_recording(graph), "modelRI", "idle", ACL_ERROR_INVALID_PARAM,
               "model %u is not being captured", (unsigned)graph->id);
    Condition *condition = call.status == 0 ? calloc(1, sizeof *condition) : NULL;
    bool made = condition != NULL &&
                us_memory_allocate(graph->device, MEMORY_DEVICE, (BlockSize){64, 64, 64}, call.function,
                                   &condition->number) == MEMORY_OK;
    if (made && flag == ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT) {
        made = us_graph_initialise(graph, condition->number, defaultLaunchValue);
    }
    void *value = made ? us_handle_create(HANDLE_CONDITION, condition) : NULL;
    made = value != NULL && us_graph_owns(graph, condition->number, value, HANDLE_CONDITION);
    us_require(&call, made, "handle", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION, "no memory for a condition");
    if (call.status == 0) {
        *handle = value;
    } else {
        us_handle_end(value, HANDLE_CONDITION);
        free(condition);
    }
    return acl_end(&call);
}

static Condition *require_condition(Call *call, aclmdlRICondHandle handle)
{
    us_require(call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    Condition *condition = call->status == 0 ? us_handle_object(handle, HANDLE_CONDITION) : NULL;
    us_require(call, condition != NULL, "handle", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "handle %p is no condition, or its model has been destroyed", handle);
    return condition;
}

aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t **ptr)
{
    Call call = us_call_begin("aclmdlRICondHandleGetCondPtr");
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    require_conditions(&call);
    Condition *condition = require_condition(&call, handle);
    if (call.status == 0) {
        *ptr = condition->number;
    }
    return acl_end(&call);
}

static void require_size(Call *call, const aclmdlRICondTaskParams *params)
{
    static const uint32_t largest[] = {2, 1, UINT16_MAX};
    us_require(call, (unsigned)params->type <= ACL_MODEL_RI_COND_TYPE_SWITCH, "type", "range",
               ACL_ERROR_RT_PARAM_INVALID, "params.type is %d; it must be 0, 1 or 2", (int)params->type);
    us_require(call, params->size >= 1 && params->size <= largest[params->type], "size", "range",
               ACL_ERROR_RT_PARAM_INVALID, "params.size is %u; with type %d it must be 1 to %u", (unsigned)params->size,
               (int)params->type, (unsigned)largest[params->type]);
    us_require(call, params->modelRIArray != NULL, "modelRIArray", "null", ACL_ERROR_INVALID_PARAM,
               "params.modelRIArray is NULL; it gets the sub-models");
}

/* Empty sub-models; false: no memory. */
static bool create_children(Call *call, Device *device, Graph **children, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        children[i] = us_graph_create(device, true);
        if (children[i] != NULL) {
            model_equip(call, children[i]);
        }
        us_require(call, children[i] != NULL, "params", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
                   "no host memory for a sub-model");
    }
    return call->status == 0;
}

aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream, uint32_t flags)
{
    static const Choosing choosings[] = {CHOOSE_IF, CHOOSE_WHILE, CHOOSE_SWITCH};
    Call call = us_call_begin("aclmdlRIAddCondTask");
    us_require(&call, flags == 0, "flags", "range", ACL_ERROR_RT_PARAM_INVALID, "flags is %u; it must be 0",
               (unsigned)flags);
    require_size(&call, &params);
    Stream *found = require_stream(&call, stream);
    acl_require_no_group(&call, found);
    Condition *condition = require_condition(&call, params.handle);
    us_require(&call, us_capture_status(found, NULL) != CAPTURE_NONE, "stream", "idle",
               ACL_ERROR_RT_STREAM_NOT_CAPTURED,
               "the stream's work is not being captured");
    bool taken = call.status == 0 && !atomic_exchange(&condition->used, true);
    us_require(&call, taken, "handle", "used", ACL_ERROR_INVALID_PARAM, "the condition belongs to another task already");
    Graph **children = call.status == 0 ? calloc(params.size, sizeof *children) : NULL;
    us_require(&call, children != NULL, "params", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory for sub-models");
    if (children != NULL && create_children(&call, found->context->device, children, params.size)) {
        model_refuse_capture(&call, us_graph_add_choice(found, choosings[params.type], condition->number, children,
                                                        params.size));
    }
    for (uint32_t i = 0; children != NULL && i < params.size; i++) {
        if (call.status == 0) {
            params.modelRIArray[i] = children[i]->handle;
        } else if (children[i] != NULL) {
            us_graph_destroy(children[i]);
        }
    }
    free(children);
    if (taken && call.status != 0) {
        atomic_store(&condition->used, false);
    }
    return acl_end(&call);
}
