#include "device/check.h"
#include "device/device_internal.h"
#include "device/host_access.h"

#include <stdatomic.h>
#include <stdio.h>
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

bool us_memory_start_device(DeviceState *device)
{
    bool host_may_access = us_environment_choice("UNDERSTUDY_DEVICE_ACCESS", access_choices, 0) == 1;
    if (!us_arena_reserve(&device->arena, host_may_access)) {
        return false;
    }
    size_t wanted = device->public.platform->profile.memory_bytes;
    size_t host = host_memory_bytes();
    device->capacity = wanted < host ? wanted : host;
    us_host_access_watch(NULL);
    return true;
}

/* ---- allocate and free ---- */

static Arena *arena_for(Device *device, MemoryKind kind)
{
    PlatformState *platform = platform_state(device->platform);
    if (kind == MEMORY_DEVICE) {
        return &device_state(device)->arena;
    }
    if (platform->host_arena.span == 0 && !us_arena_reserve(&platform->host_arena, true)) {
        return NULL;
    }
    return &platform->host_arena;
}

static bool charge(Device *device, MemoryKind kind, size_t size)
{
    if (kind == MEMORY_PINNED) {
        return size <= host_memory_bytes();
    }
    DeviceState *state = device_state(device);
    if (size > state->capacity - state->used) {
        return false;
    }
    state->used += size;
    return true;
}

MemoryStatus us_memory_allocate(Device *device, MemoryKind kind, size_t size, const char *function, void **address)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->memory_lock);
    MemoryStatus status = MEMORY_EXHAUSTED;
    Arena *arena = arena_for(device, kind);
    if (arena != NULL && charge(device, kind, size)) {
        Allocation *block = us_arena_allocate(arena, size);
        if (block != NULL) {
            block->kind = kind;
            block->device = kind == MEMORY_PINNED ? NULL : device;
            block->serial = ++platform->next_serial;
            block->function = function;
            us_check_allocated(block, arena->alias);
            *address = (void *)block->address;
            status = MEMORY_OK;
        } else if (kind != MEMORY_PINNED) {
            device_state(device)->used -= size;
        }
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

static Arena *arena_of_address(PlatformState *platform, uintptr_t address)
{
    if (us_arena_holds(&platform->host_arena, address)) {
        return &platform->host_arena;
    }
    Arena *reserved = us_virtual_arena(platform);
    if (reserved != NULL && us_arena_holds(reserved, address)) {
        return reserved;
    }
    for (int32_t i = 0; i < platform->public.device_count; i++) {
        /* Devices are started under another lock; a pointer into a device's arena was handed out after its start. */
        Device *device = __atomic_load_n(&platform->public.devices[i], __ATOMIC_ACQUIRE);
        if (device != NULL && us_arena_holds(&device_state(device)->arena, address)) {
            return &device_state(device)->arena;
        }
    }
    return NULL;
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

/* With the memory lock held: what is known about an address; NULL for ordinary host memory. `*arena` is NULL for
 * registered ranges. */
static Allocation *find_block(PlatformState *platform, uintptr_t address, Arena **arena)
{
    *arena = arena_of_address(platform, address);
    return *arena != NULL ? us_arena_find(*arena, address) : registered_range(platform, address);
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
    us_check_freed(block, arena->alias);
    if (block->kind != MEMORY_PINNED) {
        device_state(block->device)->used -= block->size;
    }
    us_arena_free(arena, block);
}

MemoryStatus us_memory_free(Platform *platform, MemoryKind kind, void *address, Explanation *why)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Arena *arena = NULL;
    Allocation *block = find_block(state, (uintptr_t)address, &arena);
    MemoryStatus status = MEMORY_NOT_FOUND;
    if (arena == NULL || block == NULL) {
        us_explain(why, "%p was not allocated by this library", address);
    } else if (block->freed) {
        describe(why, address, block, ", which has been freed already");
    } else if (block->address != (uintptr_t)address) {
        describe(why, address, block, ", not its first byte");
    } else if (block->kind != kind || arena == us_virtual_arena(state)) {
        describe(why, address, block, ", which another function frees");
    } else {
        free_block(arena, block);
        status = MEMORY_OK;
    }
    pthread_mutex_unlock(&state->memory_lock);
    return status;
}

void us_memory_free_all(Device *device)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->memory_lock);
    us_virtual_memory_unmap_all(platform, device);
    Arena *arenas[] = {&device_state(device)->arena, &platform->host_arena};
    for (size_t a = 0; a < 2; a++) {
        for (size_t i = 0; i < arenas[a]->block_count; i++) {
            Allocation *block = &arenas[a]->blocks[i];
            if (!block->freed && block->device == device) {
                free_block(arenas[a], block);
            }
        }
    }
    pthread_mutex_unlock(&platform->memory_lock);
}

