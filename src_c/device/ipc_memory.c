/* Blocks of memory that several processes have. An import is a mapping like any other (virtual_memory.c). */
#include "device/check.h"
#include "device/device_internal.h"
#include "device/ranges.h"

#include <stdlib.h>

struct MemoryImport {
    MemoryImport *next;
    uint64_t key;
    void *address;
    size_t count; /* of imports that have not been closed */
};

Device *us_device_of_note(Device *device, const IpcNote *note)
{
    Platform *platform = device->platform;
    for (int32_t i = 0; i < platform->device_count; i++) {
        if (platform->physical_number[i] == note->device) {
            Device *owner = us_device(platform, i);
            return owner != NULL ? owner : device;
        }
    }
    return device;
}

/* ---- the owner ---- */

/* The live block whose pages these are; NULL: none. With the memory lock held. */
static Allocation *find_pages(Platform *platform, const void *address, size_t size, Explanation *why)
{
    uintptr_t first = (uintptr_t)address;
    Allocation *block = us_memory_block(platform, address);
    bool ours = block != NULL && block->kind == MEMORY_DEVICE && us_virtual_find(platform_state(platform), first) == NULL;
    if (!ours || block->freed) {
        us_explain(why, "%p is in no live block of device memory of this process", address);
        return NULL;
    }
    size_t page = us_page_size();
    if (first % page != 0 || size % page != 0) {
        us_explain(why, "the %zu bytes from %p are not whole pages of %zu bytes", size, address, page);
        return NULL;
    }
    size_t offset = first - block->address;
    size_t pages = (block->reach + page - 1) / page * page;
    if (offset > pages || size > pages - offset) {
        us_explain(why, "the %zu bytes from %p leave their block, #%llu of %zu bytes", size, address,
                   (unsigned long long)block->serial, block->size);
        return NULL;
    }
    return block;
}

IpcStatus us_memory_share(Platform *platform, const void *address, size_t size, bool anyone, uint64_t *key,
                          Explanation *why)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Allocation *block = find_pages(platform, address, size, why);
    IpcStatus status = IPC_UNKNOWN;
    if (block != NULL) {
        int file = us_arena_share(&device_state(block->device)->arena, block);
        free(block->written); /* what others write is not known here */
        block->written = NULL;
        IpcNote note = {.kind = IPC_MEMORY, .platform = platform->id,
                        .device = platform->physical_number[block->device->ordinal],
                        .offset = (uintptr_t)address - block->address, .size = size};
        status = file >= 0 ? us_ipc_offer(file, &note, anyone, key) : IPC_EXHAUSTED;
        us_explain(status == IPC_EXHAUSTED ? why : NULL, "no memory, thread or file descriptor is left to share it");
    }
    pthread_mutex_unlock(&state->memory_lock);
    return status;
}

/* ---- the others ---- */

/* With the memory lock held. */
static MemoryImport **find_import(PlatformState *platform, uint64_t key)
{
    MemoryImport **link = &platform->imports;
    while (*link != NULL && (*link)->key != key) {
        link = &(*link)->next;
    }
    return link;
}

static void unmap(Platform *platform, void *address)
{
    us_memory_unmap(platform, address, NULL); /* a reset of the device may have done so */
    us_address_release(platform, address, NULL);
}

/* The address of an import that exists, counted once more; NULL: there is none. Forgets one that a reset has ended. */
static void *import_again(Platform *platform, uint64_t key)
{
    PlatformState *state = platform_state(platform);
    void *address = NULL;
    void *ended = NULL;
    pthread_mutex_lock(&state->memory_lock);
    MemoryImport **link = find_import(state, key);
    MemoryImport *known = *link;
    if (known != NULL && us_virtual_find(state, (uintptr_t)known->address) != NULL) {
        known->count++;
        address = known->address;
    } else if (known != NULL) {
        *link = known->next;
        ended = known->address;
        free(known);
    }
    pthread_mutex_unlock(&state->memory_lock);
    if (ended != NULL) {
        unmap(platform, ended);
    }
    return address;
}

/* The address of the import: this one, or that of a thread that was faster, counted once more. NULL: no memory. */
static void *add_import(Platform *platform, uint64_t key, void *address)
{
    PlatformState *state = platform_state(platform);
    MemoryImport *import = malloc(sizeof *import);
    pthread_mutex_lock(&state->memory_lock);
    MemoryImport *known = *find_import(state, key);
    if (known != NULL && us_virtual_find(state, (uintptr_t)known->address) != NULL) {
        known->count++;
        address = known->address;
        free(import);
    } else if (import != NULL) {
        *import = (MemoryImport){state->imports, key, address, 1};
        state->imports = import;
    } else {
        address = NULL;
    }
    pthread_mutex_unlock(&state->memory_lock);
    return address;
}

/* Gives memory addresses. NULL: there are none left. */
static void *map_anywhere(Platform *platform, void *handle, size_t size)
{
    void *address = NULL;
    if (us_address_reserve(platform, size, us_page_size(), &address) != MEMORY_OK) {
        return NULL;
    }
    if (us_memory_map(platform, address, handle, false, NULL) != MEMORY_OK) {
        us_address_release(platform, address, NULL);
        return NULL;
    }
    return address;
}

static void *map_file(Device *device, int file, const IpcNote *note)
{
    void *handle = NULL;
    if (us_physical_adopt(device, file, note, 0, &handle) != MEMORY_OK) {
        return NULL;
    }
    void *address = map_anywhere(device->platform, handle, note->size);
    us_physical_free(device->platform, handle); /* the mapping keeps the memory */
    return address;
}

IpcStatus us_memory_import(Device *device, uint64_t key, bool everywhere, void **address, Explanation *why)
{
    Platform *platform = device->platform;
    if (us_ipc_is_own(key)) {
        us_explain(why, "this process shares it itself");
        return IPC_UNKNOWN;
    }
    void *mapped = import_again(platform, key);
    if (mapped == NULL) {
        IpcNote note;
        int file = -1;
        IpcStatus status = us_ipc_fetch(key, IPC_MEMORY, platform->id, &note, &file, why);
        if (status != IPC_OK) {
            return status;
        }
        void *mine = map_file(everywhere ? device : us_device_of_note(device, &note), file, &note);
        mapped = mine != NULL ? add_import(platform, key, mine) : NULL;
        if (mine != NULL && mapped != mine) {
            unmap(platform, mine);
        }
    }
    if (mapped == NULL) {
        us_explain(why, "the host cannot map more memory");
        return IPC_EXHAUSTED;
    }
    *address = mapped;
    return IPC_OK;
}

bool us_memory_import_close(Platform *platform, uint64_t key)
{
    PlatformState *state = platform_state(platform);
    void *last = NULL;
    pthread_mutex_lock(&state->memory_lock);
    MemoryImport **link = find_import(state, key);
    MemoryImport *import = *link;
    bool known = import != NULL;
    if (known && --import->count == 0) {
        *link = import->next;
        last = import->address;
        free(import);
    }
    pthread_mutex_unlock(&state->memory_lock);
    if (last != NULL) {
        unmap(platform, last);
    }
    return known;
}

bool us_memory_import_key(Platform *platform, const void *address, uint64_t *key)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    const MemoryImport *import = state->imports;
    while (import != NULL && import->address != address) {
        import = import->next;
    }
    if (import != NULL) {
        *key = import->key;
    }
    pthread_mutex_unlock(&state->memory_lock);
    return import != NULL;
}
