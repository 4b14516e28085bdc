/* Who may use mapped memory, and what an address belongs to (cann-runtime-3 2, doc 11-01, 11-04, 11-05). */
#include "ascend/ascendcl/runtime.h"

#include <string.h>

/* The mapping that begins at the address: rules virPtr/null, virPtr/unknown. */
static MappingInfo require_mapping(Call *call, Platform *platform, const void *address, void **handle)
{
    MappingInfo info = {0};
    us_require(call, address != NULL, "virPtr", "null", ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
    MemoryStatus status = call->status == 0 ? us_memory_mapping(platform, address, &info, handle) : MEMORY_OK;
    us_require(call, status != MEMORY_NOT_FOUND, "virPtr", "unknown", ACL_ERROR_RT_PARAM_INVALID,
               "nothing is mapped from %p on", address);
    us_require(call, status == MEMORY_OK, "virPtr", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory for another handle");
    return info;
}

/* A bit for the device that a location names. */
static uint64_t require_location(Call *call, const char *parameter, const aclrtMemLocation *location)
{
    int type = call->status == 0 ? (int)location->type : ACL_MEM_LOCATION_TYPE_DEVICE;
    us_require(call, type == ACL_MEM_LOCATION_TYPE_HOST || type == ACL_MEM_LOCATION_TYPE_DEVICE, parameter, "location",
               ACL_ERROR_RT_PARAM_INVALID, "the location's type is %d; it must be 0 or 1", type);
    us_require(call, type == ACL_MEM_LOCATION_TYPE_DEVICE, parameter, "host", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "the host cannot be let into memory of a device, which is not emulated");
    const Device *device = call->status == 0 ? acl_require_device(call, parameter, "device", location->id) : NULL;
    return device != NULL ? (uint64_t)1 << device->ordinal : 0;
}

aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count)
{
    Call call = us_call_begin("aclrtMemSetAccess");
    us_require(&call, desc != NULL, "desc", "null", ACL_ERROR_INVALID_PARAM, "desc is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, count > 0, "count", "zero", ACL_ERROR_INVALID_PARAM, "count is 0; it must be at least 1");
    Platform *platform = acl_require_platform(&call);
    MappingInfo info = require_mapping(&call, platform, virPtr, NULL);
    us_require(&call, size == info.size, "size", "whole", ACL_ERROR_RT_PARAM_INVALID,
               "size is %zu; it must be that of the mapping, %zu", size, info.size);
    uint64_t devices = 0;
    for (size_t i = 0; call.status == 0 && i < count; i++) {
        us_require(&call, desc[i].flags == ACL_RT_MEM_ACCESS_FLAGS_READWRITE, "desc", "flags", ACL_ERROR_RT_PARAM_INVALID,
                   "flags of description %zu is %d; it must be 3, reading and writing", i, (int)desc[i].flags);
        devices |= require_location(&call, "desc", &desc[i].location);
    }
    if (call.status == 0) {
        us_memory_let_use(platform, virPtr, devices);
    }
    return acl_end(&call);
}

aclError aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location, uint64_t *flag)
{
    Call call = us_call_begin("aclrtMemGetAccess");
    us_require(&call, location != NULL, "location", "null", ACL_ERROR_INVALID_PARAM, "location is NULL");
    us_require(&call, flag != NULL, "flag", "null", ACL_ERROR_INVALID_PARAM, "flag is NULL");
    Platform *platform = acl_require_platform(&call);
    MappingInfo info = require_mapping(&call, platform, virPtr, NULL);
    uint64_t asked = require_location(&call, "location", location);
    if (call.status == 0) {
        uint64_t own = info.closed ? 0 : (uint64_t)1 << info.device->ordinal;
        bool may = ((info.also | own) & asked) != 0;
        *flag = may ? ACL_RT_MEM_ACCESS_FLAGS_READWRITE : ACL_RT_MEM_ACCESS_FLAGS_NONE;
    }
    return acl_end(&call);
}

aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
    Call call = us_call_begin("aclrtMemRetainAllocationHandle");
    us_require(&call, handle != NULL, "handle", "null", ACL_ERROR_INVALID_PARAM, "handle is NULL");
    Platform *platform = acl_require_platform(&call);
    void *made = NULL;
    require_mapping(&call, platform, virPtr, &made);
    if (call.status == 0) {
        *handle = made;
    }
    return acl_end(&call);
}

aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize)
{
    Call call = us_call_begin("aclrtMemGetAddressRange");
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    us_require(&call, pbase != NULL || psize != NULL, "pbase", "null", ACL_ERROR_INVALID_PARAM,
               "pbase and psize are both NULL");
    Platform *platform = acl_require_platform(&call);
    Allocation block = {0};
    bool known = platform != NULL && us_memory_find(platform, ptr, &block) && !block.freed &&
                 (uintptr_t)ptr - block.address < block.size;
    us_require(&call, known, "ptr", "unknown", ACL_ERROR_RT_PARAM_INVALID, "%p is in no live block of this library", ptr);
    if (call.status == 0 && pbase != NULL) {
        *pbase = (void *)block.address;
    }
    if (call.status == 0 && psize != NULL) {
        *psize = block.size;
    }
    return acl_end(&call);
}

/* One of ACL_RT_MEM_TYPE_*, or 0. */
static uint32_t type_of(Platform *platform, const void *address)
{
    Allocation block;
    void *first = NULL;
    size_t size = 0;
    if (us_address_find(platform, address, &first, &size)) {
        return ACL_RT_MEM_TYPE_RSVD;
    }
    bool device = us_memory_find(platform, address, &block) && !block.freed && block.kind == MEMORY_DEVICE;
    return device ? ACL_RT_MEM_TYPE_DEV : 0;
}

aclError aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType, uint32_t *checkResult, uint32_t reserve)
{
    static const uint32_t KNOWN = ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
    Call call = us_call_begin("aclrtCheckMemType");
    us_require(&call, addrList != NULL, "addrList", "null", ACL_ERROR_INVALID_PARAM, "addrList is NULL");
    us_require(&call, checkResult != NULL, "checkResult", "null", ACL_ERROR_INVALID_PARAM, "checkResult is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, memType != 0 && (memType & ~KNOWN) == 0, "memType", "range", ACL_ERROR_RT_PARAM_INVALID,
               "memType is 0x%x; it must be one or several of 0x%x", (unsigned)memType, (unsigned)KNOWN);
    us_require(&call, reserve == 0, "reserve", "reserved", ACL_ERROR_RT_PARAM_INVALID, "reserve is %u; it must be 0",
               (unsigned)reserve);
    Platform *platform = acl_require_platform(&call);
    if (call.status == 0) {
        uint32_t matching = 0;
        for (uint32_t i = 0; i < size; i++) {
            matching += (type_of(platform, addrList[i]) & memType) != 0;
        }
        *checkResult = matching == size;
    }
    return acl_end(&call);
}

aclError aclrtMemP2PMap(void *devPtr, size_t size, int32_t dstDevId, uint64_t flags)
{
    Call call = us_call_begin("aclrtMemP2PMap");
    us_require(&call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, flags == 0, "flags", "range", ACL_ERROR_RT_PARAM_INVALID, "flags is %llu; it must be 0",
               (unsigned long long)flags);
    const Device *other = acl_require_device(&call, "dstDevId", "range", dstDevId);
    Explanation why = {""};
    /* Copies and kernels need nothing prepared; what they could not use is refused now. */
    us_require(&call, us_memory_open(other->platform, other, devPtr, size, MEMORY_USER_KERNEL, &why) != NULL, "devPtr",
               "unreachable", ACL_ERROR_RT_PARAM_INVALID, "%s", why.text);
    return acl_end(&call);
}
