#include "device/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t PAGE = 4096;
static const size_t LARGE_PAGE = (size_t)2 << 20;
static const size_t RECYCLED_BYTES_LIMIT = (size_t)2 << 30;
static const size_t FREED_BLOCKS_REMEMBERED = 65536;

#ifdef __SANITIZE_THREAD__
static const size_t FIRST_SPAN = (size_t)64 << 30; /* the shadow of larger ranges does not fit */
#else
static const size_t FIRST_SPAN = (size_t)16 << 40;
#endif
static const size_t LAST_SPAN = (size_t)1 << 30;

static void *reserve(size_t span, int protection)
{
    void *base = mmap(NULL, span, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    madvise(base, span, MADV_DONTDUMP);
    return base;
}

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

bool us_arena_reserve(Arena *arena, bool accessible)
{
    memset(arena, 0, sizeof *arena);
    /* Smaller ranges when the process is limited (ulimit -v, sanitizers). */
    for (size_t span = FIRST_SPAN; span >= LAST_SPAN; span /= 4) {
        void *base = reserve(span, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
        void *alias = accessible || base == NULL ? base : reserve(span, PROT_READ | PROT_WRITE);
        if (alias != NULL) {
            arena->base = (uintptr_t)base;
            arena->alias = (char *)alias - (char *)base;
            arena->span = span;
            arena->next = round_up(arena->base + (size_t)arena->alias, LARGE_PAGE) - arena->base - (size_t)arena->alias;
            return true;
        }
        if (base != NULL) {
            munmap(base, span);
        }
    }
    return false;
}

static char *alias_of(const Arena *arena, size_t offset)
{
    return (char *)arena->base + arena->alias + offset;
}

static bool is_large(size_t size)
{
    return size >= LARGE_PAGE;
}

/* Pages behind a block: whole large pages for large blocks, so that they can be moved table by table. */
static size_t backing_length(size_t size)
{
    return round_up(size, is_large(size) ? LARGE_PAGE : PAGE);
}

/* Moves touched pages of an equally long freed block to `offset`. */
static bool take_recycled(Arena *arena, size_t offset, size_t length)
{
    for (size_t i = arena->recycled_count; i-- > 0;) {
        RecycledPages pages = arena->recycled[i];
        if (pages.length != length) {
            continue;
        }
        arena->recycled_count--;
        arena->recycled_bytes -= length;
        memmove(&arena->recycled[i], &arena->recycled[i + 1], (arena->recycled_count - i) * sizeof pages);
        /* The old range stays mapped (and empty), so that a kernel that still runs on it does not stop the process. */
        void *moved = mremap(alias_of(arena, pages.offset), length, length,
                             MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, alias_of(arena, offset));
        if (moved == MAP_FAILED) {
            madvise(alias_of(arena, pages.offset), length, MADV_DONTNEED);
            return false;
        }
        return true;
    }
    return false;
}

static void drop_oldest_recycled(Arena *arena)
{
    RecycledPages pages = arena->recycled[0];
    madvise(alias_of(arena, pages.offset), pages.length, MADV_DONTNEED);
    arena->recycled_count--;
    arena->recycled_bytes -= pages.length;
    memmove(&arena->recycled[0], &arena->recycled[1], arena->recycled_count * sizeof pages);
}

static void recycle(Arena *arena, size_t offset, size_t length)
{
    if (length > RECYCLED_BYTES_LIMIT) {
        madvise(alias_of(arena, offset), length, MADV_DONTNEED);
        return;
    }
    while (arena->recycled_count == RECYCLED_LIMIT || arena->recycled_bytes + length > RECYCLED_BYTES_LIMIT) {
        drop_oldest_recycled(arena);
    }
    arena->recycled[arena->recycled_count++] = (RecycledPages){offset, length};
    arena->recycled_bytes += length;
}

/* Forgets the older half of the freed blocks when there are very many. */
static void forget_old_blocks(Arena *arena)
{
    if (arena->freed_count < 2 * FREED_BLOCKS_REMEMBERED) {
        return;
    }
    size_t to_forget = arena->freed_count / 2;
    size_t kept = 0;
    for (size_t i = 0; i < arena->block_count; i++) {
        if (arena->blocks[i].freed && to_forget > 0) {
            to_forget--;
            arena->freed_count--;
        } else {
            arena->blocks[kept++] = arena->blocks[i];
        }
    }
    arena->block_count = kept;
}

static Allocation *append_block(Arena *arena)
{
    forget_old_blocks(arena);
    if (arena->block_count == arena->block_capacity) {
        size_t capacity = arena->block_capacity == 0 ? 64 : 2 * arena->block_capacity;
        Allocation *blocks = realloc(arena->blocks, capacity * sizeof *blocks);
        if (blocks == NULL) {
            return NULL;
        }
        arena->blocks = blocks;
        arena->block_capacity = capacity;
    }
    Allocation *block = &arena->blocks[arena->block_count++];
    memset(block, 0, sizeof *block);
    return block;
}

Allocation *us_arena_allocate(Arena *arena, size_t size)
{
    if (size > arena->span) {
        return NULL;
    }
    size_t length = backing_length(size);
    size_t aligned = is_large(size) ? round_up(arena->base + (size_t)arena->alias + arena->next, LARGE_PAGE) -
                                          arena->base - (size_t)arena->alias
                                    : arena->next;
    /* One page nobody owns between blocks: a pointer just past a block is not the start of the next. */
    if (length + PAGE > arena->span || aligned > arena->span - length - PAGE) {
        return NULL;
    }
    Allocation *block = append_block(arena);
    if (block == NULL) {
        return NULL;
    }
    if (is_large(size) && !take_recycled(arena, aligned, length)) {
        madvise(alias_of(arena, aligned), length, MADV_HUGEPAGE);
    }
    arena->next = aligned + length + PAGE;
    block->address = arena->base + aligned;
    block->size = size;
    return block;
}

void us_arena_free(Arena *arena, Allocation *block)
{
    block->freed = true;
    arena->freed_count++;
    size_t offset = block->address - arena->base;
    size_t length = backing_length(block->size);
    if (is_large(block->size)) {
        recycle(arena, offset, length);
    } else {
        madvise(alias_of(arena, offset), length, MADV_DONTNEED);
    }
}

size_t us_arena_slack(const Allocation *block)
{
    return backing_length(block->size) + PAGE - block->size;
}

Allocation *us_arena_find(const Arena *arena, uintptr_t address)
{
    size_t low = 0;
    size_t high = arena->block_count; /* the first block that starts behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (arena->blocks[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    Allocation *block = &arena->blocks[low - 1];
    return address - block->address <= block->size ? block : NULL;
}