MemoryStatus us_memory_register(Platform *platform, void *address, size_t size, const char *function)
{
    PlatformState *state = platform_state(platform);
    uintptr_t first = (uintptr_t)address;
    pthread_mutex_lock(&state->memory_lock);
    MemoryStatus status = MEMORY_EXHAUSTED;
    bool free_slot = state->registered_count < REGISTERED_RANGE_LIMIT && size <= UINTPTR_MAX - first;
    for (size_t i = 0; i < state->registered_count && free_slot; i++) {
        const Allocation *range = &state->registered[i];
        free_slot = first >= range->address + range->size || first + size <= range->address;
    }
    if (free_slot) {
        state->registered[state->registered_count++] = (Allocation){
            .address = first, .size = size, .kind = MEMORY_PINNED, .serial = ++state->next_serial, .function = function};
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

void us_memory_each(Platform *platform, void (*visit)(Allocation *block, ptrdiff_t alias, void *context), void *context)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    for (int32_t d = -1; d < platform->device_count; d++) {
        Device *device = d < 0 ? NULL : __atomic_load_n(&platform->devices[d], __ATOMIC_ACQUIRE);
        Arena *arena = d < 0 ? &state->host_arena : device == NULL ? NULL : &device_state(device)->arena;
        for (size_t i = 0; arena != NULL && i < arena->block_count; i++) {
            if (!arena->blocks[i].freed) {
                visit(&arena->blocks[i], arena->alias, context);
            }
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
    *free_bytes = state->capacity - state->used;
    pthread_mutex_unlock(&platform->memory_lock);
}

static const char *refusal_to_kernel(const Device *device, const Allocation *block)
{
    if (block->kind == MEMORY_PINNED && !device->platform->profile.kernels_see_pinned) {
        return ", which kernels cannot see";
    }
    if (block->kind == MEMORY_DEVICE && block->device != device &&
        (atomic_load(&device->peers) >> block->device->ordinal & 1) == 0) {
        return ", which belongs to another device, and access to that was not enabled";
    }
    return NULL;
}

/* Whether a process can have memory there at all: handles, small numbers and the like are no addresses. */
static bool can_be_host_memory(uintptr_t address, size_t size)
{
    static const uintptr_t LOWEST = 1 << 16; /* Linux maps nothing below */
    static const uintptr_t END = (uintptr_t)1 << 47;
    return address >= LOWEST && address < END && size <= END - address;
}

/* Whether memory outside every known block may be used. */
static bool may_open_unknown(const void *address, size_t size, const Arena *arena, MemoryUser user, Explanation *why)
{
    if (arena != NULL) {
        us_explain(why, "%p is device memory that was never allocated, or was freed long ago", address);
        return false;
    }
    if (user == MEMORY_USER_KERNEL) {
        describe(why, address, NULL, ", which kernels cannot see");
        return false;
    }
    if (size > 0 && !can_be_host_memory((uintptr_t)address, size)) {
        us_explain(why, "a process has no memory of %zu bytes at %p", size, address);
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
    if (size > block->size - ((uintptr_t)address - block->address)) {
        char complaint[64];
        snprintf(complaint, sizeof complaint, "; %zu bytes from there leave it", size);
        describe(why, address, block, complaint);
        return false;
    }
    return true;
}

void *us_memory_open(Platform *platform, const Device *device, const void *address, size_t size, MemoryUser user,
                     Explanation *why)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Arena *arena = NULL;
    const Allocation *block = find_block(state, (uintptr_t)address, &arena);
    bool allowed = false;
    if (block == NULL) {
        allowed = may_open_unknown(address, size, arena, user, why);
    } else {
        const char *refusal = user == MEMORY_USER_KERNEL ? refusal_to_kernel(device, block) : NULL;
        allowed = may_open_block(address, size, block, refusal, why);
    }
    ptrdiff_t alias = arena != NULL ? arena->alias : 0;
    pthread_mutex_unlock(&state->memory_lock);
    return allowed ? (char *)address + alias : NULL;
}
