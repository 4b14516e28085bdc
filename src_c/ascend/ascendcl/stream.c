/* Streams (cann-runtime 8 and 9). */
#include "ascend/ascendcl/runtime.h"
#include "device/pool.h"

enum { STREAM_LIMIT = 2048 };
static const uint32_t KNOWN_FLAGS = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT |
                                    ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

static uint32_t streams_left(void)
{
    uint64_t alive = us_handle_count(HANDLE_STREAM);
    return alive < STREAM_LIMIT ? (uint32_t)(STREAM_LIMIT - alive) : 0;
}

void acl_create_stream(Call *call, aclrtStream *stream, uint32_t flags, uint32_t priority)
{
    us_require(call, stream != NULL, "stream", "null", ACL_ERROR_INVALID_PARAM, "stream is NULL");
    Context *context = acl_require_context(call, "context", "none");
    Stream *created = context != NULL && streams_left() > 0 ? us_stream_create(context, 0) : NULL;
    us_require(call, created != NULL, "stream", "resources", ACL_ERROR_RT_NO_STREAM_RESOURCE,
               "no further stream: there are %d, or the host has no memory", (int)(STREAM_LIMIT - streams_left()));
    if (call->status == 0) {
        created->vendor_flags = flags & KNOWN_FLAGS;
        created->priority = (int32_t)(priority < ACL_STREAM_LOWEST_PRIORITY ? priority : ACL_STREAM_LOWEST_PRIORITY);
        *stream = created->handle;
        acl_tell_stream_begins(created);
    }
}

aclError aclrtCreateStream(aclrtStream *stream)
{
    Call call = us_call_begin("aclrtCreateStream");
    acl_create_stream(&call, stream, 0, 0);
    return acl_end(&call);
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    Call call = us_call_begin("aclrtCreateStreamWithConfig");
    acl_create_stream(&call, stream, flag, priority);
    return acl_end(&call);
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount)
{
    Call call = us_call_begin("aclrtGetStreamAvailableNum");
    us_require(&call, streamCount != NULL, "streamCount", "null", ACL_ERROR_INVALID_PARAM, "streamCount is NULL");
    if (call.status == 0) {
        *streamCount = streams_left();
    }
    return acl_end(&call);
}

static void destroy_stream(Call *call, aclrtStream stream, bool drain)
{
    us_require(call, stream != NULL, "stream", "null", ACL_ERROR_INVALID_PARAM, "stream is NULL");
    Context *context = acl_require_context(call, "context", "none");
    Stream *found = acl_require_stream(call, "stream", "dead", stream);
    if (call->status != 0) {
        return;
    }
    acl_require_own_stream(call, "stream", "context", found, context);
    us_require(call, found != context->default_stream, "stream", "default", ACL_ERROR_RT_PARAM_INVALID,
               "stream is the default stream of its context and ends with it");
    if (call->status == 0) {
        acl_tell_stream_ends(found);
        us_require(call, us_stream_destroy(found, drain), "stream", "dead", ACL_ERROR_RT_INVALID_HANDLE,
                   "stream %p has just been destroyed by another thread", stream);
    }
}

aclError aclrtDestroyStream(aclrtStream stream)
{
    Call call = us_call_begin("aclrtDestroyStream");
    destroy_stream(&call, stream, true);
    return acl_end(&call);
}

aclError aclrtDestroyStreamForce(aclrtStream stream)
{
    Call call = us_call_begin("aclrtDestroyStreamForce");
    destroy_stream(&call, stream, false);
    return acl_end(&call);
}

/* Streams that only the device may feed report no completion to the host: their synchronise returns at once. */
static bool has_nothing_to_wait_for(const Stream *stream)
{
    return (stream->vendor_flags & (ACL_STREAM_PERSISTENT | ACL_STREAM_DEVICE_USE_ONLY)) != 0;
}

static bool was_aborted(const Stream *stream)
{
    return (__atomic_load_n(&stream->vendor_state[STREAM_SETTINGS], __ATOMIC_RELAXED) & STREAM_ABORTED) != 0;
}

static void synchronize_stream(Call *call, aclrtStream stream, int64_t timeout_us)
{
    Stream *found = acl_require_work_stream(call, stream);
    acl_require_running_stream(call, found);
    if (call->status != 0 || has_nothing_to_wait_for(found)) {
        return;
    }
    const uint32_t past_aborts = acl_past_aborts(found->context->device);
    WaitStatus status = us_stream_synchronize(found, timeout_us);
    us_require(call, status != WAIT_TIMEOUT, "timeout", "expired", ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
               "stream %d still has work to do after %lld ms", (int)found->id, (long long)(timeout_us / 1000));
    if (status != WAIT_TIMEOUT) {
        us_pools_settle(found->context->device);
    }
    if (status == WAIT_FAULT) {
        Explanation why = {""};
        DeviceFault fault = us_stream_fault(found, &why);
        acl_refuse_fault(call, "stream", fault, &why);
    }
    us_require(call, !was_aborted(found), "stream", "aborted", ACL_ERROR_RT_STREAM_ABORT,
               "aclrtStreamAbort has dropped work of stream %d", (int)found->id);
    if (call->status == 0) {
        acl_require_no_abort_since(call, found->context->device, past_aborts);
    }
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
    Call call = us_call_begin("aclrtSynchronizeStream");
    synchronize_stream(&call, stream, -1);
    return acl_end(&call);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
    Call call = us_call_begin("aclrtSynchronizeStreamWithTimeout");
    synchronize_stream(&call, stream, acl_require_timeout(&call, "timeout", "range", timeout));
    return acl_end(&call);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
    Call call = us_call_begin("aclrtStreamQuery");
    us_require(&call, status != NULL, "status", "null", ACL_ERROR_INVALID_PARAM, "status is NULL");
    Stream *found = acl_require_work_stream(&call, stream);
    acl_require_running_stream(&call, found);
    if (call.status == 0) {
        *status = us_stream_idle(found) ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    }
    return acl_end(&call);
}

aclError aclrtStreamAbort(aclrtStream stream)
{
    Call call = us_call_begin("aclrtStreamAbort");
    acl_require_context(&call, "context", "none");
    Stream *found = acl_require_stream(&call, "stream", "dead", stream);
    if (call.status == 0) {
        __atomic_fetch_or(&found->vendor_state[STREAM_SETTINGS], STREAM_ABORTED, __ATOMIC_RELAXED);
        us_stream_abort(found);
    }
    return acl_end(&call);
}
