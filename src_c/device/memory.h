/* Memory of an emulated device, and what every other pointer is.
 *
 * The address the program is given for device memory cannot be accessed by the host; kernels and copies use an alias, and
 * translation is one addition. A freed address comes back only when many others have been freed after it, so that a use
 * after free can be told although a program may allocate and free for ever. */
#ifndef UNDERSTUDY_MEMORY_H
#define UNDERSTUDY_MEMORY_H

#include "device/ipc.h"
#include "report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Platform Platform;
typedef struct Device Device;

typedef enum MemoryKind {
    MEMORY_HOST,    /* not ours: ordinary host memory */
    MEMORY_DEVICE,  /* a device allocation: kernels only */
    MEMORY_PINNED,  /* page-locked host memory of the vendor's allocator, or registered host memory */
    MEMORY_MANAGED, /* valid on both sides */
} MemoryKind;

/* A copy of the registry's entry. */
typedef struct Allocation {
    uintptr_t address;
    size_t size;     /* bytes the program asked for */
    size_t charged;  /* bytes of the device's capacity */
    size_t reach;    /* bytes that may be used, as on the card, which maps whole pages; at least size */
    ptrdiff_t alias; /* add to the address to get where the bytes are */
    MemoryKind kind;
    Device *device;       /* NULL for pinned memory */
    uint64_t also;        /* a bit for each other device that may use it whatever its peers (mapped and registered memory) */
    bool common;          /* pinned memory that will have its address on the device, too, once it is registered */
    bool both_sides;      /* it has: copies take it as memory of either side */
    bool closed;          /* mapped memory: nobody may use it but the devices in `also` */
    uint64_t serial;      /* 1, 2, 3 … in order of allocation on the platform: names the block in messages */
    const char *function; /* public function that made it: a literal */
    const void *caller;   /* in the program (report/caller.h), when somebody may want to know */
    bool freed;           /* only in entries found by address */
    unsigned char *written; /* UNDERSTUDY_CHECK=init: a bit per byte that has been written; otherwise NULL */
    int shared_file;        /* descriptor + 1 of the file that has the bytes, so that other processes may; 0: none */
    struct PoolState *pool; /* whose it is (pool.h); NULL: us_memory_free frees it */
    bool leaving;           /* its pool will get it back, or it is freed, when a stream comes to that */
    void *notes;            /* the vendor layer's, of malloc; ends with the block */
} Allocation;

typedef enum MemoryStatus {
    MEMORY_OK,
    MEMORY_EXHAUSTED, /* the device is full, or the host has no memory */
    MEMORY_NOT_FOUND, /* not the first byte of a live allocation of that kind */
} MemoryStatus;

/* How much memory: what the program asked for (> 0), what that costs of the device's capacity, and how far accesses go well
 * on the card, which maps whole pages (not less than the two others). */
typedef struct BlockSize {
    size_t asked, charged, mapped;
} BlockSize;

static inline BlockSize us_exactly(size_t size)
{
    return (BlockSize){size, size, size};
}

/* Allocates memory of kind DEVICE, PINNED or MANAGED, aligned to at least 4096. Sizes near 2^63 give MEMORY_EXHAUSTED.
 * `device` is the device that is charged; for PINNED only its platform matters. */
MemoryStatus us_memory_allocate(Device *device, MemoryKind kind, BlockSize size, const char *function, void **address);

/* Frees a block of that kind by its first address. On MEMORY_NOT_FOUND `why` says what the pointer is. */
MemoryStatus us_memory_free(Platform *platform, MemoryKind kind, void *address, Explanation *why);
/* The same by a task, which has told the checks that it uses the block. */
MemoryStatus us_memory_free_queued(Platform *platform, MemoryKind kind, void *address, Explanation *why);

/* Registers existing host memory as pinned (aclrtHostRegister, mcHostRegister), and undoes it; kernels see it if `mapped`.
 * Registering a range that overlaps a registered one gives MEMORY_EXHAUSTED, one that is not all memory MEMORY_NOT_FOUND. */
MemoryStatus us_memory_register(Platform *platform, void *address, size_t size, bool mapped, const char *function);
MemoryStatus us_memory_unregister(Platform *platform, void *address);

/* Finds the allocation, live or freed, that holds `address` (or whose end it is). False: ordinary host memory. */
bool us_memory_find(Platform *platform, const void *address, Allocation *found);

/* Calls `visit` with the live block that holds the address, while nobody else may change or end it; false: there is none. It
 * may change `notes`, `common` and `both_sides`, and nothing else. */
bool us_memory_visit(Platform *platform, const void *address, void (*visit)(Allocation *block, void *context), void *context);

/* Bytes of the device: capacity and what is free now. */
void us_memory_info(const Device *device, size_t *free_bytes, size_t *total_bytes);

/* Addresses without memory and memory without addresses (virtual_memory.c). What is mapped at a reserved address is device
 * memory like any other, except that us_memory_free refuses it. Released addresses rest as freed ones do. */
