/* Physical memory and reserved addresses (cann-runtime 9, doc 11-04). */
#include "ascend/ascendcl/runtime.h"

#include "device/ranges.h"

#include <string.h>

static const size_t HUGE_PAGE = (size_t)2 << 20;
static const size_t GIANT_PAGE = (size_t)1 << 30;

size_t acl_normal_page(void)
{
    static const size_t CARD_PAGE = 4096;
    return CARD_PAGE > us_page_size() ? CARD_PAGE : us_page_size();
}

static size_t granularity_of(aclrtMemAttr attribute)
{
    switch (attribute) {
    case ACL_HBM_MEM_HUGE1G:
    case ACL_HBM_MEM_P2P_HUGE1G:
    case ACL_MEM_HUGE1G:
    case ACL_MEM_P2P_HUGE1G:
        return GIANT_PAGE;
    case ACL_DDR_MEM_NORMAL:
    case ACL_HBM_MEM_NORMAL:
    case ACL_DDR_MEM_P2P_NORMAL:
    case ACL_HBM_MEM_P2P_NORMAL:
    case ACL_MEM_NORMAL:
    case ACL_MEM_P2P_NORMAL:
        return acl_normal_page();
    default:
        return HUGE_PAGE;
    }
}

/* Checks the parts of a description, and gives the device it names. */
static Device *require_property(Call *call, const aclrtPhysicalMemProp *prop)
{
    us_require(call, prop->handleType == ACL_MEM_HANDLE_TYPE_NONE, "prop", "handle-type", ACL_ERROR_INVALID_PARAM,
               "handleType is %d; it must be 0", (int)prop->handleType);
    us_require(call, prop->allocationType == ACL_MEM_ALLOCATION_TYPE_PINNED, "prop", "allocation-type",
               ACL_ERROR_INVALID_PARAM, "allocationType is %d; it must be 0", (int)prop->allocationType);
    us_require(call, (int)prop->memAttr >= ACL_DDR_MEM && (int)prop->memAttr <= ACL_MEM_P2P_HUGE1G, "prop", "attribute",
               ACL_ERROR_INVALID_PARAM, "memAttr is %d; it must be 0 to %d", (int)prop->memAttr,
               (int)ACL_MEM_P2P_HUGE1G);
    int type = (int)prop->location.type;
    us_require(call,
               type == ACL_MEM_LOCATION_TYPE_DEVICE || type == ACL_MEM_LOCATION_TYPE_HOST ||
                   type == ACL_MEM_LOCATION_TYPE_HOST_NUMA,
               "prop", "location", ACL_ERROR_INVALID_PARAM, "location.type is %d; it must be a host or a device", type);
    us_require(call, type == ACL_MEM_LOCATION_TYPE_DEVICE, "prop", "host", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "physical memory of the host is not emulated (location.type is %d)", type);
    return call->status == 0 ? acl_require_device(call, "prop", "device", prop->location.id) : NULL;
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags)
{
    (void)expectPtr; /* a hint */
    Call call = us_call_begin("aclrtReserveMemAddress");
    us_require(&call, virPtr != NULL, "virPtr", "null", ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, (alignment & (alignment - 1)) == 0, "alignment", "range", ACL_ERROR_INVALID_PARAM,
               "alignment is %zu; it must be 0 or a power of two", alignment);
    us_require(&call, flags <= 1, "flags", "range", ACL_ERROR_INVALID_PARAM, "flags is %llu; it must be 0 or 1",
               (unsigned long long)flags);
    Platform *platform = acl_require_platform(&call);
    us_require(&call, us_address_reserve(platform, size, alignment, virPtr) == MEMORY_OK, "size", "memory",
               ACL_ERROR_RT_MEMORY_ALLOCATION, "no %zu addresses in a row are left", size);
    return acl_end(&call);
}

