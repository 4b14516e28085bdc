/* Graphs: streams whose work is captured, and its replay. The sheet has the names only (maca-runtime 7.5);
 * signatures, values and rules are CUDA's. */
#include "device/graph.h"

#include "maca/common/handle_kinds.h"
#include "maca/mcruntime/runtime.h"

static void require_captured(Call *call, CaptureFault fault)
{
    static const Refusal refusals[] = {
        [CAPTURE_FAULT_BUSY] = {"stream", "capturing", mcErrorIllegalState,
            "the stream's work is being captured already"},
        [CAPTURE_FAULT_ENDED] = {"stream", "alive", mcErrorInvalidResourceHandle, "another thread destroys the stream"},
        [CAPTURE_FAULT_IDLE] = {"stream", "idle", mcErrorIllegalState, "the stream's work is not being captured"},
        [CAPTURE_FAULT_ORIGIN] = {"stream", "origin", mcErrorStreamCaptureUnmatched,
            "the capture began on another stream; this one joined it through an event"},
        [CAPTURE_FAULT_THREAD] = {"thread", "other", mcErrorStreamCaptureWrongThread,
            "the capture began in another thread, and its mode is not relaxed"},
        [CAPTURE_FAULT_UNJOINED] = {"stream", "unjoined", mcErrorStreamCaptureUnjoined,
            "work of a stream that joined the capture is not waited for by the stream it began on"},
        [CAPTURE_FAULT_INVALID] = {"capture", "invalidated", mcErrorStreamCaptureInvalidated,
            "an earlier call that is not allowed during a capture has made it invalid"},
        [CAPTURE_FAULT_MERGE] = {"event", "merge", mcErrorStreamCaptureMerge,
            "event and stream belong to different captures"},
        [CAPTURE_FAULT_UNRECORDED] = {"event", "isolation", mcErrorStreamCaptureIsolation,
            "the event was recorded outside the capture of the stream"},
        [CAPTURE_FAULT_NO_MEMORY] = {"stream", "memory", mcErrorMemoryAllocation, "no host memory to record the work"},
    };
    if (fault != CAPTURE_OK) {
        us_refuse_as(call, &refusals[fault]);
    }
}

/* False: nothing is recorded. */
static bool is_captured(Call *call, CaptureFault fault)
{
    if (fault != CAPTURE_FAULT_IDLE) {
        require_captured(call, fault);
    }
    return fault != CAPTURE_FAULT_IDLE;
}

bool runtime_capture_record(Call *call, Event *event, Stream *stream)
{
    return is_captured(call, us_capture_record(event, stream));
}

bool runtime_capture_wait(Call *call, Stream *stream, Event *event)
{
    return is_captured(call, us_capture_wait(stream, event));
}

static void require_mode(Call *call, int mode)
{
    us_require(call, mode >= mcStreamCaptureModeGlobal && mode <= mcStreamCaptureModeRelaxed, "mode", "range",
               mcErrorInvalidValue, "mode is %d; modes are 0 to 2", mode);
}

/* The default stream of a device cannot be captured. */
static Stream *require_own_stream(Call *call, mcStream_t handle)
{
    us_require(call, handle != NULL && handle != mcStreamLegacy, "stream", "default", mcErrorStreamCaptureUnsupported,
               "%p is a default stream, which cannot be captured", (void *)handle);
    return require_stream(call, handle);
}

mcError_t mcStreamBeginCapture(mcStream_t s, mcStreamCaptureMode mode)
{
    Call call = us_call_begin("mcStreamBeginCapture");
    require_mode(&call, (int)mode);
    Stream *stream = require_own_stream(&call, s);
    if (call.status == 0) {
        require_captured(&call, us_capture_begin(stream, NULL, (CaptureMode)mode));
    }
    return runtime_end(&call);
}

