/* Models as wholes: built by hand, run, named, ended (cann-runtime-3 13.3, 13.4). */
#include "ascend/ascendcl/model.h"

#include <stdlib.h>
#include <string.h>

Model *model_of(const Graph *graph)
{
    return graph->vendor;
}

void model_equip(Call *call, Graph *graph)
{
    if (call->status == 0 && graph->vendor == NULL) {
        graph->vendor = calloc(1, sizeof(Model));
        us_require(call, graph->vendor != NULL, "modelRI", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a model");
    }
}

void model_require_product(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s record no work", ascend_product()->series);
    acl_require_context(call, "context", "none");
}

Graph *model_require(Call *call, aclmdlRI handle)
{
    us_require(call, handle != NULL, "modelRI", "null", ACL_ERROR_INVALID_PARAM, "modelRI is NULL");
    Platform *platform = acl_require_platform(call);
    Graph *graph = platform != NULL ? us_graph_of_handle(handle) : NULL;
    bool alive = graph != NULL && graph->device->platform == platform && graph->vendor != NULL;
    us_require(call, alive, "modelRI", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "modelRI %p has been destroyed, or never existed", handle);
    return alive ? graph : NULL;
}

/* ---- building ---- */

aclError aclmdlRIBuildBegin(aclmdlRI *modelRI, uint32_t flag)
{
    Call call = us_call_begin("aclmdlRIBuildBegin");
    us_require(&call, modelRI != NULL, "modelRI", "null", ACL_ERROR_INVALID_PARAM, "modelRI is NULL");
    us_require(&call, flag == 0, "flag", "range", ACL_ERROR_RT_PARAM_INVALID, "flag is %u; it must be 0",
               (unsigned)flag);
    Context *context = acl_require_context(&call, "context", "none");
    Graph *graph = context != NULL ? us_graph_create(context->device, false) : NULL;
    us_require(&call, graph != NULL, "modelRI", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a model");
    if (graph != NULL) {
        model_equip(&call, graph);
    }
    if (call.status == 0) {
        *modelRI = graph->handle;
    } else if (graph != NULL) {
        us_graph_destroy(graph);
    }
    return acl_end(&call);
}

static Graph *require_open(Call *call, aclmdlRI handle)
{
    Graph *graph = model_require(call, handle);
    us_require(call, !graph->from_capture && !model_of(graph)->built, "modelRI", "closed", ACL_ERROR_RT_PARAM_INVALID,
               "model %u takes no more work: it was captured, or aclmdlRIBuildEnd was called", (unsigned)graph->id);
    return graph;
}

aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag)
{
    Call call = us_call_begin("aclmdlRIBindStream");
    us_require(&call, flag == ACL_MODEL_STREAM_FLAG_HEAD || flag == ACL_MODEL_STREAM_FLAG_DEFAULT, "flag", "range",
               ACL_ERROR_RT_PARAM_INVALID, "flag is 0x%x; it must be 0 or 0x%x", (unsigned)flag,
               (unsigned)ACL_MODEL_STREAM_FLAG_DEFAULT);
    Graph *graph = require_open(&call, modelRI);
    Stream *found = model_require_stream(&call, stream);
    acl_require_own_stream(&call, "stream", "context", found, acl_require_context(&call, "context", "none"));
    us_require(&call, (found->vendor_flags & ACL_STREAM_PERSISTENT) != 0, "stream", "persistent",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "stream %d was made without ACL_STREAM_PERSISTENT", (int)found->id);
    us_require(&call, !us_graph_has_bound(NULL, found), "stream", "bound", ACL_ERROR_RT_STREAM_MODEL,
               "stream %d is bound to a model already", (int)found->id);
    if (call.status == 0) {
        model_refuse_capture(&call, us_graph_bind(graph, found, flag == ACL_MODEL_STREAM_FLAG_HEAD));
    }
    return acl_end(&call);
}

static void require_bound(Call *call, const Graph *graph, const Stream *stream)
{
    us_require(call, us_graph_has_bound(graph, stream), "stream", "unbound", ACL_ERROR_RT_STREAM_MODEL,
               "stream %d is not bound to model %u", (int)stream->id, (unsigned)graph->id);
}

aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream)
{
    Call call = us_call_begin("aclmdlRIEndTask");
    Graph *graph = require_open(&call, modelRI);
    Stream *found = model_require_stream(&call, stream);
    if (call.status == 0) {
        require_bound(&call, graph, found);
    }
    if (call.status == 0) {
        model_refuse_capture(&call, us_graph_add_end(graph, found));
    }
    return acl_end(&call);
}

aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void *reserve)
{
    Call call = us_call_begin("aclmdlRIBuildEnd");
    us_require(&call, reserve == NULL, "reserve", "range", ACL_ERROR_RT_PARAM_INVALID, "reserve is %p; it must be NULL",
               reserve);
    Graph *graph = require_open(&call, modelRI);
    if (call.status == 0) {
        us_graph_close(graph);
        model_of(graph)->built = true;
    }
    return acl_end(&call);
}

aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream)
{
    Call call = us_call_begin("aclmdlRIUnbindStream");
    Graph *graph = model_require(&call, modelRI);
    Stream *found = model_require_stream(&call, stream);
    us_require(&call, !us_graph_is_running(graph), "modelRI", "running", ACL_ERROR_RT_MODEL_RUNNING,
               "model %u is running", (unsigned)graph->id);
    if (call.status == 0) {
        require_bound(&call, graph, found);
    }
    if (call.status == 0) {
        model_refuse_capture(&call, us_graph_unbind(graph, found));
    }
    return acl_end(&call);
}

/* ---- running ---- */

static void require_ready(Call *call, const Graph *graph)
{
    us_require(call, !graph->from_capture || !us_graph_is_recording(graph), "modelRI", "captured",
               ACL_ERROR_RT_MODEL_CAPTURED, "model %u is still being captured", (unsigned)graph->id);
    us_require(call, graph->from_capture || model_of(graph)->built, "modelRI", "unfinished",
               ACL_ERROR_RT_MODEL_EXECUTE, "model %u is not ready: call aclmdlRIBuildEnd first", (unsigned)graph->id);
    us_require(call, us_graph_steps(graph) > 0, "modelRI", "empty", ACL_ERROR_RT_PARAM_INVALID,
               "model %u has no tasks", (unsigned)graph->id);
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream)
{
    Call call = us_call_begin("aclmdlRIExecuteAsync");
    model_require_product(&call);
    Graph *graph = model_require(&call, modelRI);
    Stream *found = acl_require_work_stream(&call, stream);
    if (call.status == 0) {
        require_ready(&call, graph);
    }
    us_require(&call, !us_stream_is_recorded(found), "stream", "capturing", ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
               "stream %d is captured or bound to a model: a model cannot be a task of another one", (int)found->id);
    us_require(&call, us_graph_launch(graph, found, "aclmdlRIExecuteAsync", true), "stream", "resources",
               ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the run");
    return acl_end(&call);
}

static void execute(Call *call, Graph *graph, const Context *context, int64_t timeout_us)
{
    const uint32_t past_aborts = acl_past_aborts(context->device);
    Stream *stream = us_stream_create((Context *)context, 0);
    bool queued = stream != NULL && us_graph_launch(graph, stream, call->function, true);
    us_require(call, queued, "modelRI", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to run the model");
    WaitStatus status = queued ? us_stream_synchronize(stream, timeout_us) : WAIT_DONE;
    us_require(call, status != WAIT_TIMEOUT, "timeout", "expired", ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
               "model %u still runs after %lld ms", (unsigned)graph->id, (long long)(timeout_us / 1000));
    if (status == WAIT_FAULT) {
        Explanation why = {""};
        DeviceFault fault = us_stream_fault(stream, &why);
        acl_refuse_fault(call, "modelRI", fault, &why);
    }
    if (stream != NULL) {
        us_stream_destroy(stream, status != WAIT_TIMEOUT);
    }
    if (call->status == 0) {
        acl_require_no_abort_since(call, context->device, past_aborts);
    }
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout)
{
    Call call = us_call_begin("aclmdlRIExecute");
    int64_t timeout_us = acl_require_timeout(&call, "timeout", "range", timeout);
    Context *context = acl_require_context(&call, "context", "none");
    Graph *graph = model_require(&call, modelRI);
    us_require(&call, !graph->from_capture, "modelRI", "kind", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "model %u was captured: aclmdlRIExecuteAsync runs it", (unsigned)graph->id);
    if (call.status == 0) {
        require_ready(&call, graph);
    }
    if (call.status == 0) {
        acl_require_no_abort(&call, context->device);
    }
    if (call.status == 0) {
        execute(&call, graph, context, timeout_us);
    }
    return acl_end(&call);
}

aclError aclmdlRIAbort(aclmdlRI modelRI)
{
    Call call = us_call_begin("aclmdlRIAbort");
    Graph *graph = model_require(&call, modelRI);
    us_require(&call, !graph->from_capture, "modelRI", "kind", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "model %u was captured: only built models can be stopped", (unsigned)graph->id);
    if (call.status == 0) {
        us_graph_abort(graph);
    }
    return acl_end(&call);
}

void model_clean_stream(Call *call, Stream *stream)
{
    Graph *graph = us_graph_of_bound(stream);
    us_require(call, graph == NULL || !us_graph_is_running(graph), "modelRI", "running", ACL_ERROR_RT_MODEL_RUNNING,
               "the model of stream %d is running", (int)stream->id);
    if (call->status == 0 && graph == NULL) {
        us_stream_abort(stream);
    } else if (call->status == 0) {
        us_graph_clear_stream(stream);
        model_of(graph)->built = false;
    }
}

/* ---- the end ---- */

/* The callbacks and changes, taken away from the model. */
static size_t take_callbacks(Graph *graph, ModelCallback *callbacks)
{
    Model *model = model_of(graph);
    us_platform_lock(graph->device->platform);
    size_t count = model->callback_count;
    memcpy(callbacks, model->callbacks, count * sizeof *callbacks);
    model->callback_count = 0;
    ModelEdit *edits = model->edits;
    model->edits = NULL;
    model->edit_count = 0;
    us_platform_unlock(graph->device->platform);
    free(edits);
    return count;
}

aclError aclmdlRIDestroy(aclmdlRI modelRI)
{
    Call call = us_call_begin("aclmdlRIDestroy");
    Graph *graph = model_require(&call, modelRI);
    us_require(&call, us_graph_parent(graph) == NULL, "modelRI", "child", ACL_ERROR_RT_PARAM_INVALID,
               "model %u belongs to a condition of another model and ends with that", (unsigned)graph->id);
    us_require(&call, !graph->from_capture || !us_graph_is_recording(graph), "modelRI", "captured",
               ACL_ERROR_RT_MODEL_CAPTURED, "model %u is still being captured", (unsigned)graph->id);
    us_require(&call, !us_graph_is_running(graph), "modelRI", "running", ACL_ERROR_RT_MODEL_RUNNING,
               "model %u is running, or waits in a stream to run", (unsigned)graph->id);
    if (call.status == 0) {
        ModelCallback callbacks[MODEL_CALLBACK_LIMIT];
        size_t count = take_callbacks(graph, callbacks);
        us_require(&call, us_graph_destroy(graph), "modelRI", "dead", ACL_ERROR_RT_INVALID_HANDLE,
                   "modelRI %p has just been destroyed by another thread", modelRI);
        for (size_t i = 0; i < count; i++) {
            callbacks[i].function(callbacks[i].user_data);
        }
    }
    return acl_end(&call);
}

aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func, void *userData)
{
    Call call = us_call_begin("aclmdlRIDestroyRegisterCallback");
    us_require(&call, func != NULL, "func", "null", ACL_ERROR_INVALID_PARAM, "func is NULL");
    Graph *graph = model_require(&call, modelRI);
    if (call.status != 0) {
        return acl_end(&call);
    }
    Model *model = model_of(graph);
    us_platform_lock(graph->device->platform);
    bool room = model->callback_count < MODEL_CALLBACK_LIMIT;
    if (room) {
        model->callbacks[model->callback_count++] = (ModelCallback){func, userData};
    }
    us_platform_unlock(graph->device->platform);
    us_require(&call, room, "func", "limit", ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "model %u has %d callbacks already",
               (unsigned)graph->id, (int)MODEL_CALLBACK_LIMIT);
    return acl_end(&call);
}

aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func)
{
    Call call = us_call_begin("aclmdlRIDestroyUnregisterCallback");
    us_require(&call, func != NULL, "func", "null", ACL_ERROR_INVALID_PARAM, "func is NULL");
    Graph *graph = model_require(&call, modelRI);
    if (call.status != 0) {
        return acl_end(&call);
    }
    Model *model = model_of(graph);
    us_platform_lock(graph->device->platform);
    size_t kept = 0;
    for (size_t i = 0; i < model->callback_count; i++) {
        if (model->callbacks[i].function != func) {
            model->callbacks[kept++] = model->callbacks[i];
        }
    }
    bool found = kept < model->callback_count;
    model->callback_count = kept;
    us_platform_unlock(graph->device->platform);
    us_require(&call, found, "func", "unregistered", ACL_ERROR_RT_PARAM_INVALID,
               "func is not registered with model %u", (unsigned)graph->id);
    return acl_end(&call);
}

