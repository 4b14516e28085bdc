/* Memory pools of a program that it registers with a stream (cann-runtime-3 18, doc 11-08). Nothing here calls them: what
 * operators need lies in the workspace that the program gives them. */
#include "acl/acl_rt_allocator.h"
#include "ascend/ascendcl/runtime.h"

#include <stdlib.h>

enum { HANDLE_ALLOCATOR = 0x2a };

typedef struct Allocator {
    aclrtAllocator object;
    aclrtAllocatorAllocFunc allocate;
    aclrtAllocatorFreeFunc free;
    aclrtAllocatorAllocAdviseFunc allocate_at;
    aclrtAllocatorGetAddrFromBlockFunc address;
} Allocator;

/* What a stream has: a copy, so that the description may end. */
struct StreamAllocator {
    StreamAllocator *next;
    aclrtStream stream;
    aclrtAllocatorDesc description;
    Allocator allocator;
};

aclrtAllocatorDesc aclrtAllocatorCreateDesc(void)
{
    Call call = us_call_begin("aclrtAllocatorCreateDesc");
    void *handle = us_handle_new(HANDLE_ALLOCATOR, &(Allocator){0}, sizeof(Allocator));
    us_require(&call, handle != NULL, "description", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for an allocator");
    us_call_end(&call);
    return handle;
}

static Allocator *require_allocator(Call *call, aclrtAllocatorDesc handle)
{
    us_require(call, handle != NULL, "allocatorDesc", "null", ACL_ERROR_INVALID_PARAM, "allocatorDesc is NULL");
    Allocator *allocator = call->status == 0 ? us_handle_object(handle, HANDLE_ALLOCATOR) : NULL;
    us_require(call, allocator != NULL, "allocatorDesc", "dead", ACL_ERROR_INVALID_PARAM,
               "%p is no description of an allocator, or has been destroyed", handle);
    return allocator;
}

aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc)
{
    Call call = us_call_begin("aclrtAllocatorDestroyDesc");
    require_allocator(&call, allocatorDesc);
    us_require(&call, us_handle_release(allocatorDesc, HANDLE_ALLOCATOR), "allocatorDesc", "dead",
               ACL_ERROR_INVALID_PARAM, "%p has just been destroyed by another thread", allocatorDesc);
    return acl_end(&call);
}

aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocator allocator)
{
    Call call = us_call_begin("aclrtAllocatorSetObjToDesc");
    us_require(&call, allocator != NULL, "allocator", "null", ACL_ERROR_INVALID_PARAM, "allocator is NULL");
    Allocator *found = require_allocator(&call, allocatorDesc);
    if (call.status == 0) {
        found->object = allocator;
    }
    return acl_end(&call);
}

/* The description that gets a function, or NULL after a refusal. */
static Allocator *require_function(Call *call, aclrtAllocatorDesc handle, bool given)
{
    us_require(call, given, "func", "null", ACL_ERROR_INVALID_PARAM, "func is NULL");
    return require_allocator(call, handle);
}

aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocatorAllocFunc func)
{
    Call call = us_call_begin("aclrtAllocatorSetAllocFuncToDesc");
    Allocator *found = require_function(&call, allocatorDesc, func != NULL);
    if (call.status == 0) {
        found->allocate = func;
    }
    return acl_end(&call);
}

aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocatorFreeFunc func)
{
    Call call = us_call_begin("aclrtAllocatorSetFreeFuncToDesc");
    Allocator *found = require_function(&call, allocatorDesc, func != NULL);
    if (call.status == 0) {
        found->free = func;
    }
    return acl_end(&call);
}

aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocatorAllocAdviseFunc func)
{
    Call call = us_call_begin("aclrtAllocatorSetAllocAdviseFuncToDesc");
    Allocator *found = require_function(&call, allocatorDesc, func != NULL);
    if (call.status == 0) {
        found->allocate_at = func;
    }
    return acl_end(&call);
}

aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                     aclrtAllocatorGetAddrFromBlockFunc func)
{
    Call call = us_call_begin("aclrtAllocatorSetGetAddrFromBlockFuncToDesc");
    Allocator *found = require_function(&call, allocatorDesc, func != NULL);
    if (call.status == 0) {
        found->address = func;
    }
    return acl_end(&call);
}

