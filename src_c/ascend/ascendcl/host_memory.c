/* Page-locked host memory (cann-runtime 8 and 9, doc 11-02). */
#include "ascend/ascendcl/runtime.h"

static const uintptr_t PAGE = 4096;

static bool has_common_address(const aclrtMallocConfig *cfg)
{
    bool common = false;
    for (size_t i = 0; cfg != NULL && cfg->attrs != NULL && i < cfg->numAttrs; i++) {
        common |= cfg->attrs[i].attr == ACL_RT_MEM_ATTR_VA_FLAG && cfg->attrs[i].value.vaFlag == 1;
    }
    return common;
}

static void mark_common(Allocation *block, void *context)
{
    (void)context;
    block->common = true;
}

/* `registered`: a bool. */
static void open_both_sides(Allocation *block, void *registered)
{
    block->both_sides = block->common && *(const bool *)registered;
}

static void allocate_host(Call *call, const char *parameter, void **hostPtr, uint64_t size)
{
    us_require(call, hostPtr != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    us_require(call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    Context *context = acl_require_context(call, "context", "none");
    if (call->status != 0) {
        return;
    }
    size_t mapped = size <= SIZE_MAX - PAGE ? (size + PAGE - 1) / PAGE * PAGE : size;
    BlockSize sizes = {.asked = size, .charged = size, .mapped = mapped};
    MemoryStatus status = us_memory_allocate(context->device, MEMORY_PINNED, sizes, call->function, hostPtr);
    us_require(call, status == MEMORY_OK, "size", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "the host has no %llu bytes left", (unsigned long long)size);
}

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
    Call call = us_call_begin("aclrtMallocHost");
    allocate_host(&call, "hostPtr", hostPtr, size);
    return acl_end(&call);
}

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg)
{
    Call call = us_call_begin("aclrtMallocHostWithCfg");
    allocate_host(&call, "ptr", ptr, size);
    if (call.status == 0 && has_common_address(cfg)) {
        us_memory_visit(acl_require_platform(&call), *ptr, mark_common, NULL);
    }
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

aclError aclrtFreeHostWithDevSync(void *hostPtr)
{
    Call call = us_call_begin("aclrtFreeHostWithDevSync");
    us_require(&call, hostPtr != NULL, "hostPtr", "null", ACL_ERROR_INVALID_PARAM, "hostPtr is NULL");
    Context *context = acl_require_context(&call, "context", "none");
    if (context != NULL) {
        us_device_synchronize(context->device, -1); /* faults stay for their own streams' synchronise */
    }
    free_host(&call, hostPtr);
    return acl_end(&call);
}

/* ---- existing memory ---- */

static void register_host(Call *call, void *ptr, uint64_t size, bool mapped)
{
    us_require(call, (uintptr_t)ptr % PAGE == 0, "ptr", "alignment", ACL_ERROR_RT_PARAM_INVALID,
               "ptr is %p; it must be a multiple of 4096", ptr);
    us_require(call, size <= UINTPTR_MAX - (uintptr_t)ptr, "size", "overflow", ACL_ERROR_RT_PARAM_INVALID,
               "%llu bytes from %p exceed the address space", (unsigned long long)size, ptr);
    Platform *platform = acl_require_platform(call);
    Allocation block;
    us_require(call, !us_memory_find(platform, ptr, &block) || block.kind != MEMORY_DEVICE, "ptr", "device",
               ACL_ERROR_RT_PARAM_INVALID, "%p is device memory", ptr);
    MemoryStatus status = call->status == 0 ? us_memory_register(platform, ptr, size, mapped, call->function) : MEMORY_OK;
    us_require(call, status != MEMORY_NOT_FOUND, "ptr", "unmapped", ACL_ERROR_RT_PARAM_INVALID,
               "this process has no memory of %llu bytes at %p", (unsigned long long)size, ptr);
    us_require(call, status == MEMORY_OK, "ptr", "registered",
               ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "some of the %llu bytes from %p are registered already",
               (unsigned long long)size, ptr);
    if (call->status == 0) {
        us_memory_visit(platform, ptr, open_both_sides, &mapped);
    }
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr)
{
    Call call = us_call_begin("aclrtHostRegister");
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    us_require(&call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, type == ACL_HOST_REGISTER_MAPPED, "type", "range", ACL_ERROR_INVALID_PARAM,
               "type is %d; only ACL_HOST_REGISTER_MAPPED (0) exists", (int)type);
    register_host(&call, ptr, size, true);
    if (call.status == 0) {
        *devPtr = ptr;
    }
    return acl_end(&call);
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
    static const uint32_t KNOWN_FLAGS = ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED;
    Call call = us_call_begin("aclrtHostRegisterV2");
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, flag != 0 && (flag & ~KNOWN_FLAGS) == 0, "flag", "range", ACL_ERROR_RT_PARAM_INVALID,
               "flag is 0x%x; it must be one or both of 0x%x", (unsigned)flag, (unsigned)KNOWN_FLAGS);
    register_host(&call, ptr, size, (flag & ACL_HOST_REG_MAPPED) != 0);
    return acl_end(&call);
}

aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag)
{
    Call call = us_call_begin("aclrtHostGetDevicePointer");
    us_require(&call, pHost != NULL, "pHost", "null", ACL_ERROR_INVALID_PARAM, "pHost is NULL");
    us_require(&call, pDevice != NULL, "pDevice", "null", ACL_ERROR_INVALID_PARAM, "pDevice is NULL");
    us_require(&call, flag == 0, "flag", "range", ACL_ERROR_INVALID_PARAM, "flag is %u; it must be 0", (unsigned)flag);
    Platform *platform = acl_require_platform(&call);
    Allocation block;
    us_require(&call, us_memory_find(platform, pHost, &block) && block.kind == MEMORY_PINNED && !block.freed, "pHost",
               "unregistered", ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is no registered host memory", pHost);
    if (call.status == 0) {
        *pDevice = pHost;
    }
    return acl_end(&call);
}

aclError aclrtHostUnregister(void *ptr)
{
    Call call = us_call_begin("aclrtHostUnregister");
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    Platform *platform = acl_require_platform(&call);
    us_require(&call, us_memory_unregister(platform, ptr) == MEMORY_OK, "ptr", "unregistered",
               ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is not the first byte of registered host memory", ptr);
    if (call.status == 0) {
        bool registered = false;
        us_memory_visit(platform, ptr, open_both_sides, &registered);
    }
    return acl_end(&call);
}
