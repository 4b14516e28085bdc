#include "device/check.h"
#include "device/device_internal.h"
#include "device/host_access.h"
#include "device/pool_internal.h"
#include "report/caller.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const access_choices[] = {"kernel", "host", NULL};

static const char *kind_name(MemoryKind kind)
{
    static const char *const names[] = {"host", "device", "pinned host", "managed"};
    return names[kind];
}

static size_t host_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
}

bool us_host_may_access(void)
{
    return us_environment_choice("UNDERSTUDY_DEVICE_ACCESS", access_choices, 0) == 1;
}

void us_memory_start_device(DeviceState *device)
{
    us_arena_init(&device->arena, us_host_may_access(), false);
    size_t wanted = device->public.platform->profile.memory_bytes;
    size_t host = host_memory_bytes();
    device->capacity = wanted < host ? wanted : host;
    us_host_access_watch(NULL);
}

/* ---- allocate and free ---- */

static Arena *arena_for(Device *device, MemoryKind kind)
{
    return kind == MEMORY_DEVICE ? &device_state(device)->arena : &platform_state(device->platform)->host_arena;
}

static bool charge(Device *device, MemoryKind kind, size_t size)
{
    if (kind == MEMORY_PINNED) {
        return size <= host_memory_bytes();
    }
    DeviceState *state = device_state(device);
    if (size > us_device_room(state)) {
        return false;
    }
    state->used += size;
    return true;
}

