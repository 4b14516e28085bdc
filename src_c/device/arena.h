/* A range of addresses that are handed out once and never again, and the list of blocks in it.
 *
 * A device's arena is reserved twice: at `base` without any access (what the program is given) and at `base + alias` for
 * kernels and copies. Host memory (pinned, managed) has alias 0. */
#ifndef UNDERSTUDY_ARENA_H
#define UNDERSTUDY_ARENA_H

#include "device/memory.h"

typedef struct RecycledPages {
    size_t offset, length;
} RecycledPages;

enum { RECYCLED_LIMIT = 64 };

typedef struct Arena {
    uintptr_t base;
    ptrdiff_t alias; /* add to a program's address to get ours */
    size_t span;
    size_t next; /* offset of the first address never handed out */
    /* Blocks in order of address, live and freed. Old freed ones are forgotten when there are many. */
    Allocation *blocks;
    size_t block_count, block_capacity, freed_count;
    /* Touched pages of freed large blocks: moved under the next block of that length (fresh pages must be zeroed by the
     * kernel, which costs more than most operators). Latest last. */
    RecycledPages recycled[RECYCLED_LIMIT];
    size_t recycled_count, recycled_bytes;
} Arena;

/* Reserves the addresses. `accessible`: the program may touch them (host arena, UNDERSTUDY_DEVICE_ACCESS=host). */
bool us_arena_reserve(Arena *arena, bool accessible);

/* A new block of `size` bytes at a new address, entered in the list. NULL: no addresses or no memory left. */
Allocation *us_arena_allocate(Arena *arena, size_t size);

/* Marks a live block freed and gives its pages back or keeps them for a later block. */
void us_arena_free(Arena *arena, Allocation *block);

/* The block, live or freed, that holds the address or ends at it; NULL when the arena knows none. */
Allocation *us_arena_find(const Arena *arena, uintptr_t address);

/* Bytes between a block's end and the first byte that another block may have. */
size_t us_arena_slack(const Allocation *block);

static inline bool us_arena_holds(const Arena *arena, uintptr_t address)
{
    return address - arena->base < arena->span;
}

#endif
