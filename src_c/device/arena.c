#include "device/arena.h"

#include "device/host_access.h"
#include "report/descriptor.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t RECYCLED_BYTES_LIMIT = (size_t)2 << 30;
static const size_t MIB = (size_t)1 << 20;
static const size_t GIB = (size_t)1 << 30;
enum { RESTING_BLOCKS = 16384 };

void us_arena_init(Arena *arena, bool accessible, bool twice)
{
    memset(arena, 0, sizeof *arena);
    arena->accessible = accessible;
    RegionView view = !accessible ? REGION_ADDRESSES : twice ? REGION_TWICE : REGION_MEMORY;
    RangeProfile small = {.view = view, .first_span = GIB,
                          .comfortable = 4 * GIB, .rest_limit = RESTING_BLOCKS};
    RangeProfile large = small;
    large.large_pages = true;
    large.first_span = 8 * GIB;
    large.comfortable = 256 * GIB;
    us_ranges_init(&arena->addresses[BLOCKS_SMALL], &small);
    us_ranges_init(&arena->addresses[BLOCKS_LARGE], &large);
    RangeProfile small_memory = {.view = REGION_MEMORY, .first_span = 64 * MIB};
    RangeProfile large_memory = {.view = REGION_MEMORY, .large_pages = true, .first_span = 4 * GIB};
    us_ranges_init(&arena->memory[BLOCKS_SMALL], &small_memory);
    us_ranges_init(&arena->memory[BLOCKS_LARGE], &large_memory);
}

static int class_of(size_t reach)
{
    return reach >= us_large_page_size() ? BLOCKS_LARGE : BLOCKS_SMALL;
}

static Range *range_of(const Allocation *block)
{
    return (Range *)((char *)block - offsetof(Range, block));
}

/* ---- memory ---- */

static void forget_pages(const Range *range)
{
    bool shared = range->region->alias != 0; /* both views have it */
    madvise((void *)range->start, range->length, shared ? MADV_REMOVE : MADV_DONTNEED);
}

/* Takes entry `index` out of the recycled memory. */
static Range *take_recycled(Arena *arena, size_t index)
{
    Range *range = arena->recycled[index];
    arena->recycled_count--;
    arena->recycled_bytes -= range->length;
    memmove(&arena->recycled[index], &arena->recycled[index + 1], (arena->recycled_count - index) * sizeof range);
    return range;
}

static Range *take_memory(Arena *arena, int class, size_t length)
{
    Ranges *ranges = &arena->memory[class];
    length = (length + ranges->granule - 1) / ranges->granule * ranges->granule;
    for (size_t i = class == BLOCKS_LARGE ? arena->recycled_count : 0; i-- > 0;) {
        if (arena->recycled[i]->length == length) {
            return take_recycled(arena, i);
        }
    }
    return us_ranges_take(ranges, length, 1);
}

static void give_memory(Arena *arena, int class, Range *range)
{
    if (class == BLOCKS_LARGE && range->length <= RECYCLED_BYTES_LIMIT) {
        while (arena->recycled_count == RECYCLED_LIMIT || arena->recycled_bytes + range->length > RECYCLED_BYTES_LIMIT) {
            Range *oldest = take_recycled(arena, 0);
            forget_pages(oldest);
            us_ranges_give(&arena->memory[class], oldest);
        }
        arena->recycled[arena->recycled_count++] = range;
        arena->recycled_bytes += range->length;
        return;
    }
    forget_pages(range);
    us_ranges_give(&arena->memory[class], range);
}

/* ---- blocks ---- */

Allocation *us_arena_allocate(Arena *arena, size_t size, size_t reach)
{
    if (reach > SIZE_MAX / 4) {
        return NULL;
    }
    int class = class_of(reach);
    Ranges *addresses = &arena->addresses[class];
    /* A page nobody owns behind each block: a pointer just past a block is not the start of the next. */
    size_t length = reach + us_page_size();
    Range *range = us_ranges_take(addresses, length, 1);
    if (range == NULL) {
        return NULL;
    }
    range->memory = arena->accessible ? NULL : take_memory(arena, class, length);
    if (range->memory == NULL && !arena->accessible) {
        us_ranges_give(addresses, range);
        return NULL;
    }
    ptrdiff_t alias = range->memory != NULL ? (ptrdiff_t)(range->memory->start - range->start) : range->region->alias;
    range->block = (Allocation){.address = range->start, .size = size, .reach = reach, .alias = alias};
    return &range->block;
}

/* ---- memory that other processes have too ---- */

