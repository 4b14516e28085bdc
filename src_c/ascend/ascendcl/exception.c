/* Tasks that fail: functions of the program that are told, and what they can ask (cann-runtime-3 6, doc 13). A failure is
 * told once, by the thread whose wait finds it. */
#include "ascend/ascendcl/callback_list.h"

#include <stdatomic.h>

struct rtExceptionInfo {
    uint32_t task, stream, thread, device, error;
};

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)
{
    Call call = us_call_begin("aclrtSetExceptionInfoCallback");
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        atomic_store(&runtime->exception_callback, callback);
    }
    return acl_end(&call);
}

static void require_callback(Call *call, aclrtExceptionInfoCallback callback)
{
    us_require(call, callback != NULL, "callback", "null", ACL_ERROR_INVALID_PARAM, "callback is NULL");
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback)
{
    Call call = us_call_begin("aclrtExceptionInfoCallbackRegister");
    require_callback(&call, callback);
    Runtime *runtime = acl_require_runtime(&call);
    const Callback entry = {.function = (AnyFunction *)callback};
    us_require(&call, callbacks_add(runtime, CALLBACK_EXCEPTION, &entry), "callback", "limit",
               ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "there are %d callbacks already", (int)CALLBACK_LIMIT);
    return acl_end(&call);
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback)
{
    Call call = us_call_begin("aclrtExceptionInfoCallbackUnregister");
    require_callback(&call, callback);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        callbacks_remove(runtime, CALLBACK_EXCEPTION, &(const Callback){.function = (AnyFunction *)callback});
    }
    return acl_end(&call);
}

void acl_report_exception(Stream *stream)
{
    Runtime *runtime = acl_runtime();
    DeviceFault fault = us_stream_fault(stream, NULL);
    if (runtime == NULL || fault == DEVICE_FAULT_NONE ||
        (__atomic_fetch_or(&stream->vendor_state[STREAM_SETTINGS], STREAM_FAULT_REPORTED, __ATOMIC_RELAXED) &
         STREAM_FAULT_REPORTED) != 0) {
        return;
    }
    TaskIdentity faulty = us_stream_faulty_task(stream);
    if (faulty.task == 0) {
        return; /* another stream's task, which is told there */
    }
    aclrtExceptionInfo info = {.task = (uint32_t)faulty.task, .stream = (uint32_t)stream->id,
                               .thread = (uint32_t)faulty.thread,
                               .device = (uint32_t)stream->context->device->ordinal,
                               .error = (uint32_t)acl_status_of_fault(fault)};
    Callback callbacks[CALLBACK_LIMIT];
    size_t count = callbacks_copy(runtime, CALLBACK_EXCEPTION, callbacks);
    for (size_t i = 0; i < count; i++) {
        ((aclrtExceptionInfoCallback)callbacks[i].function)(&info);
    }
    aclrtExceptionInfoCallback single = atomic_load(&runtime->exception_callback);
    if (single != NULL) {
        single(&info);
    }
}

/* ---- what they can ask ---- */

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
    return info != NULL ? info->task : UINT32_MAX;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
    return info != NULL ? info->stream : UINT32_MAX;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
    return info != NULL ? info->thread : UINT32_MAX;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
    return info != NULL ? info->device : UINT32_MAX;
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info)
{
    return info != NULL ? info->error : UINT32_MAX;
}

/* Kernels here have no arguments in device memory. */
aclError aclrtGetArgsFromExceptionInfo(const aclrtExceptionInfo *info, void **devArgsPtr, uint32_t *devArgsLen)
{
    Call call = us_call_begin("aclrtGetArgsFromExceptionInfo");
    us_require(&call, info != NULL, "info", "null", ACL_ERROR_INVALID_PARAM, "info is NULL");
    us_require(&call, devArgsPtr != NULL, "devArgsPtr", "null", ACL_ERROR_INVALID_PARAM, "devArgsPtr is NULL");
    us_require(&call, devArgsLen != NULL, "devArgsLen", "null", ACL_ERROR_INVALID_PARAM, "devArgsLen is NULL");
    if (call.status == 0) {
        *devArgsPtr = NULL;
        *devArgsLen = 0;
    }
    return acl_end(&call);
}

aclError aclrtGetThreadLastTaskId(uint32_t *taskId)
{
    Call call = us_call_begin("aclrtGetThreadLastTaskId");
    us_require(&call, taskId != NULL, "taskId", "null", ACL_ERROR_INVALID_PARAM, "taskId is NULL");
    acl_require_platform(&call);
    if (call.status == 0) {
        *taskId = (uint32_t)us_last_task_of_thread();
    }
    return acl_end(&call);
}
