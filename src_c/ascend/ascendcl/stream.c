/* Streams (cann-runtime 8 and 9). */
#include "ascend/ascendcl/runtime.h"

static void create_stream(Call *call, aclrtStream *stream, uint32_t flags, int32_t priority)
{
    us_require(call, stream != NULL, "stream", "null", ACL_ERROR_INVALID_PARAM, "stream is NULL");
    Context *context = acl_require_context(call, "context", "none");
    Stream *created = context != NULL ? us_stream_create(context, 0) : NULL;
    us_require(call, created != NULL, "stream", "resources", ACL_ERROR_RT_NO_STREAM_RESOURCE,
               "no host memory for another stream");
    if (call->status == 0) {
        created->vendor_flags = flags;
        created->priority = priority;
        *stream = created->handle;
    }
}

aclError aclrtCreateStream(aclrtStream *stream)
{
    Call call = us_call_begin("aclrtCreateStream");
    create_stream(&call, stream, 0, 0);
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
        us_stream_destroy(found, drain);
    }
}

aclError aclrtDestroyStream(aclrtStream stream)
{
    Call call = us_call_begin("aclrtDestroyStream");
    destroy_stream(&call, stream, true);
    return acl_end(&call);
}

/* Streams that only the device may feed report no completion to the host: their synchronise returns at once. */
static bool has_nothing_to_wait_for(const Stream *stream)
{
    return (stream->vendor_flags & (ACL_STREAM_PERSISTENT | ACL_STREAM_DEVICE_USE_ONLY)) != 0;
}

static void synchronize_stream(Call *call, aclrtStream stream, int64_t timeout_us)
{
    acl_require_context(call, "context", "none");
    Stream *found = acl_require_stream(call, "stream", "dead", stream);
    if (found == NULL || has_nothing_to_wait_for(found)) {
        return;
    }
    WaitStatus status = us_stream_synchronize(found, timeout_us);
    us_require(call, status != WAIT_TIMEOUT, "timeout", "expired", ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
               "stream %d still has work to do after %lld ms", (int)found->id, (long long)(timeout_us / 1000));
    if (status == WAIT_FAULT) {
        Explanation why = {""};
        DeviceFault fault = us_stream_fault(found, &why);
        acl_refuse_fault(call, "stream", fault, &why);
    }
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
    Call call = us_call_begin("aclrtSynchronizeStream");
    synchronize_stream(&call, stream, -1);
    return acl_end(&call);
}
