/* Notifies (cann-runtime-3 5). */
#include "ascend/ascendcl/ipc.h"

#include <stdatomic.h>

static void require_product(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s cannot clear notifies from outside",
               ascend_product()->series);
}

Notify *acl_require_notify(Call *call, aclrtNotify handle)
{
    us_require(call, handle != NULL, "notify", "null", ACL_ERROR_INVALID_PARAM, "notify is NULL");
    Platform *platform = acl_require_platform(call);
    Notify *notify = platform != NULL ? us_notify_of_handle(handle) : NULL;
    bool alive = notify != NULL && notify->device->platform == platform;
    us_require(call, alive, "notify", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "notify %p has been destroyed, or never existed", handle);
    return alive ? notify : NULL;
}

static int32_t notify_limit(void)
{
    return ascend_product()->product == PRODUCT_910A ? 1024 : 8192;
}

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag)
{
    Call call = us_call_begin("aclrtCreateNotify");
    us_require(&call, notify != NULL, "notify", "null", ACL_ERROR_INVALID_PARAM, "notify is NULL");
    us_require(&call, flag <= ACL_NOTIFY_DEVICE_USE_ONLY, "flag", "range", ACL_ERROR_RT_PARAM_INVALID,
               "flag is %llu; it must be 0 or 1", (unsigned long long)flag);
    Context *context = acl_require_context(&call, "context", "none");
    Runtime *runtime = call.status == 0 ? acl_runtime() : NULL;
    us_require(&call, runtime != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the runtime");
    if (call.status != 0) {
        return acl_end(&call);
    }
    Device *device = context->device;
    _Atomic int32_t *count = &runtime->notify_counts[device->ordinal];
    bool room = atomic_fetch_add(count, 1) < notify_limit();
    us_require(&call, room, "notify", "limit", ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "device %d has %d notifies already",
               (int)device->ordinal, (int)notify_limit());
    Notify *made = call.status == 0 ? us_notify_create(device) : NULL;
    us_require(&call, made != NULL, "notify", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a notify");
    if (call.status == 0) {
        *notify = made->handle;
    } else {
        atomic_fetch_sub(count, 1);
    }
    return acl_end(&call);
}

void acl_count_notify(const Notify *notify)
{
    Runtime *runtime = acl_runtime();
    if (runtime != NULL) {
        atomic_fetch_add(&runtime->notify_counts[notify->device->ordinal], 1);
    }
}

aclError aclrtDestroyNotify(aclrtNotify notify)
{
    Call call = us_call_begin("aclrtDestroyNotify");
    Notify *found = acl_require_notify(&call, notify);
    us_require(&call, us_notify_destroy(found), "notify", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "notify %p has just been destroyed by another thread", notify);
    Runtime *runtime = call.status == 0 ? acl_runtime() : NULL;
    if (runtime != NULL) {
        atomic_fetch_sub(&runtime->notify_counts[found->device->ordinal], 1);
    }
    return acl_end(&call);
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream)
{
    Call call = us_call_begin("aclrtRecordNotify");
    Notify *found = acl_require_notify(&call, notify);
    Stream *on = acl_require_task_stream(&call, stream);
    us_require(&call, us_notify_record(found, on), "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory to queue the record");
    return acl_end(&call);
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout)
{
    static const int64_t MICROSECONDS = 1000000;
    Call call = us_call_begin("aclrtWaitAndResetNotify");
    Notify *found = acl_require_notify(&call, notify);
    Stream *on = acl_require_task_stream(&call, stream);
    us_require(&call, !found->imported, "notify", "imported", ACL_ERROR_RT_PARAM_INVALID,
               "notify %u is another process's, which alone can wait for it", (unsigned)found->id);
    us_require(&call, found->device == on->context->device, "notify", "device", ACL_ERROR_RT_PARAM_INVALID,
               "the notify is device %d's, the stream device %d's; only the notify's device can wait",
               (int)found->device->ordinal, (int)on->context->device->ordinal);
    us_require(&call, us_notify_wait(on, found, timeout == 0 ? -1 : timeout * MICROSECONDS), "stream", "resources",
               ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the wait");
    return acl_end(&call);
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId)
{
    Call call = us_call_begin("aclrtGetNotifyId");
    us_require(&call, notifyId != NULL, "notifyId", "null", ACL_ERROR_INVALID_PARAM, "notifyId is NULL");
    Notify *found = acl_require_notify(&call, notify);
    if (call.status == 0) {
        *notifyId = found->id;
    }
    return acl_end(&call);
}

aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num)
{
    Call call = us_call_begin("aclrtNotifyBatchReset");
    us_require(&call, notifies != NULL, "notifies", "null", ACL_ERROR_INVALID_PARAM, "notifies is NULL");
    us_require(&call, num > 0, "num", "range", ACL_ERROR_INVALID_PARAM, "num is 0; it must be at least 1");
    require_product(&call);
    for (size_t i = 0; call.status == 0 && i < num; i++) {
        acl_require_notify(&call, notifies[i]);
    }
    for (size_t i = 0; call.status == 0 && i < num; i++) {
        Notify *found = us_notify_of_handle(notifies[i]);
        if (found != NULL) {
            us_notify_clear(found);
        }
    }
    return acl_end(&call);
}