MemoryStatus us_memory_allocate(Device *device, MemoryKind kind, BlockSize size, const char *function, void **address)
{
    PlatformState *platform = platform_state(device->platform);
    const void *caller = us_callers_are_wanted() ? us_current_caller() : NULL;
    pthread_mutex_lock(&platform->memory_lock);
    MemoryStatus status = MEMORY_EXHAUSTED;
    if (charge(device, kind, size.charged)) {
        Allocation *block = us_arena_allocate(arena_for(device, kind), size.asked, size.mapped);
        if (block != NULL) {
            block->charged = size.charged;
            block->kind = kind;
            block->device = kind == MEMORY_PINNED ? NULL : device;
            block->serial = ++platform->next_serial;
            block->function = function;
            block->caller = caller;
            us_check_allocated(block);
            *address = (void *)block->address;
            status = MEMORY_OK;
        } else if (kind != MEMORY_PINNED) {
            device_state(device)->used -= size.charged;
        }
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

/* The arena of host or device memory with some of these addresses; NULL: none. */
static Arena *arena_of_range(PlatformState *platform, uintptr_t address, size_t size)
{
    if (us_arena_holds(&platform->host_arena, address, size) != NULL) {
        return &platform->host_arena;
    }
    for (int32_t i = 0; i < platform->public.device_count; i++) {
        /* Devices are started under another lock; a pointer into a device's arena was handed out after its start. */
        Device *device = __atomic_load_n(&platform->public.devices[i], __ATOMIC_ACQUIRE);
        if (device != NULL && us_arena_holds(&device_state(device)->arena, address, size) != NULL) {
            return &device_state(device)->arena;
        }
    }
    return NULL;
}

bool us_memory_is_closed(PlatformState *platform, uintptr_t address, size_t size)
{
    const Region *region = us_virtual_holds(platform, address, size);
    for (int32_t i = 0; region == NULL && i < platform->public.device_count; i++) {
        Device *device = __atomic_load_n(&platform->public.devices[i], __ATOMIC_ACQUIRE);
        region = device != NULL ? us_arena_holds(&device_state(device)->arena, address, size) : NULL;
    }
    return region != NULL;
}

bool us_memory_is_behind_blocks(const PlatformState *platform, uintptr_t address)
{
    bool behind = false;
    for (int32_t i = 0; i < platform->public.device_count && !behind; i++) {
        Device *device = __atomic_load_n(&platform->public.devices[i], __ATOMIC_ACQUIRE);
        behind = device != NULL && us_arena_memory_holds(&device_state(device)->arena, address);
    }
    return behind;
}

static Allocation *registered_range(PlatformState *platform, uintptr_t address)
{
    for (size_t i = 0; i < platform->registered_count; i++) {
        /* Ordinary memory may go on where the range ends. */
        if (address - platform->registered[i].address < platform->registered[i].size) {
            return &platform->registered[i];
        }
    }
    return NULL;
}

/* With the memory lock held: what is known about an address; NULL: nothing. `*arena` is that of a block of the vendor's
 * allocators, NULL for mapped and registered memory. */
static Allocation *find_block(PlatformState *platform, uintptr_t address, Arena **arena)
{
    *arena = arena_of_range(platform, address, 0);
    if (*arena != NULL) {
        return us_arena_find(*arena, address);
    }
    Allocation *mapped = us_virtual_find(platform, address);
    return mapped != NULL ? mapped : registered_range(platform, address);
}

static void describe(Explanation *why, const void *address, const Allocation *block, const char *complaint)
{
    if (block == NULL) {
        us_explain(why, "%p is ordinary host memory%s", address, complaint);
        return;
    }
    us_explain(why, "%p is %zu bytes into block #%llu (%zu bytes of %s memory from %s)%s", address,
               (uintptr_t)address - block->address, (unsigned long long)block->serial, block->size,
               kind_name(block->kind), block->function, complaint);
}

static void free_block(Arena *arena, Allocation *block)
{
    us_check_freed(block);
    if (block->shared_file != 0) {
        us_ipc_withdraw_file(block->shared_file - 1);
        close(block->shared_file - 1);
    }
    if (block->kind != MEMORY_PINNED) {
        device_state(block->device)->used -= block->charged;
    }
    if (block->pool != NULL) {
        us_pool_loses(block);
    }
    free(block->notes);
    block->notes = NULL;
    us_arena_free(arena, block);
}

void us_memory_end_block(PlatformState *platform, Allocation *block)
{
    free_block(arena_of_range(platform, block->address, 0), block);
}

static MemoryStatus free_memory(Platform *platform, MemoryKind kind, void *address, bool queued, Explanation *why)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Arena *arena = NULL;
    Allocation *block = find_block(state, (uintptr_t)address, &arena);
    MemoryStatus status = MEMORY_NOT_FOUND;
    if (block == NULL || (arena == NULL && block->kind == MEMORY_PINNED)) {
        us_explain(why, "%p was not allocated by this library", address);
    } else if (block->freed) {
        describe(why, address, block, ", which has been freed already");
    } else if (block->address != (uintptr_t)address) {
        describe(why, address, block, ", not its first byte");
    } else if (block->kind != kind || arena == NULL || block->pool != NULL) {
        describe(why, address, block, ", which another function frees");
    } else {
        block->leaving = queued;
        free_block(arena, block);
        status = MEMORY_OK;
    }
    pthread_mutex_unlock(&state->memory_lock);
    return status;
}

MemoryStatus us_memory_free(Platform *platform, MemoryKind kind, void *address, Explanation *why)
{
    return free_memory(platform, kind, address, false, why);
}

MemoryStatus us_memory_free_queued(Platform *platform, MemoryKind kind, void *address, Explanation *why)
{
    return free_memory(platform, kind, address, true, why);
}

typedef struct Owned {
    Arena *arena;
    const Device *device;
    uint64_t newest;
} Owned;

static void free_if_owned(Allocation *block, void *context)
{
    const Owned *owned = context;
    if (block->device == owned->device && block->serial <= owned->newest) {
        free_block(owned->arena, block);
    }
}

uint64_t us_memory_newest(const Device *device)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->memory_lock);
    uint64_t newest = platform->next_serial;
    pthread_mutex_unlock(&platform->memory_lock);
    return newest;
}

void us_memory_free_all(Device *device, uint64_t newest)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->memory_lock);
    us_virtual_memory_unmap_all(platform, device);
    Arena *arenas[] = {&device_state(device)->arena, &platform->host_arena};
    for (size_t a = 0; a < 2; a++) {
        Owned owned = {arenas[a], device, newest};
        us_arena_each(arenas[a], free_if_owned, &owned);
    }
    us_pools_end(device_state(device));
    pthread_mutex_unlock(&platform->memory_lock);
}

/* Whether all of these bytes are some memory of this process, without touching them. */
static bool is_mapped(uintptr_t address, size_t size)
{
    static const uintptr_t LOWEST = 1 << 16; /* Linux maps nothing below */
    if (size == 0) {
        return true;
    }
    if (address < LOWEST || size > UINTPTR_MAX - address) {
        return false;
    }
    uintptr_t first = address - address % us_page_size();
    /* Memory has nothing to be written back; what is no memory is answered with ENOMEM. */
    return msync((void *)first, address + size - first, MS_ASYNC) == 0 || errno != ENOMEM;
}

