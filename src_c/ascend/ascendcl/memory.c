/* Device memory (cann-runtime 8 and 9, doc 11-01). */
#include "ascend/ascendcl/runtime.h"

#include <stdatomic.h>
#include <string.h>

enum { MEMORY_UNIT = 32, MEMORY_SPARE = 32 };

/* ---- allocate ---- */

void acl_keep_peak(const Device *device)
{
    Runtime *runtime = acl_runtime();
    if (runtime == NULL) {
        return;
    }
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    us_memory_info(device, &free_bytes, &total_bytes);
    _Atomic size_t *peak = &runtime->peak_bytes[device->ordinal];
    size_t known = atomic_load(peak);
    while (known < total_bytes - free_bytes && !atomic_compare_exchange_weak(peak, &known, total_bytes - free_bytes)) {
    }
}

/* The device a configuration names, or else the current one. */
static Device *require_charged_device(Call *call, const aclrtMallocConfig *cfg)
{
    Context *context = acl_require_context(call, "context", "none");
    Device *device = context != NULL ? context->device : NULL;
    size_t count = cfg != NULL ? cfg->numAttrs : 0;
    us_require(call, count == 0 || cfg->attrs != NULL, "cfg", "null", ACL_ERROR_INVALID_PARAM,
               "cfg has %zu attributes, but attrs is NULL", count);
    for (size_t i = 0; i < count && call->status == 0; i++) {
        int attribute = (int)cfg->attrs[i].attr;
        us_require(call, attribute >= ACL_RT_MEM_ATTR_RSV && attribute <= ACL_RT_MEM_ATTR_VA_FLAG, "cfg", "attribute",
                   ACL_ERROR_RT_PARAM_INVALID, "attribute %zu of cfg is %d; it must be 0 to 3", i, attribute);
        if (call->status == 0 && attribute == ACL_RT_MEM_ATTR_DEVICE_ID) {
            device = acl_require_device(call, "cfg", "device", cfg->attrs[i].value.deviceId);
        }
    }
    return device;
}

/* Pages that the card maps for so many bytes (cann-runtime 8); unknown policies mean the default. */
static size_t granule_of(aclrtMemMallocPolicy policy, size_t usable)
{
    static const size_t SMALL_PAGE = 4096;
    static const size_t HUGE_PAGE = (size_t)2 << 20;
    static const size_t GIANT_PAGE = (size_t)1 << 30;
    static const size_t SMALL_BLOCK = (size_t)1 << 20;
    enum { POLICY_MASK = 0xff }; /* above: kinds of memory */
    switch ((int)policy & POLICY_MASK) {
    case ACL_MEM_MALLOC_HUGE_ONLY:
    case ACL_MEM_MALLOC_HUGE_ONLY_P2P:
        return HUGE_PAGE;
    case ACL_MEM_MALLOC_NORMAL_ONLY:
    case ACL_MEM_MALLOC_NORMAL_ONLY_P2P:
        return SMALL_PAGE;
    case ACL_MEM_MALLOC_HUGE1G_ONLY:
    case ACL_MEM_MALLOC_HUGE1G_ONLY_P2P:
        return GIANT_PAGE;
    default:
        return usable <= SMALL_BLOCK ? SMALL_PAGE : HUGE_PAGE;
    }
}

/* `spare`: bytes added to the request before it is rounded up. */
static void allocate(Call *call, void **devPtr, size_t size, size_t spare, aclrtMemMallocPolicy policy,
                     const aclrtMallocConfig *cfg)
{
    us_require(call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    us_require(call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    size_t padding = spare + MEMORY_UNIT - 1;
    us_require(call, size <= SIZE_MAX - padding, "size", "overflow", ACL_ERROR_INVALID_PARAM,
               "size is %zu; rounding it up overflows", size);
    Device *device = require_charged_device(call, cfg);
    if (call->status != 0) {
        return;
    }
    size_t usable = (size + padding) / MEMORY_UNIT * MEMORY_UNIT;
    size_t granule = granule_of(policy, usable);
    size_t mapped = usable <= SIZE_MAX - granule ? (usable + granule - 1) / granule * granule : usable;
    BlockSize sizes = {.asked = size, .charged = usable, .mapped = mapped};
    if (us_memory_allocate(device, MEMORY_DEVICE, sizes, call->function, devPtr) == MEMORY_OK) {
        acl_keep_peak(device);
        return;
    }
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    us_memory_info(device, &free_bytes, &total_bytes);
    us_refuse(call, "size", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
              "%zu bytes do not fit: device %d has %zu of %zu bytes free", usable, (int)device->ordinal, free_bytes,
              total_bytes);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    Call call = us_call_begin("aclrtMalloc");
    allocate(&call, devPtr, size, MEMORY_SPARE, policy, NULL);
    return acl_end(&call);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    Call call = us_call_begin("aclrtMallocAlign32");
    allocate(&call, devPtr, size, 0, policy, NULL);
    return acl_end(&call);
}

aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
    Call call = us_call_begin("aclrtMallocCached");
    allocate(&call, devPtr, size, MEMORY_SPARE, policy, NULL);
    return acl_end(&call);
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg)
{
    Call call = us_call_begin("aclrtMallocWithCfg");
    allocate(&call, devPtr, size, MEMORY_SPARE, policy, cfg);
    return acl_end(&call);
}

aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg)
{
    Call call = us_call_begin("aclrtMallocForTaskScheduler");
    allocate(&call, devPtr, size, MEMORY_SPARE, policy, cfg);
    return acl_end(&call);
}