/* Kernels may have written here just before the pages were closed to them, which orders that; the thread sanitizer does not
 * know it. */
__attribute__((no_sanitize("thread"))) static bool is_zero(const uint64_t *words, size_t count)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count && any == 0; i++) {
        any |= words[i];
    }
    return any == 0;
}

/* What was never written costs no memory in the file either. */
static bool copy_to_file(int file, const char *bytes, size_t size)
{
    size_t page = us_page_size();
    for (size_t at = 0; at < size; at += page) {
        bool zero = is_zero((const uint64_t *)(const void *)(bytes + at), page / sizeof(uint64_t));
        if (!zero && syscall(SYS_pwrite64, file, bytes + at, page, (off_t)at) != (long)page) {
            return false;
        }
    }
    return true;
}

/* Tasks may write meanwhile: they stop at the protected pages until the move has ended (host_access.h). Sanitizers cannot
 * know that, and would take the mapping for a write that nothing orders: hence the system call itself. */
static bool move_to_file(int file, const Range *memory)
{
    void *start = (void *)memory->start;
    us_host_access_begin_move();
    bool moved = mprotect(start, memory->length, PROT_READ) == 0 &&
                 copy_to_file(file, start, memory->length) &&
                 syscall(SYS_mmap, start, memory->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != -1;
    if (!moved) {
        mprotect(start, memory->length, PROT_READ | PROT_WRITE);
    }
    us_host_access_end_move();
    return moved;
}

int us_arena_share(const Arena *arena, Allocation *block)
{
    const Range *range = range_of(block);
    const Range *memory = arena->accessible ? range : range->memory;
    if (block->shared_file == 0) {
        int file = us_descriptor(memfd_create("understudy", MFD_CLOEXEC));
        if (file >= 0 && (ftruncate(file, (off_t)memory->length) != 0 || !move_to_file(file, memory))) {
            close(file);
            file = -1;
        }
        block->shared_file = file + 1;
    }
    return block->shared_file - 1;
}

/* Others may have the pages still: the addresses get new ones. */
static void leave_file(Arena *arena, int class, Range *range)
{
    Range *memory = range->memory;
    Ranges *ranges = memory != NULL ? &arena->memory[class] : &arena->addresses[class];
    us_ranges_empty(ranges, memory != NULL ? memory->start : range->start, memory != NULL ? memory->length : range->length);
    if (memory != NULL) {
        us_ranges_give(ranges, memory);
        range->memory = NULL;
    }
}

/* ---- the end of blocks ---- */

void us_arena_free(Arena *arena, Allocation *block)
{
    Range *range = range_of(block);
    int class = class_of(block->reach);
    block->freed = true;
    if (block->shared_file != 0) {
        leave_file(arena, class, range);
    } else if (range->memory != NULL) {
        give_memory(arena, class, range->memory);
        range->memory = NULL;
    } else {
        forget_pages(range);
    }
    us_ranges_give(&arena->addresses[class], range);
}

Allocation *us_arena_find(const Arena *arena, uintptr_t address)
{
    for (int class = 0; class < BLOCK_CLASSES; class++) {
        Range *range = us_ranges_find(&arena->addresses[class], address);
        if (range != NULL) {
            return address - range->start <= range->block.reach ? &range->block : NULL;
        }
    }
    return NULL;
}

const Region *us_arena_holds(const Arena *arena, uintptr_t address, size_t size)
{
    const Region *small = us_ranges_hold(&arena->addresses[BLOCKS_SMALL], address, size);
    return small != NULL ? small : us_ranges_hold(&arena->addresses[BLOCKS_LARGE], address, size);
}

bool us_arena_memory_holds(const Arena *arena, uintptr_t address)
{
    const Ranges *ranges = arena->accessible ? arena->addresses : arena->memory;
    return us_ranges_hold(&ranges[BLOCKS_SMALL], address, 0) != NULL ||
           us_ranges_hold(&ranges[BLOCKS_LARGE], address, 0) != NULL;
}

void us_arena_each(Arena *arena, void (*visit)(Allocation *block, void *context), void *context)
{
    for (int class = 0; class < BLOCK_CLASSES; class++) {
        Range *next = NULL;
        for (Range *range = arena->addresses[class].taken.first; range != NULL; range = next) {
            next = range->next;
            visit(&range->block, context);
        }
    }
}

size_t us_arena_slack(const Allocation *block)
{
    const Range *range = range_of(block);
    return (range->memory != NULL ? range->memory->length : range->length) - block->size;
}