MemoryStatus us_memory_register(Platform *platform, void *address, size_t size, bool mapped, const char *function)
{
    PlatformState *state = platform_state(platform);
    uintptr_t first = (uintptr_t)address;
    pthread_mutex_lock(&state->memory_lock);
    MemoryStatus status = is_mapped(first, size) ? MEMORY_EXHAUSTED : MEMORY_NOT_FOUND;
    bool free_slot = status == MEMORY_EXHAUSTED && state->registered_count < REGISTERED_RANGE_LIMIT &&
                     size <= UINTPTR_MAX - first;
    for (size_t i = 0; i < state->registered_count && free_slot; i++) {
        const Allocation *range = &state->registered[i];
        free_slot = first >= range->address + range->size || first + size <= range->address;
    }
    if (free_slot) {
        state->registered[state->registered_count++] = (Allocation){
            .address = first, .size = size, .reach = size, .kind = MEMORY_PINNED,
            .also = mapped ? UINT64_MAX : 0, .serial = ++state->next_serial, .function = function};
        status = MEMORY_OK;
    }
    pthread_mutex_unlock(&state->memory_lock);
    return status;
}

MemoryStatus us_memory_unregister(Platform *platform, void *address)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    MemoryStatus status = MEMORY_NOT_FOUND;
    for (size_t i = 0; i < state->registered_count; i++) {
        if (state->registered[i].address == (uintptr_t)address) {
            state->registered[i] = state->registered[--state->registered_count];
            status = MEMORY_OK;
            break;
        }
    }
    pthread_mutex_unlock(&state->memory_lock);
    return status;
}

/* ---- look up and open ---- */

bool us_memory_find(Platform *platform, const void *address, Allocation *found)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Arena *arena = NULL;
    const Allocation *block = find_block(state, (uintptr_t)address, &arena);
    if (block != NULL) {
        *found = *block;
    }
    pthread_mutex_unlock(&state->memory_lock);
    return block != NULL;
}

bool us_memory_visit(Platform *platform, const void *address, void (*visit)(Allocation *block, void *context), void *context)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Arena *arena = NULL;
    Allocation *block = find_block(state, (uintptr_t)address, &arena);
    bool alive = block != NULL && !block->freed;
    if (alive) {
        visit(block, context);
    }
    pthread_mutex_unlock(&state->memory_lock);
    return alive;
}

void us_memory_each(Platform *platform, void (*visit)(Allocation *block, void *context), void *context)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    us_arena_each(&state->host_arena, visit, context);
    for (int32_t d = 0; d < platform->device_count; d++) {
        Device *device = __atomic_load_n(&platform->devices[d], __ATOMIC_ACQUIRE);
        if (device != NULL) {
            us_arena_each(&device_state(device)->arena, visit, context);
        }
    }
    pthread_mutex_unlock(&state->memory_lock);
}

Allocation *us_memory_block(Platform *platform, const void *address)
{
    Arena *arena = NULL;
    return find_block(platform_state(platform), (uintptr_t)address, &arena);
}

void us_memory_info(const Device *device, size_t *free_bytes, size_t *total_bytes)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->memory_lock);
    const DeviceState *state = device_state(device);
    *total_bytes = state->capacity;
    *free_bytes = us_device_room(state);
    pthread_mutex_unlock(&platform->memory_lock);
}

static bool may_use(const Device *device, const Allocation *block)
{
    return (block->also >> device->ordinal & 1) != 0;
}

/* Nobody may use the block, or this device may not; NULL: it is open. */
static const char *refusal_of_closed(const Device *device, const Allocation *block, MemoryUser user)
{
    bool nobody = block->also == 0 || (user == MEMORY_USER_KERNEL && !may_use(device, block));
    return block->closed && nobody ? ", which was mapped without access, and nobody has allowed any since" : NULL;
}

static const char *refusal_to_kernel(const Device *device, const Allocation *block)
{
    if (block->kind == MEMORY_PINNED && !device->platform->profile.kernels_see_pinned && !may_use(device, block)) {
        return ", which kernels cannot see";
    }
    if (block->kind == MEMORY_DEVICE && block->device != device && !may_use(device, block) &&
        (atomic_load(&device->peers) >> block->device->ordinal & 1) == 0) {
        return ", which belongs to another device, and access to that was not enabled";
    }
    return NULL;
}

