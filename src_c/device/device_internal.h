/* What the files of this folder share and nobody else needs. */
#ifndef UNDERSTUDY_DEVICE_INTERNAL_H
#define UNDERSTUDY_DEVICE_INTERNAL_H

#include "device/arena.h"
#include "device/device.h"
#include "device/reference.h"

#include <pthread.h>

enum { REGISTERED_RANGE_LIMIT = 4096 };

typedef struct VirtualMemory VirtualMemory;
typedef struct MemoryImport MemoryImport;

/* The private parts behind the public structures: each public structure is the first member. */
typedef struct PlatformState {
    Platform public;
    pthread_mutex_t lock;        /* vendor state */
    pthread_mutex_t memory_lock; /* every arena and the registered ranges of the platform */
    pthread_mutex_t device_lock; /* starting devices; lists of contexts, streams */
    Arena host_arena;            /* pinned and managed memory */
    VirtualMemory *virtual_memory; /* reserved addresses and what is mapped there; NULL before first use; memory_lock */
    MemoryImport *imports; /* of other processes' blocks; memory_lock */
    Allocation registered[REGISTERED_RANGE_LIMIT];
    size_t registered_count;
    uint64_t next_serial;
} PlatformState;

typedef struct StreamState StreamState;

typedef struct ContextState {
    Context public;
    References references; /* the handle, and streams, which may outlive it */
    bool ending;          /* takes no further streams; device_lock */
    bool reset;           /* existed when its device was reset; device_lock */
    StreamState *streams; /* list; device_lock */
    struct ContextState *next;
    DeviceFault stop_fault; /* of the task that failed while the context stopped on failure; device_lock */
    Explanation stop_why;
} ContextState;

typedef struct DeviceState {
    Device public;
    Arena arena;
    size_t capacity, used;  /* bytes; memory_lock */
    struct PoolState *pools; /* list; memory_lock */
    ContextState *contexts; /* list; device_lock */
    pthread_mutex_t fault_lock;
    DeviceFault fault; /* first fault on any stream: sticky platforms report it from everything on the device */
    Explanation fault_why;
} DeviceState;

static inline PlatformState *platform_state(const Platform *platform)
{
    return (PlatformState *)platform;
}

static inline ContextState *context_state(const Context *context)
{
    return (ContextState *)context;
}

static inline DeviceState *device_state(const Device *device)
{
    return (DeviceState *)device;
}

/* With the memory lock held: bytes that are left. A dropped return may take a pool, and so the device, beyond what there is. */
static inline size_t us_device_room(const DeviceState *device)
{
    return device->used < device->capacity ? device->capacity - device->used : 0;
}

/* The platform with that id; NULL when it does not exist. */
Platform *us_platform_at(int id);

/* Streams of the device that the program created and has not destroyed. */
uint64_t us_device_streams(const Device *device);

/* The memory of a context: false when it has ended. */
bool us_context_hold(Context *context);
void us_context_let_go(Context *context);

/* Enters a stream in its context's list (false: the context is ending) and takes it out. */
bool us_context_add_stream(Context *context, StreamState *stream);
void us_context_remove_stream(Context *context, StreamState *stream);
/* Lets every stream of the platform run what it has (deferred mode). */
void us_platform_allow(Platform *platform);
/* No stream of the context, present or future, runs another task; all of them report the fault. */
void us_context_stop(Context *context, DeviceFault fault, const Explanation *why);

/* Sets up the device's arena and capacity and makes host accesses to it stop with a message. */
void us_memory_start_device(DeviceState *device);
void us_memory_free_all(Device *device, uint64_t newest);
uint64_t us_memory_newest(const Device *device); /* the serial of the last block that was allocated */

/* With the memory lock held: frees a block of the allocators, whatever it is. */
void us_memory_end_block(PlatformState *platform, Allocation *block);

/* UNDERSTUDY_DEVICE_ACCESS=host */
bool us_host_may_access(void);

/* The region of reserved addresses that has some of these; NULL: none. */
const Region *us_virtual_holds(const PlatformState *platform, uintptr_t address, size_t size);
/* With the memory lock held: the block that is mapped there; unmaps all memory of a device. */
Allocation *us_virtual_find(const PlatformState *platform, uintptr_t address);
void us_virtual_memory_unmap_all(PlatformState *platform, const Device *device);

/* Calls `visit` for every live block, with the memory lock held. */
void us_memory_each(Platform *platform, void (*visit)(Allocation *block, void *context), void *context);
/* The same for physical memory that this process has made: where in which file it is. */
void us_physical_each(Platform *platform, void (*visit)(int file, int64_t offset, size_t size, void *context), void *context);
/* With the memory lock held: the registry's own entry for an address; NULL: none. */
Allocation *us_memory_block(Platform *platform, const void *address);
/* Whether some of these addresses are those of device memory (blocks or not), which nobody may touch. */
bool us_memory_is_closed(PlatformState *platform, uintptr_t address, size_t size);

/* Whether the address is in the memory where the bytes of some device's blocks are. Takes no lock. */
bool us_memory_is_behind_blocks(const PlatformState *platform, uintptr_t address);

/* Physical memory that is a part of a file; the descriptor is taken over. */
MemoryStatus us_physical_adopt(Device *device, int file, const IpcNote *note, uint64_t key, void **handle);
/* The device of this process with that physical number, or `device`. */
Device *us_device_of_note(Device *device, const IpcNote *note);


#endif
