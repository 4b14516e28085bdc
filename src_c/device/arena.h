/* The memory of a device, or of the host's page-locked and managed blocks: addresses, what is behind them, and which blocks
 * there are.
 *
 * The addresses that a program is given for device memory are only numbers: nobody may touch them. The bytes of a block are
 * elsewhere (`alias` away) and are used again at once when the block is freed; its address rests first (ranges.h). Where the
 * host may touch memory, both are the same. */
#ifndef UNDERSTUDY_ARENA_H
#define UNDERSTUDY_ARENA_H

#include "device/memory.h"
#include "device/ranges.h"

enum { RECYCLED_LIMIT = 64 };

/* Blocks of less than 2 MiB and larger ones are kept apart: the latter have large pages. */
enum { BLOCKS_SMALL, BLOCKS_LARGE, BLOCK_CLASSES };

typedef struct Arena {
    bool accessible; /* the program may touch its addresses */
    Ranges addresses[BLOCK_CLASSES];
    Ranges memory[BLOCK_CLASSES]; /* unused when accessible */
    /* Memory of freed large blocks with its pages, latest last: fresh pages must be zeroed by the kernel, which costs more
     * than most operators. */
    Range *recycled[RECYCLED_LIMIT];
    size_t recycled_count, recycled_bytes;
} Arena;

/* Reserves nothing yet. `twice`: accessible memory gets a second view, so that its addresses may be closed to the program
 * for a while. */
void us_arena_init(Arena *arena, bool accessible, bool twice);

/* A new block, of which only size, reach and alias are set. NULL: no addresses or no memory left. */
Allocation *us_arena_allocate(Arena *arena, size_t size, size_t reach);

/* Puts the bytes of a live block into a file, where other processes can map them; gives its descriptor, or -1. Threads that
 * write to the block meanwhile wait (host_access.h). */
int us_arena_share(const Arena *arena, Allocation *block);

/* Marks a live block freed and gives its pages back or keeps them for a later block. */
void us_arena_free(Arena *arena, Allocation *block);

/* The block, live or freed, that holds the address or ends at it; NULL when the arena knows none. */
Allocation *us_arena_find(const Arena *arena, uintptr_t address);

/* The region that has some of these addresses; NULL: none. */
const Region *us_arena_holds(const Arena *arena, uintptr_t address, size_t size);

/* Whether the address is in the memory where the bytes of blocks are. */
bool us_arena_memory_holds(const Arena *arena, uintptr_t address);

/* Calls `visit` for every live block, which `visit` may free. */
void us_arena_each(Arena *arena, void (*visit)(Allocation *block, void *context), void *context);

/* Bytes from the end of what was asked for to the first byte that another block may have. */
size_t us_arena_slack(const Allocation *block);

#endif