/* Whether memory outside every known block may be used. */
static bool may_open_unknown(PlatformState *platform, const void *address, size_t size, MemoryUser user,
                             Explanation *why)
{
    uintptr_t first = (uintptr_t)address;
    if (us_virtual_holds(platform, first, 1) != NULL) {
        us_explain(why, "%p is a reserved address, and no memory is mapped there", address);
        return false;
    }
    if (us_memory_is_closed(platform, first, 0) || us_arena_holds(&platform->host_arena, first, 0) != NULL) {
        us_explain(why, "%p is device memory that was never allocated, or was freed long ago", address);
        return false;
    }
    if (user == MEMORY_USER_KERNEL) {
        describe(why, address, NULL, ", which kernels cannot see");
        return false;
    }
    if (us_memory_is_closed(platform, first, size)) {
        us_explain(why, "the %zu bytes from %p run from host memory into device memory", size, address);
        return false;
    }
    if (!is_mapped(first, size)) {
        us_explain(why, "this process has no memory of %zu bytes at %p", size, address);
        return false;
    }
    return true;
}

/* Whether `size` bytes from an address inside a block stay in it. */
static bool stays_inside(const void *address, size_t size, const Allocation *block, Explanation *why)
{
    char complaint[96];
    size_t offset = (uintptr_t)address - block->address;
    if (offset > block->reach || size > block->reach - offset) {
        snprintf(complaint, sizeof complaint, "; %zu bytes from there leave it", size);
        describe(why, address, block, complaint);
        return false;
    }
    bool asked_for = offset <= block->size && size <= block->size - offset;
    if (!asked_for && us_checks() & CHECK_MEMORY) {
        snprintf(complaint, sizeof complaint, "; %zu bytes from there leave what was asked for", size);
        describe(why, address, block, complaint);
        us_check_beyond(block, offset, size);
        return false;
    }
    return true;
}

static bool may_open_block(const void *address, size_t size, const Allocation *block, const char *refusal,
                           Explanation *why)
{
    if (block->freed) {
        describe(why, address, block, ", which has been freed");
        return false;
    }
    if (refusal != NULL) {
        describe(why, address, block, refusal);
        return false;
    }
    return stays_inside(address, size, block, why);
}

void us_memory_hold(Platform *platform)
{
    pthread_mutex_lock(&platform_state(platform)->memory_lock);
}

void us_memory_let_go(Platform *platform)
{
    pthread_mutex_unlock(&platform_state(platform)->memory_lock);
}

void *us_memory_open(Platform *platform, const Device *device, const void *address, size_t size, MemoryUser user,
                     Explanation *why)
{
    us_memory_hold(platform);
    void *opened = us_memory_open_held(platform, device, address, size, user, why);
    us_memory_let_go(platform);
    return opened;
}

/* Page-locked memory of the vendor's allocator may be registered, too, and kernels see what was registered. */
static const Allocation *seen_by_kernels(PlatformState *state, uintptr_t address, const Allocation *block)
{
    const bool pinned = block->kind == MEMORY_PINNED && !block->freed;
    const Allocation *registered = pinned ? registered_range(state, address) : NULL;
    return registered != NULL ? registered : block;
}

void *us_memory_open_held(Platform *platform, const Device *device, const void *address, size_t size, MemoryUser user,
                          Explanation *why)
{
    PlatformState *state = platform_state(platform);
    Arena *arena = NULL;
    const Allocation *block = find_block(state, (uintptr_t)address, &arena);
    bool allowed = false;
    if (block == NULL) {
        allowed = may_open_unknown(state, address, size, user, why);
    } else {
        const Allocation *seen = block;
        const char *refusal = refusal_of_closed(device, block, user);
        if (refusal == NULL && user == MEMORY_USER_KERNEL) {
            seen = seen_by_kernels(state, (uintptr_t)address, block);
            refusal = refusal_to_kernel(device, seen);
        }
        allowed = may_open_block(address, size, seen, refusal, why);
    }
    ptrdiff_t alias = block != NULL ? block->alias : 0;
    return allowed ? (char *)address + alias : NULL;
}