mcError_t mcStreamEndCapture(mcStream_t s, mcGraph_t *graph)
{
    Call call = us_call_begin("mcStreamEndCapture");
    us_require(&call, graph != NULL, "graph", "null", mcErrorInvalidValue, "graph must not be NULL");
    Stream *stream = require_own_stream(&call, s);
    Graph *made = NULL;
    const CaptureFault fault = call.status == 0 ? us_capture_end(stream, &made) : CAPTURE_OK;
    require_captured(&call, fault);
    if (call.status == 0) {
        *graph = made->handle;
    } else if (fault == CAPTURE_FAULT_INVALID || fault == CAPTURE_FAULT_UNJOINED) {
        *graph = NULL; /* the capture is over all the same */
    }
    return runtime_end(&call);
}

mcError_t mcStreamIsCapturing(mcStream_t s, mcStreamCaptureStatus *status)
{
    static const mcStreamCaptureStatus statuses[] = {
        [CAPTURE_NONE] = mcStreamCaptureStatusNone,
        [CAPTURE_ACTIVE] = mcStreamCaptureStatusActive,
        [CAPTURE_INVALIDATED] = mcStreamCaptureStatusInvalidated,
    };
    Call call = us_call_begin("mcStreamIsCapturing");
    us_require(&call, status != NULL, "status", "null", mcErrorInvalidValue, "status must not be NULL");
    Stream *stream = require_stream(&call, s);
    if (call.status == 0) {
        *status = statuses[us_capture_status(stream, NULL)];
    }
    return runtime_end(&call);
}

mcError_t mcThreadExchangeStreamCaptureMode(mcStreamCaptureMode *mode)
{
    Call call = us_call_begin("mcThreadExchangeStreamCaptureMode");
    us_require(&call, mode != NULL, "mode", "null", mcErrorInvalidValue, "mode must not be NULL");
    if (call.status == 0) {
        require_mode(&call, (int)*mode);
    }
    if (call.status == 0) {
        *mode = (mcStreamCaptureMode)us_capture_exchange_mode((CaptureMode)*mode);
    }
    return runtime_end(&call);
}

/* ---- graphs ---- */

static Graph *require_graph(Call *call, const char *parameter, mcGraph_t handle)
{
    require_outside_host_function(call);
    Graph *graph = call->status == 0 ? us_graph_of_handle(handle) : NULL;
    bool alive = graph != NULL && graph->device->platform == maca_platform() && !us_graph_is_recording(graph);
    us_require(call, alive, parameter, "alive", mcErrorInvalidValue, "%p is not a graph that is alive", (void *)handle);
    return alive ? graph : NULL;
}

mcError_t mcGraphDestroy(mcGraph_t graph)
{
    Call call = us_call_begin("mcGraphDestroy");
    Graph *found = require_graph(&call, "graph", graph);
    if (call.status == 0) {
        us_graph_destroy(found);
    }
    return runtime_end(&call);
}

mcError_t mcGraphClone(mcGraph_t *clone, mcGraph_t graph)
{
    Call call = us_call_begin("mcGraphClone");
    us_require(&call, clone != NULL, "clone", "null", mcErrorInvalidValue, "clone must not be NULL");
    Graph *found = require_graph(&call, "graph", graph);
    Graph *made = call.status == 0 ? us_graph_copy(found) : NULL;
    us_require(&call, made != NULL, "clone", "memory", mcErrorMemoryAllocation, "no memory for a graph");
    if (call.status == 0) {
        *clone = made->handle;
    }
    return runtime_end(&call);
}

mcError_t mcGraphGetNodes(mcGraph_t graph, mcGraphNode_t *nodes, size_t *numNodes)
{
    Call call = us_call_begin("mcGraphGetNodes");
    us_require(&call, numNodes != NULL, "numNodes", "null", mcErrorInvalidValue, "numNodes must not be NULL");
    Graph *found = require_graph(&call, "graph", graph);
    size_t count = 0;
    for (uint32_t b = 0; call.status == 0 && b < us_graph_branches(found); b++) {
        StepInfo info;
        for (size_t s = 0; us_graph_step(found, b, s, &info); s++) {
            if (info.kind == STEP_TASK) { /* records and waits of events are edges */
                if (nodes != NULL && count < *numNodes) {
                    nodes[count] = us_graph_step_handle(found, b, s);
                }
                count++;
            }
        }
    }
    for (size_t i = count; call.status == 0 && nodes != NULL && i < *numNodes; i++) {
        nodes[i] = NULL;
    }
    if (call.status == 0) {
        *numNodes = nodes != NULL && count > *numNodes ? *numNodes : count;
    }
    return runtime_end(&call);
}

