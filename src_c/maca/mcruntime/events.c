/* Events (maca-runtime 4, 5.2, 5.4, 5.11, 5.13). */
#include "device/graph.h"
#include "maca/mcruntime/runtime.h"

enum { EVENT_FLAGS = mcEventBlockingSync | mcEventDisableTiming | mcEventInterprocess };

static mcError_t create(Call call, mcEvent_t *e, unsigned int flags)
{
    us_require(&call, e != NULL, "e", "null", mcErrorInvalidValue, "e must not be NULL");
    us_require(&call, (flags & ~(unsigned int)EVENT_FLAGS) == 0, "flags", "range", mcErrorInvalidValue,
               "flags is 0x%x; 0x%x are known", flags, (unsigned int)EVENT_FLAGS);
    us_require(&call, (flags & mcEventInterprocess) == 0 || (flags & mcEventDisableTiming) != 0, "flags",
               "interprocess", mcErrorInvalidValue, "mcEventInterprocess needs mcEventDisableTiming; flags is 0x%x",
               flags);
    Device *device = require_device(&call);
    if (call.status != 0) {
        return runtime_end(&call);
    }
    Context *context = us_context_primary(device);
    const bool shared = (flags & mcEventInterprocess) != 0;
    Event *event = context == NULL ? NULL : shared ? us_event_create_shared(context) : us_event_create(context);
    us_require(&call, event != NULL, "e", "memory", mcErrorMemoryAllocation, "no memory for an event");
    if (event != NULL) {
        event->vendor_flags = flags;
        runtime_bind_event(event, context);
        *e = event->handle;
    }
    return runtime_end(&call);
}

mcError_t mcEventCreate(mcEvent_t *e)
{
    return create(us_call_begin("mcEventCreate"), e, mcEventDefault);
}

mcError_t mcEventCreateWithFlags(mcEvent_t *e, unsigned int flags)
{
    return create(us_call_begin("mcEventCreateWithFlags"), e, flags);
}

static int ordinal_of(const Event *event)
{
    const Context *context = runtime_context_of_event(event);
    return context == NULL ? -1 : context->device->ordinal;
}

static mcError_t record(Call call, mcEvent_t e, mcStream_t s)
{
    Event *event = require_event(&call, e);
    Stream *stream = require_stream(&call, s);
    us_require(&call, ordinal_of(event) == stream->context->device->ordinal, "event", "device",
               mcErrorInvalidResourceHandle, "the event is of device %d, the stream of device %d", ordinal_of(event),
               (int)stream->context->device->ordinal);
    if (call.status == 0 && !runtime_capture_record(&call, event, stream)) {
        bool queued = maca_stream_enter(stream) && us_event_record(event, stream);
        maca_stream_leave(stream);
        require_queued(&call, queued);
    }
    return runtime_end(&call);
}

mcError_t mcEventRecord(mcEvent_t e, mcStream_t s)
{
    return record(us_call_begin("mcEventRecord"), e, s);
}

mcError_t mcEventRecordWithFlags(mcEvent_t e, mcStream_t s, unsigned int flags)
{
    Call call = us_call_begin("mcEventRecordWithFlags");
    us_require(&call, flags == mcEventRecordDefault, "flags", "range", mcErrorInvalidValue, "flags is %u, not 0",
               flags);
    return record(call, e, s);
}

mcError_t mcEventSynchronize(mcEvent_t e)
{
    Call call = us_call_begin("mcEventSynchronize");
    Event *event = require_event(&call, e);
    require_running_event(&call, event);
    if (call.status == 0 && us_event_synchronize(event, -1) == WAIT_FAULT) {
        require_event(&call, e);
    }
    return runtime_end(&call);
}

static bool is_pending(Event *event)
{
    return us_event_recorded(event) && !us_event_complete(event);
}

mcError_t mcEventQuery(mcEvent_t e)
{
    Call call = us_call_begin("mcEventQuery");
    Event *event = require_event(&call, e);
    require_running_event(&call, event);
    if (call.status == 0 && is_pending(event)) {
        return runtime_answer(&call, mcErrorNotReady);
    }
    return runtime_end(&call);
}

static void require_timed(Call *call, const Event *event, const char *name)
{
    us_require(call, (event->vendor_flags & mcEventDisableTiming) == 0, "event", "timing",
               mcErrorInvalidResourceHandle, "%s was created with mcEventDisableTiming", name);
    us_require(call, us_event_recorded(event), "event", "recorded", mcErrorInvalidResourceHandle,
               "%s has never been recorded", name);
}

mcError_t mcEventElapsedTime(float *ms, mcEvent_t start, mcEvent_t stop)
{
    Call call = us_call_begin("mcEventElapsedTime");
    us_require(&call, ms != NULL, "ms", "null", mcErrorInvalidValue, "ms must not be NULL");
    Event *first = require_event(&call, start);
    Event *last = require_event(&call, stop);
    require_timed(&call, first, "start");
    require_timed(&call, last, "stop");
    us_require(&call, ordinal_of(first) == ordinal_of(last), "event", "device", mcErrorInvalidResourceHandle,
               "start is of device %d, stop of device %d", ordinal_of(first), ordinal_of(last));
    if (call.status != 0) {
        return runtime_end(&call);
    }
    if (is_pending(first) || is_pending(last)) {
        return runtime_answer(&call, mcErrorNotReady);
    }
    uint64_t begin = 0;
    uint64_t end = 0;
    if (!us_event_time(first, &begin) || !us_event_time(last, &end)) {
        return runtime_answer(&call, mcErrorNotReady);
    }
    *ms = (float)(int64_t)(end - begin) * 1e-6F;
    return runtime_end(&call);
}

mcError_t mcEventDestroy(mcEvent_t e)
{
    Call call = us_call_begin("mcEventDestroy");
    Event *event = require_event(&call, e);
    if (call.status == 0) {
        us_event_destroy(event);
    }
    return runtime_end(&call);
}
