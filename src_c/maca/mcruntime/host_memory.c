/* Page-locked host memory: allocated, or registered afterwards (maca-runtime 3.3, 4). */
#include "maca/mcruntime/runtime.h"

enum {
    HOST_FLAGS = mcMallocHostPortable | mcMallocHostMapped | mcMallocHostWriteCombined,
    REGISTER_FLAGS = mcHostRegisterPortable | mcHostRegisterMapped | mcHostRegisterIoMemory,
};

mcError_t mcMallocHost(void **p, size_t size, unsigned int flags)
{
    Call call = us_call_begin("mcMallocHost");
    us_require(&call, p != NULL, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    us_require(&call, (flags & ~(unsigned int)HOST_FLAGS) == 0, "flags", "range", mcErrorInvalidValue,
               "flags is 0x%x; 0x%x are known", flags, (unsigned int)HOST_FLAGS);
    Device *device = require_device(&call);
    if (call.status == 0 && size == 0) {
        *p = NULL;
        return runtime_end(&call);
    }
    runtime_allocate(&call, device, MEMORY_PINNED, size, p);
    return runtime_end(&call);
}

/* Queued copies may use the memory, whatever device they run on. */
static void synchronize_started_devices(Call *call, Platform *platform)
{
    for (int32_t i = 0; i < platform->device_count; i++) {
        Device *device = __atomic_load_n(&platform->devices[i], __ATOMIC_ACQUIRE);
        if (device != NULL) {
            runtime_synchronize_device(call, device);
        }
    }
}

mcError_t mcFreeHost(void *p)
{
    Call call = us_call_begin("mcFreeHost");
    Device *device = require_device(&call);
    if (call.status != 0 || p == NULL) {
        return runtime_end(&call);
    }
    synchronize_started_devices(&call, device->platform);
    if (call.status == 0) {
        Explanation why = {{0}};
        us_require(&call, us_memory_free(device->platform, MEMORY_PINNED, p, &why) == MEMORY_OK, "p", "allocated",
                   mcErrorInvalidValue, "%s", why.text);
    }
    return runtime_end(&call);
}

/* Whether a live block of ours holds any byte of the range. */
static bool overlaps_block(Platform *platform, const void *p, size_t n)
{
    Allocation block;
    return us_memory_find(platform, p, &block) && !block.freed && n > 0 && (uintptr_t)p - block.address < block.size;
}

mcError_t mcHostRegister(void *p, size_t n, unsigned int flags)
{
    Call call = us_call_begin("mcHostRegister");
    us_require(&call, p != NULL, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    us_require(&call, n > 0, "n", "range", mcErrorInvalidValue, "n must not be 0");
    us_require(&call, n <= UINTPTR_MAX - (uintptr_t)p, "n", "overflow", mcErrorInvalidValue,
               "%zu bytes from %p exceed the address space", n, p);
    us_require(&call, (flags & ~(unsigned int)REGISTER_FLAGS) == 0, "flags", "range", mcErrorInvalidValue,
               "flags is 0x%x; 0x%x are known", flags, (unsigned int)REGISTER_FLAGS);
    us_require(&call, (flags & mcHostRegisterIoMemory) == 0, "flags", "io-memory", mcErrorNotSupported,
               "memory of other devices cannot be registered");
    Device *device = require_device(&call);
    if (call.status == 0) {
        Allocation block;
        bool ours = us_memory_find(device->platform, p, &block) && block.device != NULL;
        us_require(&call, !ours, "p", "host", mcErrorInvalidValue, "%p is memory of device %d, not host memory", p,
                   ours ? (int)block.device->ordinal : 0);
        us_require(&call, !overlaps_block(device->platform, p, n), "p", "registered",
                   mcErrorHostMemoryAlreadyRegistered, "%p is page-locked already", p);
        MemoryStatus status = call.status == 0 ? us_memory_register(device->platform, p, n, true, "mcHostRegister") : MEMORY_OK;
        us_require(&call, status != MEMORY_NOT_FOUND, "p", "unmapped", mcErrorInvalidValue,
                   "this process has no memory of %zu bytes at %p", n, p);
        us_require(&call, status == MEMORY_OK, "p", "registered",
                   mcErrorHostMemoryAlreadyRegistered, "the %zu bytes from %p overlap a registered range", n, p);
    }
    return runtime_end(&call);
}

mcError_t mcHostUnregister(void *p)
{
    Call call = us_call_begin("mcHostUnregister");
    us_require(&call, p != NULL, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    Device *device = require_device(&call);
    if (call.status == 0) {
        synchronize_started_devices(&call, device->platform);
        us_require(&call, us_memory_unregister(device->platform, p) == MEMORY_OK, "p", "registered",
                   mcErrorHostMemoryNotRegistered, "no registered range begins at %p", p);
    }
    return runtime_end(&call);
}

mcError_t mcHostGetDevicePointer(void **dev, void *host, unsigned int flags)
{
    Call call = us_call_begin("mcHostGetDevicePointer");
    us_require(&call, dev != NULL, "dev", "null", mcErrorInvalidValue, "dev must not be NULL");
    us_require(&call, host != NULL, "host", "null", mcErrorInvalidValue, "host must not be NULL");
    us_require(&call, flags == 0, "flags", "range", mcErrorInvalidValue, "flags is %u, not 0", flags);
    Device *device = require_device(&call);
    if (call.status == 0) {
        Allocation block;
        bool pinned = us_memory_find(device->platform, host, &block) && !block.freed && block.kind == MEMORY_PINNED &&
                      (uintptr_t)host - block.address < block.size;
        us_require(&call, pinned, "host", "page-locked", mcErrorInvalidValue,
                   "%p is not page-locked memory (mcMallocHost, mcHostRegister)", host);
        if (call.status == 0) {
            *dev = host;
        }
    }
    return runtime_end(&call);
}