/* ---- of streams; the list is guarded by the platform's lock ---- */

/* The runtime, or NULL after a refusal. A stream need not be alive to lose its allocator. */
static Runtime *require_runtime(Call *call, aclrtStream stream)
{
    us_require(call, stream != NULL, "stream", "null", ACL_ERROR_INVALID_PARAM, "stream is NULL");
    Platform *platform = acl_require_platform(call);
    Runtime *runtime = platform != NULL ? acl_runtime() : NULL;
    us_require(call, runtime != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the runtime");
    return runtime;
}

static StreamAllocator **find(Runtime *runtime, aclrtStream stream)
{
    StreamAllocator **link = &runtime->allocators;
    while (*link != NULL && (*link)->stream != stream) {
        link = &(*link)->next;
    }
    return link;
}

aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc)
{
    Call call = us_call_begin("aclrtAllocatorRegister");
    Runtime *runtime = require_runtime(&call, stream);
    acl_require_stream(&call, "stream", "dead", stream);
    const Allocator *found = require_allocator(&call, allocatorDesc);
    us_require(&call,
               found->object != NULL && found->allocate != NULL && found->free != NULL && found->address != NULL,
               "allocatorDesc", "incomplete", ACL_ERROR_INVALID_PARAM,
               "the description lacks its object, or one of the functions that allocate, free and give addresses");
    StreamAllocator *entry = call.status == 0 ? malloc(sizeof *entry) : NULL;
    us_require(&call, entry != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for an allocator");
    if (call.status == 0) {
        us_platform_lock(runtime->platform);
        StreamAllocator **link = find(runtime, stream);
        StreamAllocator *former = *link;
        *entry = (StreamAllocator){former != NULL ? former->next : NULL, stream, allocatorDesc, *found};
        *link = entry;
        us_platform_unlock(runtime->platform);
        free(former);
    }
    return acl_end(&call);
}

aclError aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc *allocatorDesc, aclrtAllocator *allocator,
                                   aclrtAllocatorAllocFunc *allocFunc, aclrtAllocatorFreeFunc *freeFunc,
                                   aclrtAllocatorAllocAdviseFunc *allocAdviseFunc,
                                   aclrtAllocatorGetAddrFromBlockFunc *getAddrFromBlockFunc)
{
    Call call = us_call_begin("aclrtAllocatorGetByStream");
    us_require(&call,
               allocatorDesc != NULL && allocator != NULL && allocFunc != NULL && freeFunc != NULL &&
                   allocAdviseFunc != NULL && getAddrFromBlockFunc != NULL,
               "allocatorDesc", "null", ACL_ERROR_INVALID_PARAM, "one of the six results is NULL");
    Runtime *runtime = require_runtime(&call, stream);
    if (runtime != NULL) {
        us_platform_lock(runtime->platform);
        const StreamAllocator *entry = *find(runtime, stream);
        us_require(&call, entry != NULL, "stream", "none", ACL_ERROR_INVALID_PARAM,
                   "no allocator has been registered for the stream");
        if (entry != NULL) {
            *allocatorDesc = entry->description;
            *allocator = entry->allocator.object;
            *allocFunc = entry->allocator.allocate;
            *freeFunc = entry->allocator.free;
            *allocAdviseFunc = entry->allocator.allocate_at;
            *getAddrFromBlockFunc = entry->allocator.address;
        }
        us_platform_unlock(runtime->platform);
    }
    return acl_end(&call);
}

aclError aclrtAllocatorUnregister(aclrtStream stream)
{
    Call call = us_call_begin("aclrtAllocatorUnregister");
    Runtime *runtime = require_runtime(&call, stream);
    if (runtime != NULL) {
        us_platform_lock(runtime->platform);
        StreamAllocator **link = find(runtime, stream);
        StreamAllocator *entry = *link;
        if (entry != NULL) {
            *link = entry->next;
        }
        us_platform_unlock(runtime->platform);
        free(entry);
    }
    return acl_end(&call);
}
