/* Addresses reserved without memory, and memory that is mapped to them.
 *
 * Each platform has ranges of addresses with an alias. Memory is a memfd; mapping puts it at the alias. Adjacent mappings of
 * one device form one block of the registry, so that a kernel may work across them. */
#include "device/device_internal.h"
#include "device/ranges.h"
#include "report/descriptor.h"
#include "report/grow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HANDLE_PHYSICAL_MEMORY = 0x04 };

typedef struct PhysicalMemory {
    struct PhysicalMemory *next;
    Device *device;
    size_t size, charged; /* bytes; of the device's capacity */
    int file;
    off_t offset;         /* in the file */
    uint64_t key;         /* for sharing (ipc.h); 0: not shared yet */
    size_t references;    /* handles and mappings */
    int32_t attribute;    /* the vendor layer's */
} PhysicalMemory;

typedef struct Mapping {
    uintptr_t address;
    PhysicalMemory *memory;
    uint64_t serial;
    uint64_t also; /* a bit for each other device that may use it */
    bool closed;   /* the device that has the memory may use it only when it has a bit, too */
} Mapping;

/* Guarded by the platform's memory lock. */
struct VirtualMemory {
    Ranges reserved; /* its blocks have address and size as the program gave them */
    Mapping *mappings; /* in order of address */
    size_t mapping_count, mapping_capacity;
    Allocation *blocks; /* made from the mappings, in order of address */
    size_t block_count, block_capacity;
    PhysicalMemory *memories;
};

static VirtualMemory *virtual_memory(PlatformState *platform)
{
    static const size_t TIB = (size_t)1 << 40;
    enum { RESTING_RESERVATIONS = 4096 };
    if (platform->virtual_memory == NULL) {
        VirtualMemory *made = calloc(1, sizeof *made);
        if (made != NULL) {
            RangeProfile profile = {.view = us_host_may_access() ? REGION_MEMORY : REGION_BOTH, .large_pages = true,
                                    .first_span = TIB / 16, .comfortable = TIB, .rest_limit = RESTING_RESERVATIONS};
            us_ranges_init(&made->reserved, &profile);
        }
        __atomic_store_n(&platform->virtual_memory, made, __ATOMIC_RELEASE);
    }
    return platform->virtual_memory;
}

const Region *us_virtual_holds(const PlatformState *platform, uintptr_t address, size_t size)
{
    const VirtualMemory *memory = __atomic_load_n(&platform->virtual_memory, __ATOMIC_ACQUIRE);
    return memory != NULL ? us_ranges_hold(&memory->reserved, address, size) : NULL;
}

