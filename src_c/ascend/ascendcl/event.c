/* Events (cann-runtime 9, doc 07). */
#include "ascend/ascendcl/model.h"

#include <stdatomic.h>

enum { EVENT_LIMIT = 65536 };

static const uint32_t KNOWN_FLAGS = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
                                    ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;

static uint32_t events_left(void)
{
    uint64_t alive = us_handle_count(HANDLE_EVENT);
    return alive < EVENT_LIMIT ? (uint32_t)(EVENT_LIMIT - alive) : 0;
}

static void create_event(Call *call, aclrtEvent *event, uint32_t flags, int form)
{
    us_require(call, event != NULL, "event", "null", ACL_ERROR_INVALID_PARAM, "event is NULL");
    us_require(call, flags != 0 && (flags & ~KNOWN_FLAGS) == 0, "flag", "range", ACL_ERROR_RT_PARAM_INVALID,
               "flag is 0x%x; it must be one or several of 0x%x", (unsigned)flags, (unsigned)KNOWN_FLAGS);
    Context *context = acl_require_context(call, "context", "none");
    bool shared = form == EVENT_EX && flags == ACL_EVENT_IPC;
    Event *created = NULL;
    if (context != NULL && events_left() > 0) {
        created = shared ? us_event_create_shared(context) : us_event_create(context);
    }
    us_require(call, created != NULL, "event", "resources", ACL_ERROR_RT_NO_EVENT_RESOURCE,
               "no further event: there are %d, or the host has no memory", (int)(EVENT_LIMIT - events_left()));
    if (call->status == 0) {
        created->vendor_flags = flags;
        created->vendor_state[EVENT_FORM] = form;
        created->vendor_state[EVENT_OWNER] = ASCEND_EVENT;
        *event = created->handle;
    }
}

