/* Stream-ordered memory (maca-runtime 4). A block exists from the call that allocates it: its bytes are no other block's, so
 * nothing queued earlier can disturb it. It ends in the order of the stream it is freed in. */
#include "maca/mcruntime/runtime.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- frees that are queued: a block may be freed once only ------------------------------------------------------- */

typedef struct QueuedFree {
    void *address;
    struct QueuedFree *next;
} QueuedFree;

enum { BUCKETS = 256 };
static QueuedFree *queued_frees[BUCKETS];
static pthread_mutex_t queued_frees_lock = PTHREAD_MUTEX_INITIALIZER;

static QueuedFree **bucket_of(const void *address)
{
    return &queued_frees[(uintptr_t)address / 512 % BUCKETS];
}

/* With the lock held. */
static bool is_queued(const void *address)
{
    const QueuedFree *entry = *bucket_of(address);
    while (entry != NULL && entry->address != address) {
        entry = entry->next;
    }
    return entry != NULL;
}

bool runtime_free_is_queued(const void *address)
{
    pthread_mutex_lock(&queued_frees_lock);
    bool queued = is_queued(address);
    pthread_mutex_unlock(&queued_frees_lock);
    return queued;
}

/* False when it was listed already. */
static bool list_free(QueuedFree *entry)
{
    QueuedFree **bucket = bucket_of(entry->address);
    pthread_mutex_lock(&queued_frees_lock);
    bool fresh = !is_queued(entry->address);
    if (fresh) {
        entry->next = *bucket;
        *bucket = entry;
    }
    pthread_mutex_unlock(&queued_frees_lock);
    return fresh;
}

/* Takes the entry off the list and releases it: the task has run, or was dropped. */
static void release_free(void *argument)
{
    QueuedFree *entry = argument;
    pthread_mutex_lock(&queued_frees_lock);
    QueuedFree **link = bucket_of(entry->address);
    while (*link != NULL && *link != entry) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = entry->next;
    }
    pthread_mutex_unlock(&queued_frees_lock);
    free(entry);
}

static DeviceFault run_free(void *argument, Explanation *why)
{
    QueuedFree *entry = argument;
    MemoryStatus status = us_memory_free_queued(maca_platform(), MEMORY_DEVICE, entry->address, why);
    return status == MEMORY_OK ? DEVICE_FAULT_NONE : DEVICE_FAULT_ADDRESS;
}

/* The free is a use of the whole block. */
static bool submit_free(Stream *stream, const char *function, const Allocation *block, QueuedFree *entry)
{
    const Use all = {.address = block->address, .size = block->size, .writes = true};
    const Work work = {function, "memory", block->size};
    bool queued = maca_stream_enter(stream) &&
                  us_stream_submit_unrecorded(stream, work, (Uses){&all, 1}, run_free, release_free, entry);
    maca_stream_leave(stream);
    return queued;
}

mcError_t mcFreeAsync(void *p, mcStream_t s)
{
    Call call = us_call_begin("mcFreeAsync");
    Stream *stream = require_stream(&call, s);
    require_running_stream(&call, stream);
    if (call.status != 0 || p == NULL) {
        return runtime_end(&call);
    }
    Allocation block;
    bool alive = us_memory_find(stream->context->device->platform, p, &block) && !block.freed &&
                 block.address == (uintptr_t)p && block.kind == MEMORY_DEVICE;
    us_require(&call, alive, "p", "allocated", mcErrorInvalidValue,
               "%p is not the first byte of device memory that is alive", p);
    QueuedFree *entry = call.status != 0 ? NULL : malloc(sizeof *entry);
    require_queued(&call, entry != NULL);
    if (entry != NULL) {
        *entry = (QueuedFree){.address = p};
        bool fresh = list_free(entry);
        us_require(&call, fresh, "p", "queued", mcErrorInvalidValue, "%p is being freed by an earlier mcFreeAsync", p);
        if (!fresh) {
            free(entry);
        } else if (!submit_free(stream, call.function, &block, entry)) {
            release_free(entry);
            require_queued(&call, false);
        }
    }
    return runtime_end(&call);
}

/* ---- allocation -------------------------------------------------------------------------------------------------- */

