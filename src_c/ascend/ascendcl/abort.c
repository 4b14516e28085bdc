/* Work that is stopped from outside (cann-runtime-3 6, doc 06, 13). What a processor has begun to compute it finishes; what
 * waits stops waiting. */
#include "ascend/ascendcl/callback_list.h"
#include "ascend/ascendcl/model.h"

#include <stdatomic.h>

enum { ABORT_LIMIT_MS = 36 * 60 * 1000 };

void acl_require_aborts(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "work on devices of the %s cannot be stopped",
               ascend_product()->series);
}

static void tell_abort(Runtime *runtime, int32_t ordinal, aclrtDeviceTaskAbortStage stage, uint32_t timeout)
{
    Callback callbacks[CALLBACK_LIMIT];
    size_t count = callbacks_copy(runtime, CALLBACK_TASK_ABORT, callbacks);
    for (size_t i = 0; i < count; i++) {
        ((aclrtDeviceTaskAbortCallback)callbacks[i].function)(ordinal, stage, timeout, callbacks[i].arguments);
    }
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout)
{
    Call call = us_call_begin("aclrtDeviceTaskAbort");
    us_require(&call, timeout <= ABORT_LIMIT_MS, "timeout", "range", ACL_ERROR_RT_PARAM_INVALID,
               "timeout is %u; it must be 0 (no limit) or at most %d milliseconds", (unsigned)timeout, ABORT_LIMIT_MS);
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    acl_require_aborts(&call);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        atomic_fetch_add(&runtime->aborts[deviceId], 1);
        tell_abort(runtime, deviceId, ACL_RT_DEVICE_TASK_ABORT_PRE, timeout);
        bool over = us_device_abort(device, timeout == 0 ? -1 : (int64_t)timeout * 1000);
        atomic_fetch_add(&runtime->past_aborts[deviceId], 1); /* before the call is over: waits look at that first */
        atomic_fetch_sub(&runtime->aborts[deviceId], 1);
        tell_abort(runtime, deviceId, ACL_RT_DEVICE_TASK_ABORT_POST, timeout);
        us_require(&call, over, "timeout", "expired", ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                   "a task of device %d still runs after %u ms", (int)deviceId, (unsigned)timeout);
    }
    return acl_end(&call);
}

/* A stream that the program made, and that no model has. */
static Stream *require_free_stream(Call *call, aclrtStream handle)
{
    acl_require_aborts(call);
    us_require(call, handle != NULL, "stream", "default", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "the default stream cannot be stopped");
    acl_require_context(call, "context", "none");
    Stream *stream = acl_require_stream(call, "stream", "dead", handle);
    us_require(call, stream != stream->context->default_stream, "stream", "default", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "the default stream cannot be stopped");
    us_require(call, !us_graph_has_bound(NULL, stream), "stream", "bound", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "stream %d is bound to a model: aclmdlRIAbort stops that", (int)stream->id);
    return call->status == 0 ? stream : NULL;
}

aclError aclrtStreamStop(aclrtStream stream)
{
    Call call = us_call_begin("aclrtStreamStop");
    Stream *found = require_free_stream(&call, stream);
    if (found != NULL) {
        us_stream_interrupt(found);
    }
    return acl_end(&call);
}

aclError aclrtPersistentTaskClean(aclrtStream stream)
{
    Call call = us_call_begin("aclrtPersistentTaskClean");
    acl_require_aborts(&call);
    us_require(&call, stream != NULL, "stream", "null", ACL_ERROR_INVALID_PARAM, "stream is NULL");
    acl_require_context(&call, "context", "none");
    Stream *found = acl_require_stream(&call, "stream", "dead", stream);
    us_require(&call, (found->vendor_flags & ACL_STREAM_PERSISTENT) != 0, "stream", "persistent",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "stream %d was made without ACL_STREAM_PERSISTENT", (int)found->id);
    if (call.status == 0) {
        model_clean_stream(&call, found);
    }
    return acl_end(&call);
}
