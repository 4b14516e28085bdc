/* Streams made from a configuration (cann-runtime 9, cann-runtime-3 8). */
#include "ascend/ascendcl/runtime.h"

#include <stdlib.h>
#include <string.h>

/* The structure is public, and programs may have their own, so nothing in it can tell that it has ended. What the library
 * made is known instead, and stays known for a while after its end: a configuration that is made takes the memory of the
 * one that ended longest ago, once so many have ended. */
enum { KEPT = 64 };

struct StreamConfiguration {
    aclrtStreamConfigHandle public; /* first: its address is the program's */
    StreamConfiguration *next;      /* this and the rest under the platform's lock */
    uint64_t ended;                 /* its number among those that have ended; 0: it is alive */
};

/* One whose memory may be used again, or NULL. */
static StreamConfiguration *longest_ended(const Runtime *runtime)
{
    StreamConfiguration *first = NULL;
    size_t count = 0;
    for (StreamConfiguration *each = runtime->stream_configurations; each != NULL; each = each->next) {
        count += each->ended != 0;
        if (each->ended != 0 && (first == NULL || each->ended < first->ended)) {
            first = each;
        }
    }
    return count > KEPT ? first : NULL;
}

static StreamConfiguration *make(Runtime *runtime)
{
    us_platform_lock(runtime->platform);
    StreamConfiguration *made = longest_ended(runtime);
    if (made != NULL) {
        memset(&made->public, 0, sizeof made->public);
        made->ended = 0;
    } else {
        made = calloc(1, sizeof *made);
        if (made != NULL) {
            made->next = runtime->stream_configurations;
            runtime->stream_configurations = made;
        }
    }
    us_platform_unlock(runtime->platform);
    return made;
}

aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void)
{
    Call call = us_call_begin("aclrtCreateStreamConfigHandle");
    Runtime *runtime = acl_require_runtime(&call);
    StreamConfiguration *made = runtime != NULL ? make(runtime) : NULL;
    us_require(&call, made != NULL, "handle", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a configuration");
    acl_end(&call);
    return made != NULL ? &made->public : NULL;
}

/* NULL: the library did not make it. The platform is locked. */
static StreamConfiguration *find(const Runtime *runtime, const aclrtStreamConfigHandle *handle)
{
    StreamConfiguration *each = runtime->stream_configurations;
    while (each != NULL && &each->public != handle) {
        each = each->next;
    }
    return each;
}

static bool end(Runtime *runtime, const aclrtStreamConfigHandle *handle)
{
    us_platform_lock(runtime->platform);
    StreamConfiguration *found = find(runtime, handle);
    bool ends = found != NULL && found->ended == 0;
    if (ends) {
        found->ended = ++runtime->ended_configurations;
    }
    us_platform_unlock(runtime->platform);
    return ends;
}

static void require_alive(Call *call, const aclrtStreamConfigHandle *handle)
{
    Runtime *runtime = call->status == 0 ? acl_runtime() : NULL;
    if (runtime != NULL) {
        us_platform_lock(runtime->platform);
        const StreamConfiguration *found = find(runtime, handle);
        bool alive = found == NULL || found->ended == 0;
        us_platform_unlock(runtime->platform);
        us_require(call, alive, "handle", "dead", ACL_ERROR_INVALID_PARAM, "handle %p has been destroyed",
                   (const void *)handle);
    }
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle)
{
    Call call = us_call_begin("aclrtDestroyStreamConfigHandle");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    Runtime *runtime = acl_require_runtime(&call);
    us_require(&call, runtime == NULL || end(runtime, handle), "handle", "dead", ACL_ERROR_INVALID_PARAM,
               "handle %p has been destroyed, or was not made by aclrtCreateStreamConfigHandle", (void *)handle);
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
    require_alive(&call, handle);
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
    require_alive(&call, handle);
    uint32_t flag = call.status == 0 ? (uint32_t)handle->flag : 0;
    uint32_t priority = call.status == 0 ? handle->priority : 0;
    acl_create_stream(&call, stream, flag, priority);
    return acl_end(&call);
}
