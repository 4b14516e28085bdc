#include "ascend/ascendcl/runtime.h"

#include "ascend/ascendcl/callback_list.h"
#include "device/graph.h"

#include <stdatomic.h>
#include <stdlib.h>

static Runtime *create_runtime(Platform *platform)
{
    Runtime *runtime = calloc(1, sizeof *runtime);
    CallbackLists *callbacks = calloc(1, sizeof *callbacks);
    if (runtime == NULL || callbacks == NULL || pthread_key_create(&runtime->chosen_device, NULL) != 0 ||
        pthread_key_create(&runtime->stream_of_limits, NULL) != 0) {
        free(runtime);
        free(callbacks);
        return NULL;
    }
    runtime->platform = platform;
    runtime->callbacks = callbacks;
    pthread_mutex_init(&callbacks->lock, NULL);
    atomic_init(&runtime->default_device, -1);
    pthread_mutex_init(&runtime->report_lock, NULL);
    pthread_mutex_init(&runtime->snapshot_lock, NULL);
    return runtime;
}

Runtime *acl_runtime(void)
{
    Platform *platform = ascend_platform();
    if (platform == NULL) {
        return NULL;
    }
    int64_t *slot = &platform->options[RUNTIME_OPTION];
    Runtime *runtime = (Runtime *)(intptr_t)__atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (runtime != NULL) {
        return runtime;
    }
    us_platform_lock(platform);
    runtime = (Runtime *)(intptr_t)*slot;
    if (runtime == NULL) {
        runtime = create_runtime(platform);
        __atomic_store_n(slot, (int64_t)(intptr_t)runtime, __ATOMIC_RELEASE);
    }
    us_platform_unlock(platform);
    return runtime;
}

