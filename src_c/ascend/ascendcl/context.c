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
    }
    return acl_end(&call);
}

aclError aclrtDestroyContext(aclrtContext context)
{
    Call call = us_call_begin("aclrtDestroyContext");
    us_require(&call, context != NULL, "context", "null", ACL_ERROR_INVALID_PARAM, "context is NULL");
    Context *found = us_context_of_handle(context);
    us_require(&call, found != NULL, "context", "dead", ACL_ERROR_RT_CONTEXT_NULL,
               "context %p is not alive: it was destroyed, or never came from this library", context);
    us_require(&call, !found->primary, "context", "default", ACL_ERROR_RT_CONTEXT_NULL,
               "context %p is the default context of device %d; aclrtResetDevice releases it", context,
               (int)found->device->ordinal);
    if (call.status == 0) {
        bool current = found == us_context_current(found->device->platform);
        us_context_destroy(found);
        if (current) {
            acl_return_to_chosen_device();
        }
    }
    return acl_end(&call);
}
