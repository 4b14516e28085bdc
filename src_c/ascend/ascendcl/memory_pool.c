/* Memory that streams take from pools and give back (cann-runtime-3 18). */
#include "acl/acl_rt_memory_soma.h"
#include "ascend/ascendcl/runtime.h"
#include "device/graph.h"
#include "device/pool.h"

#include <string.h>

static void require_product(Call *call)
{
    us_require(call, ascend_product()->product == PRODUCT_A2, "device", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "devices of the %s have no memory pools", ascend_product()->series);
}

static Pool *require_pool(Call *call, aclrtMemPool handle)
{
    us_require(call, handle != NULL, "memPool", "null", ACL_ERROR_INVALID_PARAM, "memPool is NULL");
    Pool *pool = call->status == 0 ? us_pool_of_handle(handle) : NULL;
    us_require(call, pool != NULL && pool->device->platform->id == ASCEND_PLATFORM, "memPool", "dead",
               ACL_ERROR_RT_INVALID_HANDLE, "memPool %p is no pool, or has been destroyed", handle);
    return call->status == 0 ? pool : NULL;
}

/* ---- pools ---- */

/* The device of the pool, or NULL after a refusal. */
static Device *require_properties(Call *call, const aclrtMemPoolProps *props)
{
    static const unsigned char nothing[sizeof props->reserved] = {0};
    us_require(call, props != NULL, "poolProps", "null", ACL_ERROR_INVALID_PARAM, "poolProps is NULL");
    us_require(call, props->allocType == ACL_MEM_ALLOCATION_TYPE_PINNED, "poolProps", "allocation",
               ACL_ERROR_RT_PARAM_INVALID, "allocType is %d; it must be 0, pinned", (int)props->allocType);
    us_require(call, props->handleType == ACL_MEM_HANDLE_TYPE_NONE, "poolProps", "handle", ACL_ERROR_RT_PARAM_INVALID,
               "handleType is %d; it must be 0, none", (int)props->handleType);
    us_require(call, props->location.type == ACL_MEM_LOCATION_TYPE_DEVICE, "poolProps", "location",
               ACL_ERROR_RT_PARAM_INVALID, "location.type is %d; it must be 1, device", (int)props->location.type);
    us_require(call, memcmp(props->reserved, nothing, sizeof nothing) == 0, "poolProps", "reserved",
               ACL_ERROR_RT_PARAM_INVALID, "reserved has a byte that is not 0");
    return call->status == 0 ? acl_require_device(call, "poolProps", "device", props->location.id) : NULL;
}

aclError aclrtMemPoolCreate(aclrtMemPool *memPool, const aclrtMemPoolProps *poolProps)
{
    Call call = us_call_begin("aclrtMemPoolCreate");
    require_product(&call);
    us_require(&call, memPool != NULL, "memPool", "null", ACL_ERROR_INVALID_PARAM, "memPool is NULL");
    Device *device = require_properties(&call, poolProps);
    Pool *pool = device != NULL ? us_pool_create(device, poolProps->maxSize) : NULL;
    us_require(&call, pool != NULL, "memPool", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a pool");
    if (pool != NULL) {
        *memPool = pool->handle;
    }
    return acl_end(&call);
}

aclError aclrtMemPoolDestroy(const aclrtMemPool memPool)
{
    Call call = us_call_begin("aclrtMemPoolDestroy");
    require_product(&call);
    Pool *pool = require_pool(&call, memPool);
    us_require(&call, us_pool_destroy(pool), "memPool", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "memPool %p has just been destroyed by another thread", memPool);
    return acl_end(&call);
}

aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep)
{
    Call call = us_call_begin("aclrtMemPoolTrimTo");
    require_product(&call);
    Pool *pool = require_pool(&call, memPool);
    if (pool != NULL) {
        us_pool_trim(pool, minBytesToKeep);
    }
    return acl_end(&call);
}

/* ---- attributes ---- */

/* By aclrtMemPoolAttr; those of 32 bits are switches. */
static const struct {
    PoolNumber number;
    bool wide, peak, told;
} attributes[] = {
    [ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES] = {.number = POOL_FOLLOWS_EVENTS},
    [ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC] = {.number = POOL_TAKES_WHAT_IS_OVER},
    [ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES] = {.number = POOL_WAITS_FOR_OTHERS},
    [ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD] = {.number = POOL_THRESHOLD, .wide = true},
    [ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT] = {.number = POOL_RESERVED, .wide = true, .told = true},
    [ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH] = {.number = POOL_RESERVED_HIGH, .wide = true, .peak = true},
    [ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT] = {.number = POOL_USED, .wide = true, .told = true},
    [ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH] = {.number = POOL_USED_HIGH, .wide = true, .peak = true},
};