/* The block that holds the address or ends at it. */
Allocation *us_virtual_find(const PlatformState *platform, uintptr_t address)
{
    VirtualMemory *memory = platform->virtual_memory;
    size_t low = 0;
    size_t high = memory == NULL ? 0 : memory->block_count; /* the first block that starts behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->blocks[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Allocation *block = low > 0 ? &memory->blocks[low - 1] : NULL;
    return block != NULL && address - block->address <= block->size ? block : NULL;
}

/* Room for one more mapping; false: no memory. */
static bool grow(VirtualMemory *memory)
{
    const size_t count = memory->mapping_count;
    Mapping *mappings = us_grown(memory->mappings, count, &memory->mapping_capacity, sizeof *mappings);
    memory->mappings = mappings != NULL ? mappings : memory->mappings;
    Allocation *blocks = mappings != NULL ? us_grown(memory->blocks, count, &memory->block_capacity, sizeof *blocks) : NULL;
    memory->blocks = blocks != NULL ? blocks : memory->blocks;
    return blocks != NULL;
}

/* ---- addresses ---- */

MemoryStatus us_address_reserve(Platform *public, size_t size, size_t alignment, void **address)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    VirtualMemory *memory = virtual_memory(platform);
    size_t page = us_page_size(); /* nobody owns the page behind it */
    Range *range = memory != NULL && size <= SIZE_MAX - page
                       ? us_ranges_take(&memory->reserved, size + page, alignment > 0 ? alignment : 1)
                       : NULL;
    if (range != NULL) {
        range->block = (Allocation){.address = range->start, .size = size};
        *address = (void *)range->start;
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return range != NULL ? MEMORY_OK : MEMORY_EXHAUSTED;
}

/* The reservation that holds the address; NULL: none. */
static Range *reservation_of(const VirtualMemory *memory, uintptr_t address)
{
    Range *range = memory != NULL ? us_ranges_find(&memory->reserved, address) : NULL;
    return range != NULL && range->state == RANGE_TAKEN ? range : NULL;
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
    Range *range = reservation_of(memory, (uintptr_t)address);
    if (range == NULL || range->start != (uintptr_t)address) {
        us_explain(why, "%p is not the first byte of reserved addresses", address);
    } else if (has_mapping_in(memory, range->start, range->block.size)) {
        us_explain(why, "some of the %zu bytes reserved at %p are still mapped", range->block.size, address);
    } else {
        us_ranges_give(&memory->reserved, range);
        status = MEMORY_OK;
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
    device_state(memory->device)->used -= memory->charged;
    us_ipc_withdraw_file(memory->file);
    close(memory->file);
    free(memory);
}

/* NULL: no memory; then the file is the caller's still. */
static PhysicalMemory *enter_memory(PlatformState *platform, const PhysicalMemory *memory)
{
    VirtualMemory *owner = virtual_memory(platform);
    PhysicalMemory *entered = owner != NULL ? malloc(sizeof *entered) : NULL;
    if (entered != NULL) {
        *entered = *memory;
        entered->next = owner->memories;
        entered->references = 1;
        owner->memories = entered;
        device_state(memory->device)->used += memory->charged;
    }
    return entered;
}

static PhysicalMemory *new_memory(PlatformState *platform, Device *device, size_t size, int32_t attribute)
{
    if (size > us_device_room(device_state(device))) {
        return NULL;
    }
    int file = us_descriptor(memfd_create("understudy", MFD_CLOEXEC));
    PhysicalMemory wanted = {.device = device, .size = size, .charged = size, .file = file,
                             .attribute = attribute};
    PhysicalMemory *memory = file >= 0 && ftruncate(file, (off_t)size) == 0 ? enter_memory(platform, &wanted) : NULL;
    if (memory == NULL && file >= 0) {
        close(file);
    }
    return memory;
}

/* The first handle of memory that has been entered; NULL: no memory, and it is gone. */
static void *first_handle(PlatformState *platform, PhysicalMemory *memory)
{
    void *handle = memory != NULL ? us_handle_create(HANDLE_PHYSICAL_MEMORY, memory) : NULL;
    if (handle == NULL && memory != NULL) {
        let_go(platform, memory);
    }
    return handle;
}

static MemoryStatus give_handle(void *made, void **handle)
{
    if (made != NULL) {
        *handle = made;
    }
    return made != NULL ? MEMORY_OK : MEMORY_EXHAUSTED;
}

MemoryStatus us_physical_allocate(Device *device, size_t size, int32_t attribute, void **handle)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->memory_lock);
    MemoryStatus status = give_handle(first_handle(platform, new_memory(platform, device, size, attribute)), handle);
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

MemoryStatus us_physical_adopt(Device *device, int file, const IpcNote *note, uint64_t key, void **handle)
{
    PlatformState *platform = platform_state(device->platform);
    PhysicalMemory wanted = {.device = device, .size = note->size, .file = file, .offset = (off_t)note->offset, .key = key,
                             .attribute = -1};
    pthread_mutex_lock(&platform->memory_lock);
    PhysicalMemory *memory = enter_memory(platform, &wanted);
    MemoryStatus status = give_handle(first_handle(platform, memory), handle);
    pthread_mutex_unlock(&platform->memory_lock);
    if (memory == NULL) {
        close(file);
    }
    return status;
}

bool us_physical_find(Platform *public, const void *handle, PhysicalInfo *info)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    const PhysicalMemory *memory = us_handle_object(handle, HANDLE_PHYSICAL_MEMORY);
    if (memory != NULL) {
        *info = (PhysicalInfo){memory->device, memory->size, memory->attribute};
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return memory != NULL;
}

void us_physical_each(Platform *public, void (*visit)(int file, int64_t offset, size_t size, void *context), void *context)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    const PhysicalMemory *memory = platform->virtual_memory != NULL ? platform->virtual_memory->memories : NULL;
    for (; memory != NULL; memory = memory->next) {
        if (memory->charged > 0) { /* else another process's */
            visit(memory->file, memory->offset, memory->size, context);
        }
    }
    pthread_mutex_unlock(&platform->memory_lock);
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

/* ---- shared with other processes ---- */

IpcStatus us_physical_share(Platform *public, const void *handle, bool anyone, uint64_t *key)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    PhysicalMemory *memory = us_handle_object(handle, HANDLE_PHYSICAL_MEMORY);
    IpcStatus status = memory == NULL ? IPC_UNKNOWN : IPC_OK;
    if (memory != NULL && memory->key == 0) {
        IpcNote note = {.kind = IPC_PHYSICAL_MEMORY, .platform = public->id,
                        .device = public->physical_number[memory->device->ordinal], .size = memory->size};
        status = us_ipc_offer(memory->file, &note, anyone, &memory->key);
    }
    if (status == IPC_OK) {
        *key = memory->key;
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

bool us_physical_is_shared(Platform *public, const void *handle)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    const PhysicalMemory *memory = us_handle_object(handle, HANDLE_PHYSICAL_MEMORY);
    bool shared = memory != NULL && memory->key != 0;
    pthread_mutex_unlock(&platform->memory_lock);
    return shared;
}

/* Another handle of memory that this process has already. UNKNOWN: it has not. */
static IpcStatus import_known(PlatformState *platform, uint64_t key, void **handle)
{
    pthread_mutex_lock(&platform->memory_lock);
    PhysicalMemory *memory = platform->virtual_memory == NULL ? NULL : platform->virtual_memory->memories;
    while (memory != NULL && (memory->key != key || key == 0)) {
        memory = memory->next;
    }
    IpcStatus status = IPC_UNKNOWN;
    if (memory != NULL) {
        memory->references++;
        void *made = first_handle(platform, memory);
        status = give_handle(made, handle) == MEMORY_OK ? IPC_OK : IPC_EXHAUSTED;
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

IpcStatus us_physical_import(Device *device, uint64_t key, void **handle, Explanation *why)
{
    IpcNote note;
    int file = -1;
    IpcStatus status = import_known(platform_state(device->platform), key, handle);
    if (status != IPC_UNKNOWN) {
        return status;
    }
    status = us_ipc_fetch(key, IPC_PHYSICAL_MEMORY, device->platform->id, &note, &file, why);
    if (status == IPC_OK && us_physical_adopt(us_device_of_note(device, &note), file, &note, key, handle) != MEMORY_OK) {
        status = IPC_EXHAUSTED;
    }
    return status;
}

/* ---- both together ---- */

static ptrdiff_t alias_of(const VirtualMemory *memory, uintptr_t address)
{
    return us_ranges_hold(&memory->reserved, address, 0)->alias;
}

/* Blocks of the registry: runs of adjacent mappings of one device. There is room for one block per mapping. */
static void rebuild_blocks(VirtualMemory *memory)
{
    memory->block_count = 0;
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const Mapping *mapping = &memory->mappings[i];
        Allocation *last = memory->block_count > 0 ? &memory->blocks[memory->block_count - 1] : NULL;
        size_t size = mapping->memory->size;
        if (last != NULL && last->address + last->size == mapping->address && last->device == mapping->memory->device &&
            last->also == mapping->also && last->closed == mapping->closed) {
            last->size += size;
            last->reach += size;
            continue;
        }
        memory->blocks[memory->block_count++] = (Allocation){.address = mapping->address,
                                                             .size = size,
                                                             .reach = size,
                                                             .alias = alias_of(memory, mapping->address),
                                                             .kind = MEMORY_DEVICE,
                                                             .device = mapping->memory->device,
                                                             .also = mapping->also,
                                                             .closed = mapping->closed,
                                                             .serial = mapping->serial,
                                                             .function = "a mapping"};
    }
}

static bool is_reserved(const VirtualMemory *memory, uintptr_t address, size_t size)
{
    const Range *range = reservation_of(memory, address);
    return range != NULL && address - range->start < range->block.size &&
           size <= range->block.size - (address - range->start);
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

static MemoryStatus map(PlatformState *platform, uintptr_t address, const void *handle, bool closed,
                        Explanation *why)
{
    VirtualMemory *memory = platform->virtual_memory;
    PhysicalMemory *physical = us_handle_object(handle, HANDLE_PHYSICAL_MEMORY);
    if (physical == NULL || memory == NULL) {
        us_explain(why, "%p is no live handle of physical memory", handle);
        return MEMORY_NOT_FOUND;
    }
    if (address % us_page_size() != 0 || !is_reserved(memory, address, physical->size)) {
        us_explain(why, "the %zu bytes at 0x%zx are not (wholly, or not from a page on) inside reserved addresses",
                   physical->size, (size_t)address);
        return MEMORY_NOT_FOUND;
    }
    if (has_mapping_in(memory, address, physical->size)) {
        us_explain(why, "some of the %zu bytes at 0x%zx are mapped already", physical->size, (size_t)address);
        return MEMORY_NOT_FOUND;
    }
    if (!grow(memory)) {
        return MEMORY_EXHAUSTED;
    }
    void *alias = (void *)(address + (uintptr_t)alias_of(memory, address));
    if (mmap(alias, physical->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file,
             physical->offset) == MAP_FAILED) {
        return MEMORY_EXHAUSTED;
    }
    physical->references++;
    insert_mapping(memory, (Mapping){address, physical, ++platform->next_serial, 0, closed});
    return MEMORY_OK;
}

MemoryStatus us_memory_map(Platform *public, void *address, const void *handle, bool closed, Explanation *why)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    us_explain(why, "the host cannot map more memory");
    MemoryStatus status = map(platform, (uintptr_t)address, handle, closed, why);
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

static void remove_mapping(PlatformState *platform, size_t index)
{
    VirtualMemory *memory = platform->virtual_memory;
    Mapping mapping = memory->mappings[index];
    /* Empty pages instead of none: a kernel that still runs there must not stop the process. */
    us_ranges_empty(&memory->reserved, mapping.address, mapping.memory->size);
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

/* NULL: nothing is mapped from there on. */
static Mapping *find_mapping(const PlatformState *platform, const void *address)
{
    const VirtualMemory *memory = platform->virtual_memory;
    for (size_t i = 0; memory != NULL && i < memory->mapping_count; i++) {
        if (memory->mappings[i].address == (uintptr_t)address) {
            return &memory->mappings[i];
        }
    }
    return NULL;
}

MemoryStatus us_memory_mapping(Platform *public, const void *address, MappingInfo *info, void **handle)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    const Mapping *mapping = find_mapping(platform, address);
    MemoryStatus status = mapping != NULL ? MEMORY_OK : MEMORY_NOT_FOUND;
    if (mapping != NULL) {
        *info = (MappingInfo){mapping->memory->size, mapping->memory->device, mapping->also,
                              mapping->closed};
    }
    if (mapping != NULL && handle != NULL) {
        mapping->memory->references++;
        status = give_handle(first_handle(platform, mapping->memory), handle);
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return status;
}

bool us_memory_let_use(Platform *public, const void *address, uint64_t devices)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    Mapping *mapping = find_mapping(platform, address);
    if (mapping != NULL) {
        mapping->also |= devices;
        rebuild_blocks(platform->virtual_memory);
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return mapping != NULL;
}

bool us_address_find(Platform *public, const void *address, void **first, size_t *size)
{
    PlatformState *platform = platform_state(public);
    pthread_mutex_lock(&platform->memory_lock);
    const Range *range = reservation_of(platform->virtual_memory, (uintptr_t)address);
    bool inside = range != NULL && (uintptr_t)address - range->start < range->block.size;
    if (inside) {
        *first = (void *)range->start;
        *size = range->block.size;
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return inside;
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
