/* Addresses reserved without memory, and memory that is mapped to them.
 *
 * One arena per platform hands out the addresses. Memory is a memfd; mapping puts it behind the arena's alias. Adjacent
 * mappings of one device form one block of the registry, so that a kernel may work across them. */
#include "device/device_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HANDLE_PHYSICAL_MEMORY = 0x04 };

static const size_t PAGE = 4096;
static const size_t LARGE_PAGE = (size_t)2 << 20;
static const char *const access_choices[] = {"kernel", "host", NULL};

typedef struct PhysicalMemory {
    struct PhysicalMemory *next;
    Device *device;
    size_t size;
    int file;
    uint64_t number; /* for sharing */
    size_t references; /* handles and mappings */
} PhysicalMemory;

typedef struct Reservation {
    uintptr_t address;
    size_t size;
} Reservation;

typedef struct Mapping {
    uintptr_t address;
    PhysicalMemory *memory;
    uint64_t serial;
} Mapping;

/* Guarded by the platform's memory lock. */
struct VirtualMemory {
    Arena arena; /* its blocks are made from the mappings */
    Reservation *reservations;
    size_t reservation_count, reservation_capacity;
    Mapping *mappings; /* in order of address */
    size_t mapping_count, mapping_capacity;
    PhysicalMemory *memories;
    uint64_t next_number;
};

static VirtualMemory *virtual_memory(PlatformState *platform)
{
    if (platform->virtual_memory == NULL) {
        VirtualMemory *made = calloc(1, sizeof *made);
        bool host_may_access = us_environment_choice("UNDERSTUDY_DEVICE_ACCESS", access_choices, 0) == 1;
        if (made != NULL && us_arena_reserve(&made->arena, host_may_access)) {
            platform->virtual_memory = made;
        } else {
            free(made);
        }
    }
    return platform->virtual_memory;
}

Arena *us_virtual_arena(const PlatformState *platform)
{
    return platform->virtual_memory == NULL ? NULL : &platform->virtual_memory->arena;
}