/* What both functions check. */
static Pool *require_attribute(Call *call, aclrtMemPool memPool, aclrtMemPoolAttr attr, const void *value)
{
    require_product(call);
    us_require(call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    us_require(call, (int)attr >= ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
               (int)attr <= ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, "attr", "range", ACL_ERROR_RT_PARAM_INVALID,
               "attr is %d; it must be 1 to 8", (int)attr);
    return require_pool(call, memPool);
}

aclError aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void *value)
{
    Call call = us_call_begin("aclrtMemPoolSetAttr");
    Pool *pool = require_attribute(&call, memPool, attr, value);
    uint64_t number = 0;
    if (call.status == 0) {
        memcpy(&number, value, attributes[attr].wide ? sizeof(uint64_t) : sizeof(uint32_t));
    }
    us_require(&call, !attributes[attr].told, "attr", "read-only", ACL_ERROR_RT_PARAM_INVALID,
               "attribute %d tells what is; it cannot be set", (int)attr);
    us_require(&call, attributes[attr].wide || number <= 1, "value", "switch", ACL_ERROR_RT_PARAM_INVALID,
               "attribute %d is a switch: value is %llu; it must be 0 or 1", (int)attr, (unsigned long long)number);
    us_require(&call, !attributes[attr].peak || number == 0, "value", "peak", ACL_ERROR_RT_PARAM_INVALID,
               "attribute %d is a highest value: it can be set to 0, not to %llu", (int)attr,
               (unsigned long long)number);
    if (call.status == 0) {
        us_pool_set_number(pool, attributes[attr].number, number);
    }
    return acl_end(&call);
}

aclError aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void *value)
{
    Call call = us_call_begin("aclrtMemPoolGetAttr");
    Pool *pool = require_attribute(&call, memPool, attr, value);
    if (pool != NULL) {
        uint64_t number = us_pool_number(pool, attributes[attr].number);
        memcpy(value, &number, attributes[attr].wide ? sizeof(uint64_t) : sizeof(uint32_t)); /* little endian */
    }
    return acl_end(&call);
}

/* ---- memory ---- */

/* A block exists once: a stream whose work is recorded, to be run any number of times, cannot take it or give it back. */
static Stream *require_stream(Call *call, aclrtStream handle)
{
    Stream *stream = acl_require_own_work_stream(call, handle);
    if (stream != NULL && us_stream_is_recorded(stream)) {
        us_capture_invalidate(stream);
        us_refuse(call, "stream", "recorded", ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                  "the work of stream %d is recorded: it cannot take memory of a pool or give it back", (int)stream->id);
    }
    return call->status == 0 ? stream : NULL;
}

static void refuse_allocation(Call *call, size_t size, const Pool *pool)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    us_memory_info(pool->device, &free_bytes, &total_bytes);
    us_refuse(call, "size", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
              "%zu bytes do not fit into the pool: it uses %llu of the %llu bytes it has, and device %d has %zu bytes free",
              size, (unsigned long long)us_pool_number(pool, POOL_USED),
              (unsigned long long)us_pool_number(pool, POOL_RESERVED), (int)pool->device->ordinal, free_bytes);
}

aclError aclrtMemPoolMallocAsync(void **ptr, size_t size, aclrtMemPool memPool, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemPoolMallocAsync");
    require_product(&call);
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    Pool *pool = require_pool(&call, memPool);
    Stream *found = require_stream(&call, stream);
    us_require(&call, found->context->device == pool->device, "memPool", "device", ACL_ERROR_RT_PARAM_INVALID,
               "the pool's memory is that of device %d, and stream %d is on device %d", (int)pool->device->ordinal,
               (int)found->id, (int)found->context->device->ordinal);
    if (call.status == 0 && us_pool_allocate(pool, found, size, call.function, ptr) != MEMORY_OK) {
        refuse_allocation(&call, size, pool);
    }
    return acl_end(&call);
}

aclError aclrtMemPoolFreeAsync(void *ptr, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemPoolFreeAsync");
    require_product(&call);
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    Stream *found = require_stream(&call, stream);
    Explanation why = {""};
    MemoryStatus status = found != NULL ? us_pool_free(found, ptr, call.function, &why) : MEMORY_OK;
    us_require(&call, status != MEMORY_NOT_FOUND, "ptr", "unknown", ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
    us_require(&call, status == MEMORY_OK, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory to queue the return");
    return acl_end(&call);
}