/* ---- identity ---- */

aclError aclmdlRISetName(aclmdlRI modelRI, const char *name)
{
    Call call = us_call_begin("aclmdlRISetName");
    us_require(&call, name != NULL, "name", "null", ACL_ERROR_INVALID_PARAM, "name is NULL");
    Graph *graph = model_require(&call, modelRI);
    us_require(&call, strlen(name) < MODEL_NAME_LIMIT, "name", "length", ACL_ERROR_RT_PARAM_INVALID,
               "name has %zu bytes; %d are allowed", strlen(name), MODEL_NAME_LIMIT - 1);
    if (call.status == 0) {
        us_platform_lock(graph->device->platform);
        strcpy(model_of(graph)->name, name);
        us_platform_unlock(graph->device->platform);
    }
    return acl_end(&call);
}

aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char *name)
{
    Call call = us_call_begin("aclmdlRIGetName");
    us_require(&call, name != NULL, "name", "null", ACL_ERROR_INVALID_PARAM, "name is NULL");
    us_require(&call, maxLen > 0, "maxLen", "zero", ACL_ERROR_INVALID_PARAM,
               "maxLen is 0; the end of the text needs a byte");
    Graph *graph = model_require(&call, modelRI);
    if (call.status == 0) {
        us_platform_lock(graph->device->platform);
        size_t length = strnlen(model_of(graph)->name, maxLen - 1);
        memcpy(name, model_of(graph)->name, length);
        name[length] = '\0';
        us_platform_unlock(graph->device->platform);
    }
    return acl_end(&call);
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t *modelRIId)
{
    Call call = us_call_begin("aclmdlRIGetId");
    us_require(&call, modelRIId != NULL, "modelRIId", "null", ACL_ERROR_INVALID_PARAM, "modelRIId is NULL");
    model_require_product(&call);
    Graph *graph = model_require(&call, modelRI);
    if (call.status == 0) {
        *modelRIId = graph->id;
    }
    return acl_end(&call);
}
