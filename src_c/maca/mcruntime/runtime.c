#include "maca/mcruntime/runtime.h"

#include "device/graph.h"

mcError_t runtime_end(Call *call)
{
    return runtime_answer(call, (mcError_t)us_call_end(call));
}

mcError_t runtime_answer(Call *call, mcError_t error)
{
    mcError_t result = call->status != 0 ? (mcError_t)call->status : error;
    if (result != mcSuccess) {
        maca_set_last_error(result);
    }
    return result;
}

/* A host function may not call the runtime (CUDA's rule, see maca-runtime 5.3): waiting there could never end. */
void require_outside_host_function(Call *call)
{
    us_require(call, !maca_in_host_function(), "call", "host-function", mcErrorNotPermitted,
               "called from a function that mcLaunchHostFunc queued, which must not use the runtime");
}

void require_working(Call *call, Device *device)
{
    if (call->status != 0) {
        return;
    }
    Explanation why = {{0}};
    DeviceFault fault = us_device_fault(device, &why);
    us_require(call, fault != DEVICE_FAULT_NO_MEMORY, "device", "exhausted", mcErrorMemoryAllocation,
               "device %d: %s", (int)device->ordinal, why.text);
    us_require(call, fault == DEVICE_FAULT_NONE, "device", "fault", maca_error_of_fault(fault),
               "device %d, until mcDeviceReset: %s", (int)device->ordinal, why.text);
}

Platform *require_platform(Call *call)
{
    Platform *platform = maca_platform();
    us_require(call, platform != NULL, "device", "start", mcErrorInitializationError,
               "this process was forked after its parent had used devices, or memory ran out");
    return platform;
}

Device *runtime_started_device(Call *call)
{
    Platform *platform = require_platform(call);
    Device *device = maca_device();
    mcError_t error = platform != NULL && platform->device_count == 0 ? mcErrorNoDevice : mcErrorInitializationError;
    us_require(call, device != NULL, "device", "start", error, "device %d does not exist or cannot be started",
               maca_device_ordinal());
    return device;
}

Device *require_device(Call *call)
{
    require_outside_host_function(call);
    if (call->status != 0) {
        return NULL;
    }
    Device *device = runtime_started_device(call);
    if (device != NULL) {
        require_working(call, device);
    }
    return device;
}

static bool is_special(mcStream_t handle)
{
    return handle == NULL || handle == mcStreamLegacy || handle == mcStreamPerThread;
}

Stream *require_stream(Call *call, mcStream_t handle)
{
    require_outside_host_function(call);
    if (call->status == 0 && is_special(handle)) {
        runtime_started_device(call);
    }
    if (call->status != 0) {
        return NULL;
    }
    Stream *stream = maca_stream(handle);
    us_require(call, stream != NULL || !is_special(handle), "stream", "memory", mcErrorMemoryAllocation,
               "no memory for the default stream");
    us_require(call, stream != NULL, "stream", "alive", mcErrorInvalidResourceHandle,
               "%p is not a stream that is alive", (void *)handle);
    if (stream != NULL) {
        require_working(call, stream->context->device);
        us_require(call, maca_stream_takes_work(stream), "stream", "implicit", mcErrorStreamCaptureImplicit,
                   "the default stream waits for blocking streams, and one of them is being captured");
    }
    return stream;
}

void require_running_stream(Call *call, const Stream *stream)
{
    if (call->status == 0 && us_capture_status(stream, NULL) != CAPTURE_NONE) {
        us_capture_invalidate(stream);
        us_refuse(call, "stream", "capture", mcErrorStreamCaptureUnsupported,
                  "the stream is being captured: its work does not run now, or cannot be part of a graph");
    }
}

void require_running_event(Call *call, const Event *event)
{
    if (call->status == 0 && us_event_is_captured(event)) {
        us_event_invalidate_capture(event);
        us_refuse(call, "event", "captured", mcErrorCapturedEvent,
                  "the event was recorded in a capture: its record does not run now");
    }
}

void require_safe(Call *call, const Device *device)
{
    us_require(call, !us_capture_forbids_unsafe(device->platform, true), "thread", "capture",
               mcErrorStreamCaptureUnsupported,
               "a capture does not allow this thread to change memory; mcThreadExchangeStreamCaptureMode lifts that");
}

/* An event outlives its context when the device is reset, so it remembers the context by handle. */
void runtime_bind_event(Event *event, const Context *context)
{
    event->vendor_state[0] = (int64_t)(intptr_t)context->handle;
}

Context *runtime_context_of_event(const Event *event)
{
    Context *context = us_context_of_handle((void *)(intptr_t)event->vendor_state[0]);
    return context != NULL && context->device->platform == maca_platform() ? context : NULL;
}

static void end_event(const void *handle, void *platform)
{
    Event *event = us_event_of_handle(handle);
    if (event != NULL && event->device->platform == platform && event->vendor_state[0] != 0 &&
        runtime_context_of_event(event) == NULL) {
        us_event_destroy(event);
    }
}

void runtime_end_events(void)
{
    us_handle_each(HANDLE_EVENT, end_event, maca_platform());
}

Event *require_event(Call *call, mcEvent_t handle)
{
    require_outside_host_function(call);
    if (call->status != 0) {
        return NULL;
    }
    Event *event = us_event_of_handle(handle);
    Context *context = event == NULL ? NULL : runtime_context_of_event(event);
    us_require(call, context != NULL, "event", "alive", mcErrorInvalidResourceHandle,
               "%p is not an event that is alive", (void *)handle);
    if (context != NULL) {
        require_working(call, context->device);
    }
    return context == NULL ? NULL : event;
}

void require_queued(Call *call, bool queued)
{
    us_require(call, queued, "stream", "memory", mcErrorMemoryAllocation, "no host memory to queue the work");
}

void runtime_synchronize(Call *call, Stream *stream)
{
    if (call->status == 0 && us_stream_synchronize(stream, -1) == WAIT_FAULT) {
        require_working(call, stream->context->device);
    }
}

void runtime_synchronize_device(Call *call, Device *device)
{
    if (call->status == 0 && us_device_synchronize(device, -1) == WAIT_FAULT) {
        require_working(call, device);
    }
}