/* ---- what can be launched: a copy of its own, so that the graph may end or change ---- */

mcError_t mcGraphInstantiate(mcGraphExec_t *graphExec, mcGraph_t graph, mcGraphNode_t *errorNode, char *logBuffer,
                             size_t bufferSize)
{
    (void)errorNode; /* nothing that a capture makes is refused here */
    Call call = us_call_begin("mcGraphInstantiate");
    us_require(&call, graphExec != NULL, "graphExec", "null", mcErrorInvalidValue, "graphExec must not be NULL");
    Graph *found = require_graph(&call, "graph", graph);
    Graph *made = call.status == 0 ? us_graph_copy(found) : NULL;
    void *handle = made != NULL ? us_handle_create(HANDLE_GRAPH_EXEC, made) : NULL;
    us_require(&call, handle != NULL, "graphExec", "memory", mcErrorMemoryAllocation, "no memory for a graph");
    if (call.status == 0) {
        *graphExec = handle;
        if (logBuffer != NULL && bufferSize > 0) {
            logBuffer[0] = '\0';
        }
    } else if (made != NULL) {
        us_graph_destroy(made);
    }
    return runtime_end(&call);
}

static Graph *require_exec(Call *call, mcGraphExec_t handle)
{
    require_outside_host_function(call);
    Graph *graph = call->status == 0 ? us_handle_object(handle, HANDLE_GRAPH_EXEC) : NULL;
    us_require(call, graph != NULL, "graphExec", "alive", mcErrorInvalidValue,
               "%p is not an executable graph that is alive", (void *)handle);
    return graph;
}

mcError_t mcGraphExecDestroy(mcGraphExec_t graphExec)
{
    Call call = us_call_begin("mcGraphExecDestroy");
    require_exec(&call, graphExec);
    Graph *graph = call.status == 0 ? us_handle_end(graphExec, HANDLE_GRAPH_EXEC) : NULL;
    if (graph != NULL) {
        us_graph_destroy(graph);
    }
    return runtime_end(&call);
}

mcError_t mcGraphLaunch(mcGraphExec_t graphExec, mcStream_t s)
{
    Call call = us_call_begin("mcGraphLaunch");
    Graph *graph = require_exec(&call, graphExec);
    Stream *stream = require_stream(&call, s);
    if (call.status == 0) {
        bool queued = maca_stream_enter(stream) && us_graph_launch(graph, stream, call.function, false);
        maca_stream_leave(stream);
        require_queued(&call, queued);
    }
    return runtime_end(&call);
}

mcError_t mcGraphExecUpdate(mcGraphExec_t graphExec, mcGraph_t graph, mcGraphNode_t *errorNode,
                            mcGraphExecUpdateResult *result)
{
    Call call = us_call_begin("mcGraphExecUpdate");
    us_require(&call, result != NULL, "result", "null", mcErrorInvalidValue, "result must not be NULL");
    Graph *exec = require_exec(&call, graphExec);
    Graph *found = require_graph(&call, "graph", graph);
    if (call.status != 0) {
        return runtime_end(&call);
    }
    static const mcGraphExecUpdateResult results[] = {
        [GRAPH_UPDATED] = mcGraphExecUpdateSuccess,
        [GRAPH_UNLIKE] = mcGraphExecUpdateErrorTopologyChanged,
        [GRAPH_NO_MEMORY] = mcGraphExecUpdateError,
    };
    const GraphUpdate update = us_graph_update(exec, found);
    *result = results[update];
    if (errorNode != NULL) {
        *errorNode = NULL;
    }
    us_require(&call, update != GRAPH_NO_MEMORY, "graph", "memory", mcErrorMemoryAllocation, "no memory for a graph");
    us_require(&call, update != GRAPH_UNLIKE, "graph", "topology", mcErrorGraphExecUpdateFailure,
               "the graph has other nodes, or in another order, than the one that was instantiated");
    return runtime_end(&call);
}
