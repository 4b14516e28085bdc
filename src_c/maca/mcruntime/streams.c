/* Streams (maca-runtime 4, 5.1 to 5.4, 5.13). */
#include "device/graph.h"
#include "maca/mcruntime/runtime.h"

#include <stdlib.h>

/* Lower numbers are more urgent. Priorities are kept and have no effect: the host's scheduler decides. */
enum { PRIORITY_LEAST = 0, PRIORITY_GREATEST = -1 };

static mcError_t create(Call call, mcStream_t *s, unsigned int flags, int priority)
{
    us_require(&call, s != NULL, "s", "null", mcErrorInvalidValue, "s must not be NULL");
    us_require(&call, flags == mcStreamDefault || flags == mcStreamNonBlocking, "flags", "range", mcErrorInvalidValue,
               "flags is %u, neither mcStreamDefault nor mcStreamNonBlocking", flags);
    Device *device = require_device(&call);
    if (call.status != 0) {
        return runtime_end(&call);
    }
    Context *context = us_context_primary(device);
    uint32_t internal = flags == mcStreamNonBlocking ? STREAM_NON_BLOCKING : 0;
    Stream *stream = context == NULL ? NULL : us_stream_create(context, internal);
    us_require(&call, stream != NULL, "s", "memory", mcErrorMemoryAllocation, "no memory for a stream");
    if (stream != NULL) {
        stream->vendor_flags = flags;
        stream->priority = priority < PRIORITY_GREATEST  ? PRIORITY_GREATEST
                           : priority > PRIORITY_LEAST ? PRIORITY_LEAST
                                                       : priority;
        maca_stream_link(stream);
        *s = stream->handle;
    }
    return runtime_end(&call);
}

mcError_t mcStreamCreate(mcStream_t *s)
{
    return create(us_call_begin("mcStreamCreate"), s, mcStreamDefault, PRIORITY_LEAST);
}

mcError_t mcStreamCreateWithFlags(mcStream_t *s, unsigned int flags)
{
    return create(us_call_begin("mcStreamCreateWithFlags"), s, flags, PRIORITY_LEAST);
}

mcError_t mcStreamCreateWithPriority(mcStream_t *s, unsigned int flags, int priority)
{
    return create(us_call_begin("mcStreamCreateWithPriority"), s, flags, priority);
}

mcError_t mcDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    Call call = us_call_begin("mcDeviceGetStreamPriorityRange");
    require_device(&call);
    if (call.status == 0 && least != NULL) {
        *least = PRIORITY_LEAST;
    }
    if (call.status == 0 && greatest != NULL) {
        *greatest = PRIORITY_GREATEST;
    }
    return runtime_end(&call);
}

mcError_t mcStreamDestroy(mcStream_t s)
{
    Call call = us_call_begin("mcStreamDestroy");
    bool is_own = s != NULL && s != mcStreamLegacy && s != mcStreamPerThread;
    us_require(&call, is_own, "stream", "default", mcErrorInvalidResourceHandle,
               "%p is a default stream, which cannot be destroyed", (void *)s);
    Stream *stream = require_stream(&call, s);
    if (call.status == 0) {
        maca_stream_destroy(stream);
    }
    return runtime_end(&call);
}

mcError_t mcStreamSynchronize(mcStream_t s)
{
    Call call = us_call_begin("mcStreamSynchronize");
    Stream *stream = require_stream(&call, s);
    require_running_stream(&call, stream);
    if (call.status == 0) {
        require_queued(&call, maca_stream_join(stream));
    }
    runtime_synchronize(&call, stream);
    return runtime_end(&call);
}

mcError_t mcStreamQuery(mcStream_t s)
{
    Call call = us_call_begin("mcStreamQuery");
    Stream *stream = require_stream(&call, s);
    require_running_stream(&call, stream);
    if (call.status != 0) {
        return runtime_end(&call);
    }
    if (!maca_stream_idle(stream)) {
        return runtime_answer(&call, mcErrorNotReady);
    }
    require_working(&call, stream->context->device);
    return runtime_end(&call);
}

mcError_t mcStreamWaitEvent(mcStream_t s, mcEvent_t e, unsigned int flags)
{
    Call call = us_call_begin("mcStreamWaitEvent");
    us_require(&call, flags == mcEventWaitDefault, "flags", "range", mcErrorInvalidValue, "flags is %u, not 0", flags);
    Stream *stream = require_stream(&call, s);
    Event *event = require_event(&call, e);
    if (call.status == 0 && !runtime_capture_wait(&call, stream, event)) {
        bool queued = maca_stream_enter(stream) && us_event_wait(stream, event, false, -1);
        maca_stream_leave(stream);
        require_queued(&call, queued);
    }
    return runtime_end(&call);
}

/* ---- host functions ---------------------------------------------------------------------------------------------- */

typedef struct HostFunction {
    void (*function)(void *);
    void *user_data;
} HostFunction;

static DeviceFault run_host_function(void *argument, Explanation *why)
{
    (void)why;
    const HostFunction *host = argument;
    maca_set_in_host_function(true);
    host->function(host->user_data);
    maca_set_in_host_function(false);
    return DEVICE_FAULT_NONE;
}

mcError_t mcLaunchHostFunc(mcStream_t s, void (*fn)(void *), void *userData)
{
    Call call = us_call_begin("mcLaunchHostFunc");
    us_require(&call, fn != NULL, "fn", "null", mcErrorInvalidValue, "fn must not be NULL");
    Stream *stream = require_stream(&call, s);
    HostFunction *host = call.status != 0 ? NULL : malloc(sizeof *host);
    require_queued(&call, host != NULL);
    if (host != NULL) {
        *host = (HostFunction){.function = fn, .user_data = userData};
        if (!maca_submit(stream, call.function, run_host_function, free, host)) {
            free(host);
            require_queued(&call, false);
        }
    }
    return runtime_end(&call);
}
