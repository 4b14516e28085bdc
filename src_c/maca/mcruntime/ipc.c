/* Memory and events of several processes, by handles that programs send each other (maca-runtime 7.5: names and types
 * only; signatures and rules are CUDA's). */
#include "maca/mcruntime/runtime.h"

#include <string.h>
#include <unistd.h>

/* What a handle's bytes hold; the rest is 0. */
typedef struct SharedKey {
    char mark[8];
    uint64_t key;
} SharedKey;

_Static_assert(sizeof(SharedKey) <= sizeof(mcIpcMemHandle_t) && sizeof(SharedKey) <= sizeof(mcIpcEventHandle_t),
               "a key fits into a handle");

static const char MEMORY_MARK[8] = "mcMemory", EVENT_MARK[8] = "mcEvent";

static void write_key(char *handle, size_t size, const char *mark, uint64_t key)
{
    SharedKey shared = {.key = key};
    memcpy(shared.mark, mark, sizeof shared.mark);
    memset(handle, 0, size);
    memcpy(handle, &shared, sizeof shared);
}

/* 0, which is nobody's key, of bytes that are no handle of this kind. */
static uint64_t read_key(const char *handle, const char *mark)
{
    SharedKey shared;
    memcpy(&shared, handle, sizeof shared);
    return memcmp(shared.mark, mark, sizeof shared.mark) == 0 ? shared.key : 0;
}

/* What the core says of an offer that was taken. */
static void require_shared(Call *call, IpcStatus status, const Explanation *why)
{
    us_require(call, status == IPC_OK || status == IPC_EXHAUSTED, "handle", "unknown", mcErrorInvalidValue,
               "the handle cannot be opened: %s", why->text);
    us_require(call, status == IPC_OK, "handle", "resources", mcErrorMemoryAllocation, "%s", why->text);
}

mcError_t mcIpcGetMemHandle(mcIpcMemHandle_t *handle, void *devPtr)
{
    Call call = us_call_begin("mcIpcGetMemHandle");
    us_require(&call, handle != NULL, "handle", "null", mcErrorInvalidValue, "handle must not be NULL");
    us_require(&call, devPtr != NULL, "devPtr", "null", mcErrorInvalidValue, "devPtr must not be NULL");
    Device *device = require_device(&call);
    Allocation block = {0};
    bool found = call.status == 0 && us_memory_find(device->platform, devPtr, &block) && !block.freed &&
                 block.kind == MEMORY_DEVICE && block.address == (uintptr_t)devPtr;
    us_require(&call, found, "devPtr", "allocated", mcErrorInvalidValue,
               "%p is not the first byte of live device memory", devPtr);
    if (call.status != 0) {
        return runtime_end(&call);
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (block.reach + page - 1) / page * page;
    uint64_t key = 0;
    Explanation why = {""};
    const bool shared = block.shared_file != 0 && us_ipc_offered(block.shared_file - 1, &key);
    IpcStatus status = shared ? IPC_OK : us_memory_share(device->platform, devPtr, size, true, &key, &why);
    us_require(&call, status != IPC_UNKNOWN, "devPtr", "imported", mcErrorInvalidValue, "%s", why.text);
    us_require(&call, status == IPC_OK, "devPtr", "resources", mcErrorMemoryAllocation, "%s", why.text);
    if (call.status == 0) {
        write_key(handle->reserved, sizeof handle->reserved, MEMORY_MARK, key);
    }
    return runtime_end(&call);
}

mcError_t mcIpcOpenMemHandle(void **devPtr, mcIpcMemHandle_t handle, unsigned int flags)
{
    Call call = us_call_begin("mcIpcOpenMemHandle");
    us_require(&call, devPtr != NULL, "devPtr", "null", mcErrorInvalidValue, "devPtr must not be NULL");
    us_require(&call, flags == mcIpcMemLazyEnablePeerAccess, "flags", "range", mcErrorInvalidValue,
               "flags is %u, not mcIpcMemLazyEnablePeerAccess", flags);
    Device *device = require_device(&call);
    if (call.status == 0) {
        Explanation why = {""};
        void *address = NULL;
        const uint64_t key = read_key(handle.reserved, MEMORY_MARK);
        require_shared(&call, us_memory_import(device, key, true, &address, &why), &why);
        if (call.status == 0) {
            *devPtr = address;
        }
    }
    return runtime_end(&call);
}

mcError_t mcIpcCloseMemHandle(void *devPtr)
{
    Call call = us_call_begin("mcIpcCloseMemHandle");
    Device *device = require_device(&call);
    uint64_t key = 0;
    us_require(&call, us_memory_import_key(device->platform, devPtr, &key), "devPtr", "opened", mcErrorInvalidValue,
               "%p was not given by mcIpcOpenMemHandle, or has been closed", devPtr);
    runtime_synchronize_device(&call, device); /* work that may still use it */
    if (call.status == 0) {
        us_memory_import_close(device->platform, key);
    }
    return runtime_end(&call);
}

mcError_t mcIpcGetEventHandle(mcIpcEventHandle_t *handle, mcEvent_t event)
{
    Call call = us_call_begin("mcIpcGetEventHandle");
    us_require(&call, handle != NULL, "handle", "null", mcErrorInvalidValue, "handle must not be NULL");
    Event *found = require_event(&call, event);
    us_require(&call, (found->vendor_flags & mcEventInterprocess) != 0, "event", "interprocess",
               mcErrorInvalidResourceHandle, "the event was created without mcEventInterprocess");
    if (call.status == 0) {
        uint64_t key = 0;
        us_require(&call, us_event_share(found, &key) == IPC_OK, "event", "resources", mcErrorMemoryAllocation,
                   "no host memory, thread or file descriptor is left to share the event");
        if (call.status == 0) {
            write_key(handle->reserved, sizeof handle->reserved, EVENT_MARK, key);
        }
    }
    return runtime_end(&call);
}

mcError_t mcIpcOpenEventHandle(mcEvent_t *event, mcIpcEventHandle_t handle)
{
    Call call = us_call_begin("mcIpcOpenEventHandle");
    us_require(&call, event != NULL, "event", "null", mcErrorInvalidValue, "event must not be NULL");
    Device *device = require_device(&call);
    Context *context = call.status == 0 ? us_context_primary(device) : NULL;
    if (context != NULL) {
        Event *opened = NULL;
        Explanation why = {""};
        require_shared(&call, us_event_import(context, read_key(handle.reserved, EVENT_MARK), &opened, &why), &why);
        if (call.status == 0) {
            opened->vendor_flags = mcEventDisableTiming | mcEventInterprocess;
            runtime_bind_event(opened, context);
            *event = opened->handle;
        }
    }
    return runtime_end(&call);
}