/* ---- free ---- */

static void free_device_memory(Call *call, void *devPtr)
{
    us_require(call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    Platform *platform = acl_require_platform(call);
    if (platform == NULL) {
        return;
    }
    Explanation why = {""};
    bool freed = us_memory_free(platform, MEMORY_DEVICE, devPtr, &why) == MEMORY_OK;
    Allocation block;
    if (!freed && us_memory_find(platform, devPtr, &block) && block.kind == MEMORY_MANAGED) {
        freed = us_memory_free(platform, MEMORY_MANAGED, devPtr, &why) == MEMORY_OK;
    }
    us_require(call, freed, "devPtr", "unknown", ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
}

aclError aclrtFree(void *devPtr)
{
    Call call = us_call_begin("aclrtFree");
    free_device_memory(&call, devPtr);
    return acl_end(&call);
}

aclError aclrtFreeWithDevSync(void *devPtr)
{
    Call call = us_call_begin("aclrtFreeWithDevSync");
    us_require(&call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    Context *context = acl_require_context(&call, "context", "none");
    if (context != NULL) {
        us_device_synchronize(context->device, -1); /* faults stay for their own streams' synchronise */
    }
    free_device_memory(&call, devPtr);
    return acl_end(&call);
}

/* ---- caches: the host and the device see the same bytes ---- */

static void check_range(Call *call, void *devPtr, size_t size)
{
    us_require(call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    us_require(call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    Platform *platform = acl_require_platform(call);
    Explanation why = {""};
    us_require(call, us_memory_open(platform, NULL, devPtr, size, MEMORY_USER_COPY, &why) != NULL, "devPtr", "bounds",
               ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
}

aclError aclrtMemFlush(void *devPtr, size_t size)
{
    Call call = us_call_begin("aclrtMemFlush");
    check_range(&call, devPtr, size);
    return acl_end(&call);
}

aclError aclrtMemInvalidate(void *devPtr, size_t size)
{
    Call call = us_call_begin("aclrtMemInvalidate");
    check_range(&call, devPtr, size);
    return acl_end(&call);
}

/* ---- how much, and what ---- */

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
    Call call = us_call_begin("aclrtGetMemInfo");
    us_require(&call, free != NULL, "free", "null", ACL_ERROR_INVALID_PARAM, "free is NULL");
    us_require(&call, total != NULL, "total", "null", ACL_ERROR_INVALID_PARAM, "total is NULL");
    us_require(&call, (int)attr >= ACL_DDR_MEM && (int)attr <= ACL_MEM_P2P_HUGE1G, "attr", "range",
               ACL_ERROR_RT_INVALID_MEMORY_TYPE, "attr is %d; it must be 0 to %d", (int)attr, (int)ACL_MEM_P2P_HUGE1G);
    Context *context = acl_require_context(&call, "context", "none");
    if (call.status == 0) {
        us_memory_info(context->device, free, total); /* a device has one memory, whatever is asked for */
    }
    return acl_end(&call);
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum, size_t *outputNum)
{
    Call call = us_call_begin("aclrtGetMemUsageInfo");
    us_require(&call, memUsageInfo != NULL, "memUsageInfo", "null", ACL_ERROR_INVALID_PARAM, "memUsageInfo is NULL");
    us_require(&call, outputNum != NULL, "outputNum", "null", ACL_ERROR_INVALID_PARAM, "outputNum is NULL");
    us_require(&call, inputNum > 0, "inputNum", "zero", ACL_ERROR_INVALID_PARAM,
               "inputNum is 0; memUsageInfo must have room for one entry");
    Device *device = acl_require_device(&call, "deviceId", "range", deviceId);
    Runtime *runtime = device != NULL ? acl_runtime() : NULL;
    if (runtime != NULL) {
        size_t free_bytes = 0;
        size_t total_bytes = 0;
        acl_keep_peak(device); /* mapped memory counts too */
        us_memory_info(device, &free_bytes, &total_bytes);
        memset(memUsageInfo, 0, sizeof *memUsageInfo);
        strcpy(memUsageInfo->name, "APP"); /* the program: nothing else takes memory here */
        memUsageInfo->curMemSize = total_bytes - free_bytes;
        memUsageInfo->memPeakSize = atomic_load(&runtime->peak_bytes[device->ordinal]);
        *outputNum = 1;
    }
    return acl_end(&call);
}

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
{
    static const uint32_t HUGE_PAGE = 2u << 20;
    Call call = us_call_begin("aclrtPointerGetAttributes");
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    us_require(&call, attributes != NULL, "attributes", "null", ACL_ERROR_INVALID_PARAM, "attributes is NULL");
    Platform *platform = acl_require_platform(&call);
    if (platform == NULL) {
        return acl_end(&call);
    }
    Allocation block;
    bool known = us_memory_find(platform, ptr, &block) && !block.freed;
    memset(attributes, 0, sizeof *attributes);
    attributes->pageSize = (uint32_t)acl_normal_page();
    if (!known) {
        attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    } else if (block.kind == MEMORY_DEVICE) {
        attributes->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
        attributes->location.id = (uint32_t)block.device->ordinal;
        if (block.reach % HUGE_PAGE == 0) {
            attributes->pageSize = HUGE_PAGE;
        }
    } else {
        attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
    }
    return acl_end(&call);
}