/* Memory that the stream is about to free counts as free: when there is too little, the stream is waited for. */
static void allocate_in_order(Call *call, Stream *stream, Device *device, size_t n, void **p)
{
    require_running_stream(call, stream);
    if (call->status != 0) {
        return;
    }
    if (n == 0) {
        *p = NULL;
        return;
    }
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    us_memory_info(device, &free_bytes, &total_bytes);
    if (n > free_bytes && n <= total_bytes) {
        runtime_synchronize(call, stream);
    }
    runtime_allocate(call, device, MEMORY_DEVICE, n, p);
    if (call->status == 0) {
        if (maca_stream_enter(stream)) {
            us_stream_has_first(stream, *p, n, call->function);
        }
        maca_stream_leave(stream);
    }
}

mcError_t mcMallocAsync(void **p, size_t n, mcStream_t s)
{
    Call call = us_call_begin("mcMallocAsync");
    us_require(&call, p != NULL, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    Stream *stream = require_stream(&call, s);
    allocate_in_order(&call, stream, stream == NULL ? NULL : stream->context->device, n, p);
    return runtime_end(&call);
}

/* ---- pools: a named way to a device's memory --------------------------------------------------------------------- */

typedef struct Pool {
    Device *device;
} Pool;

static Pool *require_pool(Call *call, mcMemPool_t handle)
{
    Pool *pool = us_handle_object(handle, HANDLE_MEMORY_POOL);
    us_require(call, pool != NULL, "pool", "alive", mcErrorInvalidValue, "%p is not a pool that is alive",
               (void *)handle);
    return pool;
}

static void require_pool_props(Call *call, const mcMemPoolProps *props)
{
    us_require(call, props != NULL, "props", "null", mcErrorInvalidValue, "props must not be NULL");
    us_require(call, props->allocType == mcMemAllocationTypePinned, "allocType", "range", mcErrorInvalidValue,
               "allocType is %d, not mcMemAllocationTypePinned", (int)props->allocType);
    us_require(call, props->handleTypes == mcMemHandleTypeNone, "handleTypes", "supported", mcErrorNotSupported,
               "handleTypes is %d; pools cannot be shared between processes", (int)props->handleTypes);
    us_require(call, props->location.type == mcMemLocationTypeDevice, "location", "type", mcErrorInvalidValue,
               "location.type is %d, not mcMemLocationTypeDevice", (int)props->location.type);
    if (call->status == 0) {
        require_ordinal(call, props->location.id);
    }
}

mcError_t mcMemPoolCreate(mcMemPool_t *pool, const mcMemPoolProps *props)
{
    Call call = us_call_begin("mcMemPoolCreate");
    us_require(&call, pool != NULL, "pool", "null", mcErrorInvalidValue, "pool must not be NULL");
    require_pool_props(&call, props);
    require_device(&call);
    if (call.status != 0) {
        return runtime_end(&call);
    }
    Pool initial = {.device = us_device(maca_platform(), props->location.id)};
    void *handle = initial.device != NULL ? us_handle_new(HANDLE_MEMORY_POOL, &initial, sizeof initial) : NULL;
    us_require(&call, handle != NULL, "pool", "memory", mcErrorMemoryAllocation, "no memory for a pool");
    if (handle != NULL) {
        *pool = handle;
    }
    return runtime_end(&call);
}

mcError_t mcMemPoolDestroy(mcMemPool_t pool)
{
    Call call = us_call_begin("mcMemPoolDestroy");
    require_device(&call);
    require_pool(&call, pool);
    if (call.status == 0) {
        us_handle_release(pool, HANDLE_MEMORY_POOL);
    }
    return runtime_end(&call);
}

mcError_t mcMallocFromPoolAsync(void **p, size_t n, mcMemPool_t pool, mcStream_t s)
{
    Call call = us_call_begin("mcMallocFromPoolAsync");
    us_require(&call, p != NULL, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    const Pool *from = require_pool(&call, pool);
    Stream *stream = require_stream(&call, s);
    allocate_in_order(&call, stream, from == NULL ? NULL : from->device, n, p);
    return runtime_end(&call);
}
