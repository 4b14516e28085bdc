/* Contexts (cann-runtime 8 and 9). */
#include "ascend/ascendcl/runtime.h"

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
    Call call = us_call_begin("aclrtCreateContext");
    us_require(&call, context != NULL, "context", "null", ACL_ERROR_INVALID_PARAM, "context is NULL");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    Context *created = device != NULL ? us_context_create(device) : NULL;
    us_require(&call, created != NULL, "context", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory for another context on device %d", (int)deviceId);
    if (call.status == 0) {
        us_context_set_current(device->platform, created);
        *context = created->handle;
        acl_tell_stream_begins(created->default_stream);
    }
    return acl_end(&call);
}

aclError aclrtDestroyContext(aclrtContext context)
{
    Call call = us_call_begin("aclrtDestroyContext");
    us_require(&call, context != NULL, "context", "null", ACL_ERROR_INVALID_PARAM, "context is NULL");
    const Platform *platform = acl_require_platform(&call);
    us_require(&call, !us_context_is_ending(platform, context), "context", "ending", ACL_ERROR_RT_CONTEXT_RELEASE_ERROR,
               "context %p is being destroyed by another thread", context);
    Context *found = acl_require_live_context(&call, "context", "dead", ACL_ERROR_RT_CONTEXT_NULL, context);
    us_require(&call, !found->primary, "context", "default", ACL_ERROR_RT_CONTEXT_NULL,
               "context %p is the default context of device %d; aclrtResetDevice releases it", context,
               (int)found->device->ordinal);
    if (call.status == 0) {
        bool current = found == us_context_current(found->device->platform);
        us_device_each_stream(found->device, found, acl_tell_stream_ends);
        us_require(&call, us_context_destroy(found), "context", "ending", ACL_ERROR_RT_CONTEXT_RELEASE_ERROR,
                   "context %p is being destroyed by another thread", context);
        if (current) {
            acl_return_to_chosen_device();
        }
    }
    return acl_end(&call);
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
    Call call = us_call_begin("aclrtSetCurrentContext");
    us_require(&call, context != NULL, "context", "null", ACL_ERROR_INVALID_PARAM, "context is NULL");
    Context *found = acl_require_live_context(&call, "context", "dead", ACL_ERROR_RT_PARAM_INVALID, context);
    if (call.status == 0) {
        us_context_set_current(found->device->platform, found);
        acl_remember_chosen_device(found->device->ordinal);
    }
    return acl_end(&call);
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
    Call call = us_call_begin("aclrtGetCurrentContext");
    us_require(&call, context != NULL, "context", "null", ACL_ERROR_INVALID_PARAM, "context is NULL");
    Context *current = acl_require_context(&call, "context", "none");
    if (call.status == 0) {
        *context = current->handle;
    }
    return acl_end(&call);
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream)
{
    Call call = us_call_begin("aclrtCtxGetCurrentDefaultStream");
    us_require(&call, stream != NULL, "stream", "null", ACL_ERROR_INVALID_PARAM, "stream is NULL");
    Context *current = acl_require_context(&call, "context", "none");
    if (call.status == 0) {
        *stream = current->default_stream->handle;
    }
    return acl_end(&call);
}