Runtime *acl_require_runtime(Call *call)
{
    Runtime *runtime = acl_require_platform(call) != NULL ? acl_runtime() : NULL;
    us_require(call, runtime != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the runtime");
    return runtime;
}

/* The answers of acl_refuse_fault among the 507xxx; nothing else gives them. */
static bool is_of_queued_work(aclError status)
{
    return status == ACL_ERROR_RT_AICORE_EXCEPTION || status == ACL_ERROR_RT_DEVICE_MEM_ERROR;
}

aclError acl_end(Call *call)
{
    aclError status = us_call_end(call);
    Platform *platform = is_of_queued_work(status) ? ascend_platform() : NULL;
    if (platform != NULL) {
        *us_thread_status(platform) = status;
    }
    return status;
}

Platform *acl_require_platform(Call *call)
{
    if (call->status != 0) {
        return NULL;
    }
    Platform *platform = ascend_platform();
    us_require(call, platform != NULL, "process", "forked", ACL_ERROR_RT_DRV_INTERNAL_ERROR,
               "there are no devices: this process was forked after its parent had used them, or memory ran out");
    return platform;
}

Device *acl_require_device(Call *call, const char *parameter, const char *rule, int64_t ordinal)
{
    Platform *platform = acl_require_platform(call);
    if (platform == NULL) {
        return NULL;
    }
    int32_t count = platform->device_count;
    if (ordinal < 0 || ordinal >= count) {
        us_refuse(call, parameter, rule, ACL_ERROR_RT_INVALID_DEVICEID,
                  "device %lld does not exist: there are %d devices, numbered from 0", (long long)ordinal, (int)count);
        return NULL;
    }
    Device *device = us_device(platform, (int32_t)ordinal);
    us_require(call, device != NULL, parameter, "start", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "device %lld cannot start: no address space for its memory is left", (long long)ordinal);
    return device;
}

/* ---- contexts of the thread ---- */

void acl_remember_chosen_device(int32_t ordinal)
{
    Runtime *runtime = acl_runtime();
    if (runtime != NULL) {
        pthread_setspecific(runtime->chosen_device, (void *)(intptr_t)(ordinal + 1));
    }
}

void acl_return_to_chosen_device(void)
{
    Runtime *runtime = acl_runtime();
    if (runtime == NULL) {
        return;
    }
    int32_t ordinal = (int32_t)(intptr_t)pthread_getspecific(runtime->chosen_device) - 1;
    Device *device = ordinal >= 0 ? us_device(runtime->platform, ordinal) : NULL;
    if (device == NULL) {
        return;
    }
    us_platform_lock(runtime->platform);
    bool set = device->references > 0;
    us_platform_unlock(runtime->platform);
    if (set) {
        us_context_set_current(runtime->platform, us_context_primary(device));
    }
}

Context *acl_current_context(void)
{
    Runtime *runtime = acl_runtime();
    if (runtime == NULL) {
        return NULL;
    }
    Context *context = us_context_current(runtime->platform);
    int32_t ordinal = context == NULL ? atomic_load(&runtime->default_device) : -1;
    Device *device = ordinal >= 0 ? us_device(runtime->platform, ordinal) : NULL;
    if (device != NULL) {
        context = us_context_primary(device);
        us_context_set_current(runtime->platform, context);
        if (context != NULL) {
            acl_tell_stream_begins(context->default_stream);
        }
    }
    return context;
}

Context *acl_require_context(Call *call, const char *parameter, const char *rule)
{
    if (acl_require_platform(call) == NULL) {
        return NULL;
    }
    Context *context = acl_current_context();
    us_require(call, context != NULL, parameter, rule, ACL_ERROR_RT_CONTEXT_NULL,
               "this thread has no context: call aclrtSetDevice, aclrtCreateContext or aclrtSetCurrentContext first");
    return context;
}

/* Other vendors' libraries in the process have handles of the same kinds. */
static bool is_ours(const Context *context)
{
    return context->device->platform->id == ASCEND_PLATFORM;
}

Context *acl_require_live_context(Call *call, const char *parameter, const char *rule, int32_t status,
                                  aclrtContext handle)
{
    if (acl_require_platform(call) == NULL) {
        return NULL;
    }
    Context *context = us_context_of_handle(handle);
    us_require(call, context != NULL && is_ours(context), parameter, rule, status,
               "context %p is not alive: it was destroyed, or never came from this library", handle);
    return context;
}

/* ---- streams ---- */

Stream *acl_require_stream(Call *call, const char *parameter, const char *rule, aclrtStream handle)
{
    if (call->status != 0) {
        return NULL;
    }
    if (handle == NULL) { /* another thread may have destroyed the context since this call asked for it */
        Context *context = acl_require_context(call, "context", "none");
        return context != NULL ? context->default_stream : NULL;
    }
    Stream *stream = us_stream_of_handle(handle);
    us_require(call, stream != NULL && is_ours(stream->context), parameter, rule, ACL_ERROR_RT_INVALID_HANDLE,
               "%s %p is not a live stream: it was destroyed, or never came from this library", parameter, handle);
    return stream;
}

void acl_require_own_stream(Call *call, const char *parameter, const char *rule, const Stream *stream,
                            const Context *context)
{
    us_require(call, stream->context == context, parameter, rule, ACL_ERROR_RT_STREAM_CONTEXT,
               "stream %d belongs to another context (on device %d) than the current one (on device %d)",
               (int)stream->id, (int)stream->context->device->ordinal, (int)context->device->ordinal);
}

void acl_require_no_abort(Call *call, const Device *device)
{
    const Runtime *runtime = acl_runtime();
    us_require(call, runtime == NULL || atomic_load(&runtime->aborts[device->ordinal]) == 0, "device", "aborting",
               ACL_ERROR_RT_DEVICE_TASK_ABORT, "aclrtDeviceTaskAbort is stopping the work of device %d",
               (int)device->ordinal);
}

uint32_t acl_past_aborts(const Device *device)
{
    const Runtime *runtime = acl_runtime();
    return runtime != NULL ? atomic_load(&runtime->past_aborts[device->ordinal]) : 0;
}

void acl_require_no_abort_since(Call *call, const Device *device, uint32_t past_aborts)
{
    acl_require_no_abort(call, device);
    us_require(call, acl_past_aborts(device) == past_aborts, "device", "aborting", ACL_ERROR_RT_DEVICE_TASK_ABORT,
               "aclrtDeviceTaskAbort has stopped the work of device %d during the wait", (int)device->ordinal);
}

Stream *acl_require_work_stream(Call *call, aclrtStream handle)
{
    Context *context = acl_require_context(call, "context", "none");
    Stream *stream = acl_require_stream(call, "stream", "dead", handle);
    us_require(call, stream != stream->context->default_stream || !us_capture_in_context(stream->context, true),
               "stream",
               "implicit", ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
               "the default stream cannot be used while another stream of its context is captured");
    if (call->status == 0) {
        acl_require_no_abort(call, stream->context->device);
    }
    return call->status == 0 && context != NULL ? stream : NULL;
}

Stream *acl_require_own_work_stream(Call *call, aclrtStream handle)
{
    Context *context = acl_require_context(call, "context", "none");
    Stream *stream = acl_require_work_stream(call, handle);
    if (stream != NULL) {
        acl_require_own_stream(call, "stream", "context", stream, context);
    }
    return call->status == 0 ? stream : NULL;
}

void acl_require_open(Call *call, const Stream *stream)
{
    us_require(call, !us_stream_is_closed(stream), "stream", "closed", ACL_ERROR_RT_PARAM_INVALID,
               "stream %d is bound to a model that takes no more work: aclmdlRIBuildEnd was called", (int)stream->id);
}

void acl_require_no_group(Call *call, const Stream *stream)
{
    acl_require_open(call, stream);
    GroupPlace place = call->status == 0 ? us_capture_open_group(stream) : GROUP_NONE;
    if (place != GROUP_NONE) {
        us_capture_invalidate(stream);
    }
    us_require(call, place != GROUP_HERE, "stream", "group", ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
               "a task group of stream %d is being recorded or updated, and only operators can be in it", (int)stream->id);
    us_require(call, place != GROUP_ELSEWHERE, "stream", "other-group", ACL_ERROR_STREAM_TASK_GROUP_INTR,
               "a task group of another stream is being recorded; stream %d gets tasks when it has ended", (int)stream->id);
}

Stream *acl_require_task_stream(Call *call, aclrtStream handle)
{
    Stream *stream = acl_require_own_work_stream(call, handle);
    acl_require_no_group(call, stream);
    return call->status == 0 ? stream : NULL;
}

void acl_require_running_stream(Call *call, const Stream *stream)
{
    if (call->status == 0 && us_capture_status(stream, NULL) != CAPTURE_NONE) {
        us_capture_invalidate(stream);
        us_refuse(call, "stream", "capture", ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
                  "stream %d is being captured: its work does not run now", (int)stream->id);
    }
}

void acl_require_running_event(Call *call, const char *parameter, const Event *event)
{
    if (call->status == 0 && us_event_is_captured(event)) {
        us_event_invalidate_capture(event);
        us_refuse(call, parameter, "captured", ACL_ERROR_RT_EVENT_CAPTURED,
                  "event %d was recorded in a capture: its record does not run now", (int)event->id);
    }
}

void acl_require_running_context(Call *call, const Context *context)
{
    us_require(call, !us_capture_in_context(context, true), "context", "capture", ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
               "a stream of the context is being captured: its work does not run now");
}

void acl_require_safe(Call *call)
{
    if (call->status == 0 && us_capture_exists()) {
        Platform *platform = ascend_platform();
        us_require(call, platform == NULL || !us_capture_forbids_unsafe(platform, true), "thread", "capture",
                   ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
                   "a capture does not allow this thread to touch memory outside streams; "
                   "aclmdlRICaptureThreadExchangeMode lifts that");
    }
}

Event *acl_require_event(Call *call, const char *parameter, const char *rule, aclrtEvent handle)
{
    if (acl_require_platform(call) == NULL) {
        return NULL;
    }
    Event *event = us_event_of_handle(handle);
    us_require(call, event != NULL && event->vendor_state[EVENT_OWNER] == ASCEND_EVENT, parameter, rule,
               ACL_ERROR_RT_INVALID_HANDLE,
               "%s %p is not a live event: it was destroyed, or never came from this library", parameter, handle);
    return event;
}

/* ---- waiting ---- */

int64_t acl_require_timeout(Call *call, const char *parameter, const char *rule, int32_t milliseconds)
{
    us_require(call, milliseconds == -1 || milliseconds > 0, parameter, rule, ACL_ERROR_RT_PARAM_INVALID,
               "%s is %d; it must be -1 (no limit) or a positive number of milliseconds", parameter,
               (int)milliseconds);
    return milliseconds == -1 ? -1 : (int64_t)milliseconds * 1000;
}

aclError acl_status_of_fault(DeviceFault fault)
{
    static const aclError statuses[] = {
        [DEVICE_FAULT_NONE] = ACL_SUCCESS,
        [DEVICE_FAULT_ADDRESS] = ACL_ERROR_RT_AICORE_EXCEPTION,
        [DEVICE_FAULT_COPY] = ACL_ERROR_RT_DEVICE_MEM_ERROR,
        [DEVICE_FAULT_NO_MEMORY] = ACL_ERROR_RT_MEMORY_ALLOCATION,
        [DEVICE_FAULT_TIMEOUT] = ACL_ERROR_RT_TASK_TIMEOUT,
    };
    return statuses[fault];
}

void acl_refuse_fault(Call *call, const char *parameter, DeviceFault fault, const Explanation *why)
{
    static const char *const rules[] = {
        [DEVICE_FAULT_ADDRESS] = "kernel-fault",
        [DEVICE_FAULT_COPY] = "copy-fault",
        [DEVICE_FAULT_NO_MEMORY] = "scratch-memory",
        [DEVICE_FAULT_TIMEOUT] = "wait-timeout",
    };
    const Context *context = acl_current_context();
    if (fault != DEVICE_FAULT_NONE && context != NULL) {
        us_device_each_stream(context->device, NULL, acl_report_exception);
    }
    if (fault != DEVICE_FAULT_NONE) {
        us_refuse(call, parameter, rules[fault], acl_status_of_fault(fault), "%s", why->text);
    }
}
