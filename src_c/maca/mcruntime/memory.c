/* Device and managed memory, and what pointers are (maca-runtime 5.5 to 5.7). */
#include "maca/mcruntime/runtime.h"

void runtime_allocate(Call *call, Device *device, MemoryKind kind, size_t size, void **address)
{
    if (call->status != 0) {
        return;
    }
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    us_memory_info(device, &free_bytes, &total_bytes);
    void *block = NULL;
    const bool fits = us_memory_allocate(device, kind, us_exactly(size), call->function, &block) == MEMORY_OK;
    us_require(call, fits || kind != MEMORY_PINNED, "size", "memory", mcErrorMemoryAllocation,
               "%zu bytes wanted, which the host does not have", size);
    us_require(call, fits, "size", "memory", mcErrorMemoryAllocation, "%zu bytes wanted, %zu of %zu bytes are free", size,
               free_bytes, total_bytes);
    if (call->status == 0) {
        *address = block;
    }
}

mcError_t mcMalloc(void **p, size_t size)
{
    Call call = us_call_begin("mcMalloc");
    us_require(&call, p != NULL, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    Device *device = require_device(&call);
    if (call.status == 0) {
        require_safe(&call, device);
    }
    if (call.status == 0 && size == 0) {
        *p = NULL;
        return runtime_end(&call);
    }
    runtime_allocate(&call, device, MEMORY_DEVICE, size, p);
    return runtime_end(&call);
}

mcError_t mcMallocManaged(void **p, size_t size, unsigned int flags)
{
    Call call = us_call_begin("mcMallocManaged");
    us_require(&call, p != NULL, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    us_require(&call, size > 0, "size", "range", mcErrorInvalidValue, "size must not be 0");
    us_require(&call, flags == mcMemAttachGlobal || flags == mcMemAttachHost, "flags", "range", mcErrorInvalidValue,
               "flags is %u, neither mcMemAttachGlobal nor mcMemAttachHost", flags);
    Device *device = require_device(&call);
    if (call.status == 0) {
        require_safe(&call, device);
    }
    runtime_allocate(&call, device, MEMORY_MANAGED, size, p);
    return runtime_end(&call);
}

mcError_t mcFree(void *p)
{
    Call call = us_call_begin("mcFree");
    Device *current = require_device(&call);
    if (call.status == 0) {
        require_safe(&call, current);
    }
    if (call.status != 0 || p == NULL) {
        return runtime_end(&call);
    }
    Platform *platform = current->platform;
    Allocation block;
    bool found = us_memory_find(platform, p, &block) && block.device != NULL;
    us_require(&call, !runtime_free_is_queued(p), "p", "queued", mcErrorInvalidValue,
               "%p is being freed by an earlier mcFreeAsync", p);
    /* Work that may still use the block is waited for (5.6). */
    runtime_synchronize_device(&call, found ? block.device : current);
    if (call.status == 0) {
        Explanation why = {{0}};
        MemoryKind kind = found && block.kind == MEMORY_MANAGED ? MEMORY_MANAGED : MEMORY_DEVICE;
        us_require(&call, us_memory_free(platform, kind, p, &why) == MEMORY_OK, "p", "allocated", mcErrorInvalidValue,
                   "%s", why.text);
    }
    return runtime_end(&call);
}

mcError_t mcMemGetInfo(size_t *freeBytes, size_t *totalBytes)
{
    Call call = us_call_begin("mcMemGetInfo");
    us_require(&call, freeBytes != NULL, "freeBytes", "null", mcErrorInvalidValue, "freeBytes must not be NULL");
    us_require(&call, totalBytes != NULL, "totalBytes", "null", mcErrorInvalidValue, "totalBytes must not be NULL");
    Device *device = require_device(&call);
    if (call.status == 0) {
        us_memory_info(device, freeBytes, totalBytes);
    }
    return runtime_end(&call);
}

/* As a live block: size bytes from `address` on. */
static mcPointerAttribute_t attributes_of(const Allocation *block, const void *address, int current)
{
    void *pointer = (void *)(uintptr_t)address;
    bool host_sees = block->kind != MEMORY_DEVICE;
    mcMemoryType types[] = {
        [MEMORY_HOST] = mcMemoryTypeUnregistered,
        [MEMORY_DEVICE] = mcMemoryTypeDevice,
        [MEMORY_PINNED] = mcMemoryTypeHost,
        [MEMORY_MANAGED] = mcMemoryTypeManaged,
    };
    return (mcPointerAttribute_t){
        .type = types[block->kind],
        .device = block->device != NULL ? block->device->ordinal : current,
        .devicePointer = pointer,
        .hostPointer = host_sees ? pointer : NULL,
        .isManaged = block->kind == MEMORY_MANAGED,
    };
}

mcError_t mcPointerGetAttributes(mcPointerAttribute_t *attr, const void *p)
{
    Call call = us_call_begin("mcPointerGetAttributes");
    us_require(&call, attr != NULL, "attr", "null", mcErrorInvalidValue, "attr must not be NULL");
    us_require(&call, p != NULL, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    Device *device = require_device(&call);
    if (call.status == 0) {
        Allocation block;
        bool alive = us_memory_find(device->platform, p, &block) && !block.freed &&
                     (uintptr_t)p - block.address < block.size;
        if (alive) {
            *attr = attributes_of(&block, p, device->ordinal);
        } else {
            *attr = (mcPointerAttribute_t){.type = mcMemoryTypeUnregistered, .device = -2};
        }
    }
    return runtime_end(&call);
}
