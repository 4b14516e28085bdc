/* Device memory (cann-runtime 8 and 9, doc 11-01). */
#include "ascend/ascendcl/runtime.h"

enum { MEMORY_UNIT = 32, MEMORY_SPARE = 32 };

/* `spare`: bytes added to the request before it is rounded up. */
static void allocate(Call *call, void **devPtr, size_t size, size_t spare)
{
    us_require(call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    us_require(call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    size_t padding = spare + MEMORY_UNIT - 1;
    us_require(call, size <= SIZE_MAX - padding, "size", "overflow", ACL_ERROR_INVALID_PARAM,
               "size is %zu; rounding it up overflows", size);
    Context *context = acl_require_context(call, "context", "none");
    if (call->status != 0) {
        return;
    }
    size_t usable = (size + padding) / MEMORY_UNIT * MEMORY_UNIT;
    if (us_memory_allocate(context->device, MEMORY_DEVICE, usable, call->function, devPtr) == MEMORY_OK) {
        return;
    }
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    us_memory_info(context->device, &free_bytes, &total_bytes);
    us_refuse(call, "size", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
              "%zu bytes do not fit: device %d has %zu of %zu bytes free", usable, (int)context->device->ordinal,
              free_bytes, total_bytes);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    (void)policy; /* page sizes make no difference here; unknown values mean the default (cann-runtime 8) */
    Call call = us_call_begin("aclrtMalloc");
    allocate(&call, devPtr, size, MEMORY_SPARE);
    return acl_end(&call);
}

static void free_device_memory(Call *call, void *devPtr)
{
    us_require(call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    Platform *platform = acl_require_platform(call);
    if (platform == NULL) {
        return;
    }
    Explanation why = {""};
    us_require(call, us_memory_free(platform, MEMORY_DEVICE, devPtr, &why) == MEMORY_OK, "devPtr", "unknown",
               ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
}

aclError aclrtFree(void *devPtr)
{
    Call call = us_call_begin("aclrtFree");
    free_device_memory(&call, devPtr);
    return acl_end(&call);
}