aclError aclrtCreateEvent(aclrtEvent *event)
{
    Call call = us_call_begin("aclrtCreateEvent");
    create_event(&call, event, ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE, EVENT_PLAIN);
    return acl_end(&call);
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
{
    Call call = us_call_begin("aclrtCreateEventWithFlag");
    create_event(&call, event, flag, EVENT_WITH_FLAG);
    return acl_end(&call);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
{
    Call call = us_call_begin("aclrtCreateEventExWithFlag");
    create_event(&call, event, flag, EVENT_EX);
    return acl_end(&call);
}

static Event *require_event(Call *call, aclrtEvent handle)
{
    us_require(call, handle != NULL, "event", "null", ACL_ERROR_INVALID_PARAM, "event is NULL");
    return acl_require_event(call, "event", "dead", handle);
}

static void require_not_ex(Call *call, const Event *event)
{
    us_require(call, event->vendor_state[EVENT_FORM] != EVENT_EX, "event", "ex", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "event %d was made by aclrtCreateEventExWithFlag, which does not allow this", (int)event->id);
}

aclError aclrtDestroyEvent(aclrtEvent event)
{
    Call call = us_call_begin("aclrtDestroyEvent");
    Event *found = require_event(&call, event);
    const bool destroyed = call.status == 0 && (found->vendor_state[EVENT_FORM] == EVENT_EX ? us_event_retire(found)
                                                                                            : us_event_destroy(found));
    us_require(&call, destroyed, "event", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "event %p has just been destroyed by another thread", event);
    return acl_end(&call);
}

/* PyTorch's adapter has a queue and a thread for each device. When work of two devices depends on each other, one of them
 * records and destroys an event, and the other may come to wait for it a moment later. A card takes that. */
static Event *require_event_to_wait_for(Call *call, aclrtEvent handle)
{
    Event *retired = call->status == 0 && us_event_of_handle(handle) == NULL ? us_event_retired(handle) : NULL;
    return retired != NULL ? retired : require_event(call, handle);
}

/* ---- as work of a stream ---- */

static void require_queued(Call *call, bool queued)
{
    us_require(call, queued, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the work");
}

/* Events that the world outside a model sees. */
static bool is_external(const Event *event)
{
    return (event->vendor_flags & ACL_EVENT_EXTERNAL) != 0;
}

static bool is_shared(const Event *event)
{
    return (event->vendor_flags & ACL_EVENT_IPC) != 0;
}

/* Models know nothing of other processes. */
static void require_capturable(Call *call, const Event *event, const Stream *stream)
{
    us_require(call, !is_shared(event) || !us_stream_is_recorded(stream), "event", "ipc", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "event %d is one of several processes; stream %d is being captured",
               (int)event->id, (int)stream->id);
}

static void record_event(Call *call, Event *event, Stream *stream)
{
    require_capturable(call, event, stream);
    if (call->status != 0) {
        return;
    }
    const CaptureFault fault = is_shared(event) ? CAPTURE_FAULT_IDLE
                               : is_external(event) || us_graph_has_bound(NULL, stream)
                                   ? us_capture_external_record(event, stream)
                                   : us_capture_record(event, stream);
    if (fault == CAPTURE_FAULT_IDLE) {
        require_queued(call, us_event_record(event, stream));
    } else {
        model_refuse_capture(call, fault);
    }
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    Call call = us_call_begin("aclrtRecordEvent");
    Event *found = require_event(&call, event);
    Stream *target = acl_require_task_stream(&call, stream);
    record_event(&call, found, target);
    return acl_end(&call);
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
    Call call = us_call_begin("aclrtResetEvent");
    Event *found = require_event(&call, event);
    if (call.status == 0) {
        require_not_ex(&call, found);
    }
    Stream *target = acl_require_task_stream(&call, stream);
    const CaptureFault fault = call.status == 0 ? us_capture_external_reset(found, target) : CAPTURE_OK;
    if (fault == CAPTURE_FAULT_IDLE) {
        require_queued(&call, us_event_reset(found, target));
    } else {
        model_refuse_capture(&call, fault);
    }
    return acl_end(&call);
}

static int64_t wait_timeout_us(void)
{
    Runtime *runtime = acl_runtime();
    uint32_t seconds = runtime != NULL ? atomic_load(&runtime->wait_timeout_s) : 0;
    return seconds > 0 ? (int64_t)seconds * 1000000 : -1;
}

/* timeout_s 0: what aclrtSetOpWaitTimeout set. */
static void wait_for_event(Call *call, aclrtStream stream, Event *event, int32_t timeout_s)
{
    us_require(call, (event->vendor_flags & (ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC)) != 0, "event", "sync",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "event %d was made without ACL_EVENT_SYNC (its flags are 0x%x)", (int)event->id,
               (unsigned)event->vendor_flags);
    Stream *target = acl_require_task_stream(call, stream);
    us_require(call, event->vendor_state[EVENT_FORM] != EVENT_PLAIN || us_event_recorded(event) ||
               us_event_is_captured(event),
               "event", "unrecorded", ACL_ERROR_RT_PARAM_INVALID, "event %d has never been recorded", (int)event->id);
    bool blocks = event != NULL && event->vendor_state[EVENT_FORM] == EVENT_WITH_FLAG;
    int64_t timeout_us = timeout_s > 0 ? (int64_t)timeout_s * 1000000 : wait_timeout_us();
    require_capturable(call, event, target);
    if (call->status != 0) {
        return;
    }
    const CaptureFault fault = is_shared(event) ? CAPTURE_FAULT_IDLE
                               : is_external(event) || us_graph_has_bound(NULL, target)
                                   ? us_capture_external_wait(target, event, blocks)
                                   : us_capture_wait(target, event);
    if (fault == CAPTURE_FAULT_IDLE) {
        require_queued(call, us_event_wait(target, event, blocks, timeout_us));
    } else {
        model_refuse_capture(call, fault);
    }
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    Call call = us_call_begin("aclrtStreamWaitEvent");
    Event *found = require_event_to_wait_for(&call, event);
    wait_for_event(&call, stream, found, 0);
    return acl_end(&call);
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
    Call call = us_call_begin("aclrtStreamWaitEventWithTimeout");
    /* Not 100000 as everywhere else (cann-runtime 9). */
    us_require(&call, event != NULL, "event", "null", ACL_ERROR_RT_PARAM_INVALID, "event is NULL");
    us_require(&call, timeout >= 0, "timeout", "range", ACL_ERROR_RT_PARAM_INVALID,
               "timeout is %d seconds; it must not be negative", (int)timeout);
    Event *found = acl_require_event(&call, "event", "dead", event);
    wait_for_event(&call, stream, found, timeout);
    return acl_end(&call);
}

/* ---- events that the world outside a captured model sees (cann-runtime-3 13.7) ---- */

/* In the recording of the stream, no other step is about the event. */
static bool is_fresh(const Stream *stream, const Event *event)
{
    Graph *graph = NULL;
    us_capture_status(stream, &graph);
    for (uint32_t b = 0; graph != NULL && b < us_graph_branches(graph); b++) {
        StepInfo info;
        for (size_t s = 0; us_graph_step(graph, b, s, &info); s++) {
            if (info.event == event->handle) {
                return false;
            }
        }
    }
    return true;
}

static void require_external(Call *call, const Event *event, const Stream *stream)
{
    us_require(call, event->vendor_state[EVENT_FORM] == EVENT_EX && (event->vendor_flags & ACL_EVENT_SYNC) != 0,
               "event",
               "kind", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "event %d was not made by aclrtCreateEventExWithFlag with ACL_EVENT_SYNC", (int)event->id);
    Graph *graph = NULL;
    us_require(call, us_capture_status(stream, &graph) != CAPTURE_NONE, "stream", "idle",
               ACL_ERROR_RT_STREAM_NOT_CAPTURED, "stream %d is not being captured", (int)stream->id);
    us_require(call, us_graph_parent(graph) == NULL, "stream", "child", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "a sub-model sees no events of the world outside");
    us_require(call, is_fresh(stream, event), "event", "repeated", ACL_ERROR_RT_PARAM_INVALID,
               "event %d is recorded or waited for in the model already", (int)event->id);
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag)
{
    Call call = us_call_begin("aclrtRecordEventWithFlag");
    us_require(&call, flag <= ACL_EVENT_RECORD_EXTERNAL, "flag", "range", ACL_ERROR_RT_PARAM_INVALID,
               "flag is %u; it must be 0 or 1", (unsigned)flag);
    model_require_product(&call);
    Event *found = require_event(&call, event);
    Stream *target = acl_require_task_stream(&call, stream);
    if (flag == ACL_EVENT_RECORD_DEFAULT) {
        record_event(&call, found, target);
        return acl_end(&call);
    }
    if (call.status == 0) {
        require_external(&call, found, target);
    }
    if (call.status == 0) {
        model_refuse_capture(&call, us_capture_external_record(found, target));
    }
    return acl_end(&call);
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout, uint32_t flag)
{
    Call call = us_call_begin("aclrtStreamWaitEventWithFlag");
    us_require(&call, flag <= ACL_EVENT_WAIT_EXTERNAL, "flag", "range", ACL_ERROR_RT_PARAM_INVALID,
               "flag is %u; it must be 0 or 1", (unsigned)flag);
    us_require(&call, flag == 0 ? timeout <= INT32_MAX : timeout == 0, "timeout", "range", ACL_ERROR_RT_PARAM_INVALID,
               "timeout is %u seconds; with flag 1 it must be 0", (unsigned)timeout);
    model_require_product(&call);
    Event *found = require_event(&call, event);
    if (flag == ACL_EVENT_WAIT_DEFAULT) {
        wait_for_event(&call, stream, found, (int32_t)timeout);
        return acl_end(&call);
    }
    Stream *target = acl_require_task_stream(&call, stream);
    if (call.status == 0) {
        require_external(&call, found, target);
    }
    if (call.status == 0) {
        model_refuse_capture(&call, us_capture_external_wait(target, found, false));
    }
    return acl_end(&call);
}

/* ---- from the host ---- */

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
    Call call = us_call_begin("aclrtQueryEvent");
    Event *found = require_event(&call, event);
    us_require(&call, status != NULL, "status", "null", ACL_ERROR_INVALID_PARAM, "status is NULL");
    if (call.status == 0) {
        require_not_ex(&call, found);
    }
    acl_require_running_event(&call, "event", found);
    if (call.status == 0) {
        *status = us_event_complete(found) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    }
    return acl_end(&call);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
    Call call = us_call_begin("aclrtQueryEventStatus");
    Event *found = require_event(&call, event);
    us_require(&call, status != NULL, "status", "null", ACL_ERROR_INVALID_PARAM, "status is NULL");
    acl_require_running_event(&call, "event", found);
    if (call.status == 0) {
        bool trivially = found->vendor_state[EVENT_FORM] == EVENT_EX && !us_event_recorded(found);
        bool complete = trivially || us_event_complete(found);
        *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    }
    return acl_end(&call);
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status)
{
    Call call = us_call_begin("aclrtQueryEventWaitStatus");
    Event *found = require_event(&call, event);
    us_require(&call, status != NULL, "status", "null", ACL_ERROR_INVALID_PARAM, "status is NULL");
    if (call.status == 0) {
        require_not_ex(&call, found);
    }
    acl_require_running_event(&call, "event", found);
    if (call.status == 0) {
        *status = us_event_waited(found) ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    }
    return acl_end(&call);
}

static void synchronize_event(Call *call, Event *event, int64_t timeout_us)
{
    acl_require_running_event(call, "event", event);
    if (call->status == 0) {
        acl_require_no_abort(call, event->device);
    }
    if (call->status != 0) {
        return;
    }
    const uint32_t past_aborts = acl_past_aborts(event->device);
    WaitStatus status = us_event_synchronize(event, timeout_us);
    us_require(call, status != WAIT_TIMEOUT, "timeout", "expired", ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
               "event %d was not reached within %lld ms", (int)event->id, (long long)(timeout_us / 1000));
    if (status == WAIT_FAULT) {
        Explanation why = {""};
        DeviceFault fault = us_event_fault(event, &why);
        acl_refuse_fault(call, "event", fault, &why);
    }
    if (call->status == 0) {
        acl_require_no_abort_since(call, event->device, past_aborts);
    }
}

aclError aclrtSynchronizeEvent(aclrtEvent event)
{
    Call call = us_call_begin("aclrtSynchronizeEvent");
    synchronize_event(&call, require_event(&call, event), -1);
    return acl_end(&call);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
{
    Call call = us_call_begin("aclrtSynchronizeEventWithTimeout");
    Event *found = require_event(&call, event);
    synchronize_event(&call, found, acl_require_timeout(&call, "timeout", "range", timeout));
    return acl_end(&call);
}

/* ---- time ---- */

/* Nanoseconds of an event's latest record. */
static uint64_t require_time(Call *call, const char *parameter, Event *event)
{
    uint64_t nanoseconds = 0;
    us_require(call, (event->vendor_flags & ACL_EVENT_TIME_LINE) != 0, parameter, "time-line",
               ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "%s was made without ACL_EVENT_TIME_LINE (its flags are 0x%x)",
               parameter, (unsigned)event->vendor_flags);
    us_require(call, us_event_time(event, &nanoseconds), parameter, "unfinished", ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
               "the latest record of %s has not run yet", parameter);
    return nanoseconds;
}

static Event *require_timed_event(Call *call, const char *parameter, aclrtEvent handle)
{
    us_require(call, handle != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    Event *event = acl_require_event(call, parameter, "dead", handle);
    us_require(call, (event->vendor_flags & (ACL_EVENT_EXTERNAL | ACL_EVENT_IPC)) == 0, parameter, "external",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s is an event for other processes (its flags are 0x%x)", parameter,
               (unsigned)event->vendor_flags);
    acl_require_running_event(call, parameter, event);
    us_require(call, us_event_recorded(event), parameter, "unrecorded", ACL_ERROR_RT_INTERNAL_ERROR,
               "%s has never been recorded", parameter);
    return event;
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
    Call call = us_call_begin("aclrtEventElapsedTime");
    us_require(&call, ms != NULL, "ms", "null", ACL_ERROR_INVALID_PARAM, "ms is NULL; it gets the elapsed time");
    Event *start = require_timed_event(&call, "startEvent", startEvent);
    Event *end = require_timed_event(&call, "endEvent", endEvent);
    uint64_t start_time = call.status == 0 ? require_time(&call, "startEvent", start) : 0;
    uint64_t end_time = call.status == 0 ? require_time(&call, "endEvent", end) : 0;
    if (call.status == 0) {
        *ms = (float)((double)(int64_t)(end_time - start_time) / 1e6);
    }
    return acl_end(&call);
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
{
    Call call = us_call_begin("aclrtEventGetTimestamp");
    Event *found = require_event(&call, event);
    us_require(&call, timestamp != NULL, "timestamp", "null", ACL_ERROR_INVALID_PARAM, "timestamp is NULL");
    acl_require_running_event(&call, "event", found);
    uint64_t nanoseconds = call.status == 0 ? require_time(&call, "event", found) : 0;
    if (call.status == 0) {
        *timestamp = nanoseconds / 1000;
    }
    return acl_end(&call);
}

/* ---- numbers ---- */

aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId)
{
    Call call = us_call_begin("aclrtGetEventId");
    Event *found = require_event(&call, event);
    us_require(&call, eventId != NULL, "eventId", "null", ACL_ERROR_INVALID_PARAM, "eventId is NULL");
    us_require(&call, (found->vendor_flags & ACL_EVENT_IPC) == 0, "event", "ipc", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "event %d is one of several processes, and has no number of its own", (int)found->id);
    if (call.status == 0) {
        *eventId = (uint32_t)found->id;
    }
    return acl_end(&call);
}

aclError aclrtGetEventAvailNum(uint32_t *eventCount)
{
    Call call = us_call_begin("aclrtGetEventAvailNum");
    us_require(&call, eventCount != NULL, "eventCount", "null", ACL_ERROR_INVALID_PARAM, "eventCount is NULL");
    if (call.status == 0) {
        *eventCount = events_left();
    }
    return acl_end(&call);
}

/* ---- limits ---- */

static void set_limit(Call *call, bool of_waits, uint32_t value)
{
    acl_require_platform(call);
    Runtime *runtime = call->status == 0 ? acl_runtime() : NULL;
    us_require(call, runtime != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the runtime");
    if (call->status == 0) {
        atomic_store(of_waits ? &runtime->wait_timeout_s : &runtime->execute_timeout_ms, value);
    }
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout)
{
    Call call = us_call_begin("aclrtSetOpWaitTimeout");
    set_limit(&call, true, timeout);
    return acl_end(&call);
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout)
{
    Call call = us_call_begin("aclrtSetOpExecuteTimeOut");
    set_limit(&call, false, timeout > UINT32_MAX / 1000 ? UINT32_MAX : timeout * 1000);
    return acl_end(&call);
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout)
{
    Call call = us_call_begin("aclrtSetOpExecuteTimeOutWithMs");
    set_limit(&call, false, timeout);
    return acl_end(&call);
}

/* The device counts time limits of operators in steps of 2^32 nanoseconds. */
static const uint64_t LIMIT_STEP_US = 4294967;
enum { LIMIT_STEPS = 254 };

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout)
{
    Call call = us_call_begin("aclrtSetOpExecuteTimeOutV2");
    us_require(&call, actualTimeout != NULL, "actualTimeout", "null", ACL_ERROR_INVALID_PARAM, "actualTimeout is NULL");
    uint64_t steps = timeout / LIMIT_STEP_US + (timeout % LIMIT_STEP_US != 0);
    uint64_t actual = (timeout == 0 || steps > LIMIT_STEPS ? LIMIT_STEPS : steps) * LIMIT_STEP_US;
    set_limit(&call, false, (uint32_t)(actual / 1000));
    if (call.status == 0) {
        *actualTimeout = actual;
    }
    return acl_end(&call);
}

aclError aclrtGetOpTimeOutInterval(uint64_t *interval)
{
    Call call = us_call_begin("aclrtGetOpTimeOutInterval");
    us_require(&call, interval != NULL, "interval", "null", ACL_ERROR_INVALID_PARAM, "interval is NULL");
    if (call.status == 0) {
        *interval = LIMIT_STEP_US;
    }
    return acl_end(&call);
}

aclError aclrtGetOpExecuteTimeout(uint32_t *const timeoutMs)
{
    Call call = us_call_begin("aclrtGetOpExecuteTimeout");
    us_require(&call, timeoutMs != NULL, "timeoutMs", "null", ACL_ERROR_INVALID_PARAM, "timeoutMs is NULL");
    acl_require_platform(&call);
    Runtime *runtime = call.status == 0 ? acl_runtime() : NULL;
    us_require(&call, runtime != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the runtime");
    if (call.status == 0) {
        *timeoutMs = atomic_load(&runtime->execute_timeout_ms);
    }
    return acl_end(&call);
}
