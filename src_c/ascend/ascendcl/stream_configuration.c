/* Streams made from a configuration (cann-runtime 9, cann-runtime-3 8). */
#include "ascend/ascendcl/runtime.h"

#include <stdlib.h>
#include <string.h>

/* The structure is public, and programs may have their own; what the library made is known, so that it ends once. */
struct StreamConfiguration {
    aclrtStreamConfigHandle public; /* first: its address is the program's */
    StreamConfiguration *next;      /* the platform's lock */
};

aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void)
{
    Call call = us_call_begin("aclrtCreateStreamConfigHandle");
    Runtime *runtime = acl_require_runtime(&call);
    StreamConfiguration *made = runtime != NULL ? calloc(1, sizeof *made) : NULL;
    us_require(&call, made != NULL, "handle", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a configuration");
    if (made != NULL) {
        us_platform_lock(runtime->platform);
        made->next = runtime->stream_configurations;
        runtime->stream_configurations = made;
        us_platform_unlock(runtime->platform);
    }
    acl_end(&call);
    return made != NULL ? &made->public : NULL;
}

/* Takes a configuration out of the list; NULL: it is not in it. */
static StreamConfiguration *take(Runtime *runtime, const aclrtStreamConfigHandle *handle)
{
    us_platform_lock(runtime->platform);
    StreamConfiguration **link = &runtime->stream_configurations;
    while (*link != NULL && &(*link)->public != handle) {
        link = &(*link)->next;
    }
    StreamConfiguration *found = *link;
    if (found != NULL) {
        *link = found->next;
    }
    us_platform_unlock(runtime->platform);
    return found;
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle)
{
    Call call = us_call_begin("aclrtDestroyStreamConfigHandle");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    Runtime *runtime = acl_require_runtime(&call);
    StreamConfiguration *found = runtime != NULL ? take(runtime, handle) : NULL;
    us_require(&call, found != NULL, "handle", "dead", ACL_ERROR_INVALID_PARAM,
               "handle %p has been destroyed, or was not made by aclrtCreateStreamConfigHandle", (void *)handle);
    free(found);
    return acl_end(&call);
}

/* Programs pass 4 bytes for the flag, though its member has 8. */
static bool fits(aclrtStreamConfigAttr attribute, size_t size)
{
    switch (attribute) {
    case ACL_RT_STREAM_WORK_ADDR_PTR:
        return size == sizeof(void *);
    case ACL_RT_STREAM_WORK_SIZE:
        return size == sizeof(size_t);
    case ACL_RT_STREAM_FLAG:
        return size == sizeof(uint32_t) || size == sizeof(size_t);
    default:
        return size == sizeof(uint32_t);
    }
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attr, const void *attrValue,
                                 size_t valueSize)
{
    Call call = us_call_begin("aclrtSetStreamConfigOpt");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    us_require(&call, attrValue != NULL, "attrValue", "null", ACL_ERROR_INVALID_PARAM, "attrValue is NULL");
    us_require(&call, (int)attr >= 0 && attr <= ACL_RT_STREAM_PRIORITY, "attr", "range", ACL_ERROR_INVALID_PARAM,
               "attr is %d; it must be 0 to 3", (int)attr);
    us_require(&call, fits(attr, valueSize), "valueSize", "range", ACL_ERROR_INVALID_PARAM,
               "valueSize is %zu, which attribute %d has not", valueSize, (int)attr);
    uint64_t value = 0;
    if (call.status == 0) {
        memcpy(&value, attrValue, valueSize);
    }
    us_require(&call, attr != ACL_RT_STREAM_PRIORITY || value <= ACL_STREAM_LOWEST_PRIORITY, "attrValue", "priority",
               ACL_ERROR_INVALID_PARAM, "the priority is %llu; it must be 0 to 7", (unsigned long long)value);
    if (call.status == 0) {
        switch (attr) {
        case ACL_RT_STREAM_WORK_ADDR_PTR:
            handle->workptr = (void *)(uintptr_t)value;
            break;
        case ACL_RT_STREAM_WORK_SIZE:
            handle->workSize = value;
            break;
        case ACL_RT_STREAM_FLAG:
            handle->flag = value;
            break;
        case ACL_RT_STREAM_PRIORITY:
            handle->priority = (uint32_t)value;
            break;
        }
    }
    return acl_end(&call);
}

aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle)
{
    Call call = us_call_begin("aclrtCreateStreamV2");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    uint32_t flag = call.status == 0 ? (uint32_t)handle->flag : 0;
    uint32_t priority = call.status == 0 ? handle->priority : 0;
    acl_create_stream(&call, stream, flag, priority);
    return acl_end(&call);
}