/* Room for one more item; false: no memory. */
static bool grow(void **items, size_t item_size, size_t count, size_t *capacity)
{
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity == 0 ? 16 : 2 * *capacity;
    void *grown = realloc(*items, wanted * item_size);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

/* ---- addresses ---- */

MemoryStatus us_address_reserve(Platform *public, size_t size, size_t alignment, void **address)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    MemoryStatus status = MEMORY_EXHAUSTED;
    VirtualMemory *memory = virtual_memory(platform);
    if (memory != NULL && grow((void **)&memory->reservations, sizeof *memory->reservations,
                               memory->reservation_count, &memory->reservation_capacity)) {
        Arena *arena = &memory->arena;
        size_t unit = alignment > LARGE_PAGE ? alignment : LARGE_PAGE;
        size_t left = arena->span - arena->next;
        if (unit <= left && size <= left - unit) {
            uintptr_t first = (arena->base + arena->next + unit - 1) / unit * unit;
            arena->next = first + size + PAGE - arena->base; /* nobody owns the page behind it */
            if (arena->next <= arena->span) {
                memory->reservations[memory->reservation_count++] = (Reservation){first, size};
                *address = (void *)first;
                status = MEMORY_OK;
            } else {
                arena->next = arena->span;
            }
        }
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

static bool has_mapping_in(const VirtualMemory *memory, uintptr_t address, size_t size)
{
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const Mapping *mapping = &memory->mappings[i];
        if (mapping->address < address + size && address < mapping->address + mapping->memory->size) {
            return true;
        }
    }
    return false;
}

MemoryStatus us_address_release(Platform *public, void *address, Explanation *why)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    MemoryStatus status = MEMORY_NOT_FOUND;
    VirtualMemory *memory = platform->virtual_memory;
    us_explain(why, "%p is not the first byte of reserved addresses", address);
    for (size_t i = 0; memory != NULL && i < memory->reservation_count; i++) {
        Reservation *reservation = &memory->reservations[i];
        if (reservation->address != (uintptr_t)address) {
            continue;
        }
        if (has_mapping_in(memory, reservation->address, reservation->size)) {
            us_explain(why, "some of the %zu bytes reserved at %p are still mapped", reservation->size, address);
        } else {
            *reservation = memory->reservations[--memory->reservation_count];
            status = MEMORY_OK;
        }
        break;
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

/* ---- memory ---- */

static void let_go(PlatformState *platform, PhysicalMemory *memory)
{
    if (--memory->references > 0) {
        return;
    }
    PhysicalMemory **link = &platform->virtual_memory->memories;
    while (*link != memory) {
        link = &(*link)->next;
    }
    *link = memory->next;
    device_state(memory->device)->used -= memory->size;
    close(memory->file);
    free(memory);
}

static PhysicalMemory *new_memory(PlatformState *platform, Device *device, size_t size)
{
    VirtualMemory *owner = virtual_memory(platform);
    DeviceState *state = device_state(device);
    if (owner == NULL || size > state->capacity - state->used) {
        return NULL;
    }
    PhysicalMemory *memory = calloc(1, sizeof *memory);
    int file = memory != NULL ? memfd_create("understudy", MFD_CLOEXEC) : -1;
    if (file < 0 || ftruncate(file, (off_t)size) != 0) {
        if (file >= 0) {
            close(file);
        }
        free(memory);
        return NULL;
    }
    *memory = (PhysicalMemory){owner->memories, device, size, file, ++owner->next_number, 1};
    owner->memories = memory;
    state->used += size;
    return memory;
}

MemoryStatus us_physical_allocate(Device *device, size_t size, void **handle)
{
    PlatformState *platform = platform_state(device->platform);
    MemoryStatus status = MEMORY_EXHAUSTED;
    pthread_mutex_lock(&platform->memory_lock);
    PhysicalMemory *memory = new_memory(platform, device, size);
    if (memory != NULL) {
        void *made = us_handle_create(HANDLE_PHYSICAL_MEMORY, memory);
        if (made != NULL) {
            *handle = made;
            status = MEMORY_OK;
        } else {
            let_go(platform, memory);
        }
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

bool us_physical_find(Platform *public, const void *handle, Device **device, size_t *size, uint64_t *number)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    const PhysicalMemory *memory = us_handle_object(handle, HANDLE_PHYSICAL_MEMORY);
    if (memory != NULL) {
        *device = memory->device;
        *size = memory->size;
        *number = memory->number;
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return memory != NULL;
}

static PhysicalMemory *find_number(const PlatformState *platform, uint64_t number)
{
    PhysicalMemory *memory = platform->virtual_memory == NULL ? NULL : platform->virtual_memory->memories;
    while (memory != NULL && memory->number != number) {
        memory = memory->next;
    }
    return memory;
}

bool us_physical_is_known(Platform *public, uint64_t number)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    bool known = find_number(platform, number) != NULL;
    pthread_mutex_unlock(&platform->memory_lock);
    return known;
}

MemoryStatus us_physical_import(Platform *public, uint64_t number, void **handle)
{
    PlatformState *platform = platform_state(public);
    MemoryStatus status = MEMORY_NOT_FOUND;
    pthread_mutex_lock(&platform->memory_lock);
    PhysicalMemory *memory = find_number(platform, number);
    if (memory != NULL) {
        void *made = us_handle_create(HANDLE_PHYSICAL_MEMORY, memory);
        status = MEMORY_EXHAUSTED;
        if (made != NULL) {
            memory->references++;
            *handle = made;
            status = MEMORY_OK;
        }
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

MemoryStatus us_physical_free(Platform *public, const void *handle)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    PhysicalMemory *memory = us_handle_end(handle, HANDLE_PHYSICAL_MEMORY);
    if (memory != NULL) {
        let_go(platform, memory);
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return memory != NULL ? MEMORY_OK : MEMORY_NOT_FOUND;
}

/* ---- both together ---- */

/* Blocks of the registry: runs of adjacent mappings of one device. There is room for one block per mapping. */
static void rebuild_blocks(VirtualMemory *memory)
{
    Arena *arena = &memory->arena;
    arena->block_count = 0;
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const Mapping *mapping = &memory->mappings[i];
        Allocation *last = arena->block_count > 0 ? &arena->blocks[arena->block_count - 1] : NULL;
        if (last != NULL && last->address + last->size == mapping->address && last->device == mapping->memory->device) {
            last->size += mapping->memory->size;
            continue;
        }
        arena->blocks[arena->block_count++] = (Allocation){.address = mapping->address,
                                                           .size = mapping->memory->size,
                                                           .kind = MEMORY_DEVICE,
                                                           .device = mapping->memory->device,
                                                           .serial = mapping->serial,
                                                           .function = "a mapping"};
    }
}

static bool is_reserved(const VirtualMemory *memory, uintptr_t address, size_t size)
{
    for (size_t i = 0; i < memory->reservation_count; i++) {
        const Reservation *reservation = &memory->reservations[i];
        if (address - reservation->address < reservation->size &&
            size <= reservation->size - (address - reservation->address)) {
            return true;
        }
    }
    return false;
}

static void insert_mapping(VirtualMemory *memory, Mapping mapping)
{
    size_t at = memory->mapping_count;
    while (at > 0 && memory->mappings[at - 1].address > mapping.address) {
        at--;
    }
    memmove(&memory->mappings[at + 1], &memory->mappings[at], (memory->mapping_count - at) * sizeof mapping);
    memory->mappings[at] = mapping;
    memory->mapping_count++;
    rebuild_blocks(memory);
}

static MemoryStatus map(PlatformState *platform, uintptr_t address, const void *handle, Explanation *why)
{
    VirtualMemory *memory = platform->virtual_memory;
    PhysicalMemory *physical = us_handle_object(handle, HANDLE_PHYSICAL_MEMORY);
    if (physical == NULL || memory == NULL) {
        us_explain(why, "%p is no live handle of physical memory", handle);
        return MEMORY_NOT_FOUND;
    }
    if (address % PAGE != 0 || !is_reserved(memory, address, physical->size)) {
        us_explain(why, "the %zu bytes at 0x%zx are not (wholly, or not from a page on) inside reserved addresses",
                   physical->size, (size_t)address);
        return MEMORY_NOT_FOUND;
    }
    if (has_mapping_in(memory, address, physical->size)) {
        us_explain(why, "some of the %zu bytes at 0x%zx are mapped already", physical->size, (size_t)address);
        return MEMORY_NOT_FOUND;
    }
    if (!grow((void **)&memory->mappings, sizeof *memory->mappings, memory->mapping_count, &memory->mapping_capacity) ||
        !grow((void **)&memory->arena.blocks, sizeof *memory->arena.blocks, memory->mapping_count,
              &memory->arena.block_capacity)) {
        return MEMORY_EXHAUSTED;
    }
    void *alias = (void *)(address + (uintptr_t)memory->arena.alias);
    if (mmap(alias, physical->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file, 0) == MAP_FAILED) {
        return MEMORY_EXHAUSTED;
    }
    physical->references++;
    insert_mapping(memory, (Mapping){address, physical, ++platform->next_serial});
    return MEMORY_OK;
}

MemoryStatus us_memory_map(Platform *public, void *address, const void *handle, Explanation *why)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    us_explain(why, "the host cannot map more memory");
    MemoryStatus status = map(platform, (uintptr_t)address, handle, why);
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

static void remove_mapping(PlatformState *platform, size_t index)
{
    VirtualMemory *memory = platform->virtual_memory;
    Mapping mapping = memory->mappings[index];
    /* Empty pages instead of none: a kernel that still runs there must not stop the process. */
    void *alias = (void *)(mapping.address + (uintptr_t)memory->arena.alias);
    mmap(alias, mapping.memory->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
    memory->mapping_count--;
    memmove(&memory->mappings[index], &memory->mappings[index + 1], (memory->mapping_count - index) * sizeof mapping);
    rebuild_blocks(memory);
    let_go(platform, mapping.memory);
}

MemoryStatus us_memory_unmap(Platform *public, void *address, Explanation *why)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    const VirtualMemory *memory = platform->virtual_memory;
    size_t count = memory == NULL ? 0 : memory->mapping_count;
    size_t index = 0;
    while (index < count && memory->mappings[index].address != (uintptr_t)address) {
        index++;
    }
    if (index < count) {
        remove_mapping(platform, index);
    } else {
        us_explain(why, "nothing is mapped from %p on", address);
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return index < count ? MEMORY_OK : MEMORY_NOT_FOUND;
}

void us_virtual_memory_unmap_all(PlatformState *platform, const Device *device)
{
    const VirtualMemory *memory = platform->virtual_memory;
    for (size_t i = memory == NULL ? 0 : memory->mapping_count; i-- > 0;) {
        if (memory->mappings[i].memory->device == device) {
            remove_mapping(platform, i);
        }
    }
}
