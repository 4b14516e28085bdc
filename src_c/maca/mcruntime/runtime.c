#include "maca/mcruntime/runtime.h"

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
static void require_outside_host_function(Call *call)
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

Device *require_device(Call *call)
{
    require_outside_host_function(call);
    if (call->status != 0) {
        return NULL;
    }
    Device *device = maca_device();
    us_require(call, device != NULL, "device", "start", mcErrorInitializationError, "device %d cannot be started",
               maca_device_ordinal());
    require_working(call, device);
    return device;
}

Stream *require_stream(Call *call, mcStream_t handle)
{
    require_outside_host_function(call);
    if (call->status != 0) {
        return NULL;
    }
    Stream *stream = maca_stream(handle);
    us_require(call, stream != NULL, "stream", "alive", mcErrorInvalidResourceHandle,
               "%p is not a stream that is alive", (void *)handle);
    if (stream != NULL) {
        require_working(call, stream->context->device);
    }
    return stream;
}

Event *require_event(Call *call, mcEvent_t handle)
{
    require_outside_host_function(call);
    if (call->status != 0) {
        return NULL;
    }
    Event *event = us_event_of_handle(handle);
    bool alive = event != NULL && event->context->device->platform == maca_platform();
    us_require(call, alive, "event", "alive", mcErrorInvalidResourceHandle, "%p is not an event that is alive",
               (void *)handle);
    if (alive) {
        require_working(call, event->context->device);
    }
    return alive ? event : NULL;
}

void require_queued(Call *call, bool queued)
{
    us_require(call, queued, "stream", "memory", mcErrorMemoryAllocation, "no host memory to queue the work");
}

void runtime_synchronize(Call *call, Stream *stream)
{
    if (call->status != 0) {
        return;
    }
    /* Waiting is an action in the stream: the default stream first waits for the blocking streams. */
    require_queued(call, maca_stream_enter(stream));
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