aclError aclrtReleaseMemAddress(void *virPtr)
{
    Call call = us_call_begin("aclrtReleaseMemAddress");
    us_require(&call, virPtr != NULL, "virPtr", "null", ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
    Platform *platform = acl_require_platform(&call);
    Explanation why = {""};
    us_require(&call, us_address_release(platform, virPtr, &why) == MEMORY_OK, "virPtr", "unknown",
               ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
    return acl_end(&call);
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags)
{
    Call call = us_call_begin("aclrtMallocPhysical");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, prop != NULL, "prop", "null", ACL_ERROR_INVALID_PARAM, "prop is NULL");
    us_require(&call, flags == 0, "flags", "range", ACL_ERROR_INVALID_PARAM, "flags is %llu; it must be 0",
               (unsigned long long)flags);
    Device *device = call.status == 0 ? require_property(&call, prop) : NULL;
    us_require(&call, size % granularity_of(prop->memAttr) == 0, "size", "granularity", ACL_ERROR_RT_PARAM_INVALID,
               "size is %zu; memory of this kind comes in pieces of %zu bytes", size, granularity_of(prop->memAttr));
    us_require(&call, us_physical_allocate(device, size, (int32_t)prop->memAttr, handle) == MEMORY_OK, "size", "memory",
               ACL_ERROR_RT_MEMORY_ALLOCATION, "device %d has no %zu bytes left", (int)device->ordinal, size);
    return acl_end(&call);
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
{
    Call call = us_call_begin("aclrtFreePhysical");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    Platform *platform = acl_require_platform(&call);
    us_require(&call, us_physical_free(platform, handle) == MEMORY_OK, "handle", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "%p is no live handle of physical memory", handle);
    return acl_end(&call);
}

/* The header of aclrtMemMapNoAccess (closed) names 100000 for every argument but offset; aclrtMapMem's page names none. */
static void map(Call *call, void *address, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags,
                bool closed)
{
    const aclError invalid = closed ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_PARAM_INVALID;
    us_require(call, address != NULL, "virPtr", "null", ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
    us_require(call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    us_require(call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(call, flags == 0, "flags", "range", ACL_ERROR_INVALID_PARAM, "flags is %llu; it must be 0",
               (unsigned long long)flags);
    us_require(call, offset == 0, "offset", "range", ACL_ERROR_RT_PARAM_INVALID, "offset is %zu; it must be 0",
               offset);
    Platform *platform = acl_require_platform(call);
    PhysicalInfo info = {0};
    us_require(call, us_physical_find(platform, handle, &info), "handle", "dead",
               closed ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_INVALID_HANDLE, "%p is no live handle of physical memory",
               handle);
    us_require(call, size == info.size, "size", "whole", invalid,
               "size is %zu; it must be that of the physical memory, %zu", size, info.size);
    Explanation why = {""};
    MemoryStatus status = call->status == 0 ? us_memory_map(platform, address, handle, closed, &why) : MEMORY_OK;
    us_require(call, status != MEMORY_NOT_FOUND, "virPtr", "unknown", invalid, "%s", why.text);
    us_require(call, status == MEMORY_OK, "size", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION, "%s", why.text);
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags)
{
    Call call = us_call_begin("aclrtMapMem");
    map(&call, virPtr, size, offset, handle, flags, false);
    return acl_end(&call);
}

aclError aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags)
{
    Call call = us_call_begin("aclrtMemMapNoAccess");
    map(&call, virPtr, size, offset, handle, flags, true);
    return acl_end(&call);
}

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle, aclrtPhysicalMemProp *prop)
{
    Call call = us_call_begin("aclrtMemGetAllocationPropertiesFromHandle");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    us_require(&call, prop != NULL, "prop", "null", ACL_ERROR_INVALID_PARAM, "prop is NULL");
    Platform *platform = acl_require_platform(&call);
    PhysicalInfo info = {0};
    us_require(&call, us_physical_find(platform, handle, &info), "handle", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "%p is no live handle of physical memory", handle);
    us_require(&call, info.attribute >= 0, "handle", "imported", ACL_ERROR_RT_PARAM_INVALID,
               "%p is memory of another process, which knows its properties", handle);
    if (call.status == 0) {
        *prop = (aclrtPhysicalMemProp){
            .handleType = ACL_MEM_HANDLE_TYPE_NONE,
            .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
            .memAttr = (aclrtMemAttr)info.attribute,
            .location = {.id = (uint32_t)info.device->ordinal, .type = ACL_MEM_LOCATION_TYPE_DEVICE},
        };
    }
    return acl_end(&call);
}

aclError aclrtUnmapMem(void *virPtr)
{
    Call call = us_call_begin("aclrtUnmapMem");
    us_require(&call, virPtr != NULL, "virPtr", "null", ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
    Platform *platform = acl_require_platform(&call);
    Explanation why = {""};
    us_require(&call, us_memory_unmap(platform, virPtr, &why) == MEMORY_OK, "virPtr", "unknown",
               ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
    return acl_end(&call);
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option,
                                          size_t *granularity)
{
    Call call = us_call_begin("aclrtMemGetAllocationGranularity");
    us_require(&call, prop != NULL, "prop", "null", ACL_ERROR_INVALID_PARAM, "prop is NULL");
    us_require(&call, granularity != NULL, "granularity", "null", ACL_ERROR_INVALID_PARAM, "granularity is NULL");
    us_require(&call,
               option == ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM || option == ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
               "option", "range", ACL_ERROR_INVALID_PARAM, "option is %d; it must be 0 or 1", (int)option);
    if (call.status == 0) {
        require_property(&call, prop);
    }
    if (call.status == 0) {
        *granularity = granularity_of(prop->memAttr);
    }
    return acl_end(&call);
}