MemoryStatus us_address_reserve(Platform *platform, size_t size, size_t alignment, void **address);
MemoryStatus us_address_release(Platform *platform, void *address, Explanation *why); /* NOT_FOUND: also when mapped */
MemoryStatus us_physical_allocate(Device *device, size_t size, int32_t attribute, void **handle);
MemoryStatus us_physical_free(Platform *platform, const void *handle); /* mapped memory lives until it is unmapped */
/* What physical memory is; `attribute` is the vendor layer's, -1 for memory of another process. */
typedef struct PhysicalInfo {
    Device *device;
    size_t size;
    int32_t attribute;
} PhysicalInfo;
bool us_physical_find(Platform *platform, const void *handle, PhysicalInfo *info); /* false: the handle is not alive */
/* All of a handle's memory from `address` on: a page inside reserved addresses, with nothing mapped behind it. `closed`:
 * nobody may use it before us_memory_let_use. */
MemoryStatus us_memory_map(Platform *platform, void *address, const void *handle, bool closed, Explanation *why);
MemoryStatus us_memory_unmap(Platform *platform, void *address, Explanation *why);
/* What is mapped from exactly this address on: its size and device, which other devices may use it, and, with `handle`, one
 * more handle of its memory. NOT_FOUND: nothing is. */
typedef struct MappingInfo {
    size_t size;
    Device *device;
    uint64_t also;
    bool closed;
} MappingInfo;
MemoryStatus us_memory_mapping(Platform *platform, const void *address, MappingInfo *info, void **handle);
bool us_memory_let_use(Platform *platform, const void *address, uint64_t devices); /* false: nothing is mapped there */
/* The first byte and the size of the reserved addresses that hold the address. */
bool us_address_find(Platform *platform, const void *address, void **first, size_t *size);

/* Memory of several processes (ipc.h tells who gets it; us_ipc_withdraw takes it back). What one of them writes, all see.
 *
 * Physical memory has one key, the first one it was given; UNKNOWN: the handle is not alive. Importing gives another handle,
 * in the process that has the memory already too. Memory of another process is memory of the device that has it there, or of
 * `device` where this process does not see that one; it costs nothing of that device's capacity. */
IpcStatus us_physical_share(Platform *platform, const void *handle, bool anyone, uint64_t *key);
bool us_physical_is_shared(Platform *platform, const void *handle);
IpcStatus us_physical_import(Device *device, uint64_t key, void **handle, Explanation *why);
/* Whole pages of a block of us_memory_allocate (the last one may be longer than the block). The block keeps its address and
 * its bytes, also those that a kernel writes meanwhile; freeing it takes it back. UNKNOWN: not such pages. */
IpcStatus us_memory_share(Platform *platform, const void *address, size_t size, bool anyone, uint64_t *key,
                          Explanation *why);
/* A second import of a key gives the same address and must be closed too. `everywhere`: kernels of `device` may use it
 * whatever device has the memory. UNKNOWN also: this process shares it itself. */
IpcStatus us_memory_import(Device *device, uint64_t key, bool everywhere, void **address, Explanation *why);
bool us_memory_import_close(Platform *platform, uint64_t key); /* false: not imported */
bool us_memory_import_key(Platform *platform, const void *address, uint64_t *key); /* that of its first byte */

/* Who is going to touch the bytes. */
typedef enum MemoryUser {
    MEMORY_USER_KERNEL, /* memory of this device and its peers, managed memory (pinned too where `device` allows it) */
    MEMORY_USER_COPY,   /* anything alive; of ordinary host memory only that it is mapped is known */
} MemoryUser;

/* The address through which our own code may touch [address, address+size), or NULL with an explanation: freed block,
 * host memory in a kernel, another device, a range that leaves its block. size 0 is allowed. */
void *us_memory_open(Platform *platform, const Device *device, const void *address, size_t size, MemoryUser user,
                     Explanation *why);

/* The same for many ranges, between one us_memory_hold and us_memory_let_go: meanwhile no block comes or goes, and this
 * thread calls nothing else of this file. */
void us_memory_hold(Platform *platform);
void us_memory_let_go(Platform *platform);
void *us_memory_open_held(Platform *platform, const Device *device, const void *address, size_t size, MemoryUser user,
                          Explanation *why);

/* Copies: a rectangle of `height` rows of `width` bytes; a plain copy has height 1. */
typedef enum Side { SIDE_ANY, SIDE_HOST, SIDE_DEVICE } Side;
typedef struct Copy {
    void *destination;
    const void *source;
    size_t width, height;
    size_t destination_pitch, source_pitch; /* bytes from row to row; unused when height is 1 */
    Side destination_side, source_side;     /* what the caller claims; SIDE_ANY: infer */
} Copy;

/* What is wrong with a copy or fill before it runs. */
typedef enum CopyFault { COPY_OK, COPY_WRONG_SIDE, COPY_OUT_OF_BOUNDS, COPY_FREED } CopyFault;
CopyFault us_copy_check(Platform *platform, const Copy *copy, Explanation *why);
CopyFault us_copy_run(Platform *platform, const Copy *copy, Explanation *why); /* checks again, then copies, now */
/* The same as a part of queued work, without the questions that only a copy made by the host itself raises. */
CopyFault us_copy_perform(Platform *platform, const Copy *copy, Explanation *why);

/* Sets `count` elements of `element_size` bytes (1 or 4) to the low bytes of `value`. */
typedef struct Fill {
    void *destination;
    size_t count, element_size;
    uint32_t value;
} Fill;
CopyFault us_fill_check(Platform *platform, const Fill *fill, Explanation *why);
CopyFault us_fill_run(Platform *platform, const Fill *fill, Explanation *why);
CopyFault us_fill_perform(Platform *platform, const Fill *fill, Explanation *why); /* as us_copy_perform */

#endif
