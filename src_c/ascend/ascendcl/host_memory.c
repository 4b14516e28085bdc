/* Page-locked host memory (cann-runtime 8 and 9, doc 11-02). */
#include "ascend/ascendcl/runtime.h"

static void allocate_host(Call *call, const char *parameter, void **hostPtr, size_t size)
{
    us_require(call, hostPtr != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    us_require(call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    Context *context = acl_require_context(call, "context", "none");
    if (call->status != 0) {
        return;
    }
    MemoryStatus status = us_memory_allocate(context->device, MEMORY_PINNED, size, call->function, hostPtr);
    us_require(call, status == MEMORY_OK, "size", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "the host has no %zu bytes left", size);
}

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
    Call call = us_call_begin("aclrtMallocHost");
    allocate_host(&call, "hostPtr", hostPtr, size);
    return acl_end(&call);
}

static void free_host(Call *call, void *hostPtr)
{
    us_require(call, hostPtr != NULL, "hostPtr", "null", ACL_ERROR_INVALID_PARAM, "hostPtr is NULL");
    Platform *platform = acl_require_platform(call);
    if (platform == NULL) {
        return;
    }
    Explanation why = {""};
    us_require(call, us_memory_free(platform, MEMORY_PINNED, hostPtr, &why) == MEMORY_OK, "hostPtr", "unknown",
               ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
}

aclError aclrtFreeHost(void *hostPtr)
{
    Call call = us_call_begin("aclrtFreeHost");
    free_host(&call, hostPtr);
    return acl_end(&call);
}
