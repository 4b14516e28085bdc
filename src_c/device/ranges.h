/* Address space: reserved in a few large regions, handed out in ranges of whole granules, and, once given up, handed out again
 * only after a rest, so that a use after free can be told for a while although a program may go on for ever.
 *
 * A range rests until the ranges that were given up after it exceed a number, or a quarter of the address space that is (or
 * may well be) reserved; the oldest comes back first and joins its free neighbours. Regions are reserved when they are
 * needed, the first ones small, and take little of a limited address space (ulimit -v). Not thread-safe, except
 * us_ranges_hold. */
#ifndef UNDERSTUDY_RANGES_H
#define UNDERSTUDY_RANGES_H

#include "device/memory.h"

enum { REGION_LIMIT = 64, RANGE_SIZES = 64 };

typedef enum RegionView {
    REGION_ADDRESSES, /* nobody may touch them: numbers for the program */
    REGION_MEMORY,    /* memory */
    REGION_BOTH,      /* nobody may touch the addresses; `alias` further on there is memory */
    REGION_TWICE,     /* memory that is also `alias` further on; without a second view where the system gives none */
} RegionView;

typedef struct Range Range;

typedef struct Region {
    uintptr_t base;
    size_t span;
    ptrdiff_t alias; /* add to an address to get (the other view of) memory; 0 for REGION_MEMORY */
    Range **owners;  /* of each granule; of a free range only the first and the last */
} Region;

typedef enum RangeState { RANGE_TAKEN, RANGE_RESTING, RANGE_FREE } RangeState;

struct Range {
    uintptr_t start;
    size_t length;
    RangeState state;
    Region *region;
    Range *previous, *next; /* of the ranges in this state; free ones: also of this size */
    Range *memory;          /* arenas: where the block's bytes are; NULL: here */
    Allocation block;       /* arenas: what the range holds, or held while it rests */
};

typedef struct RangeList {
    Range *first, *last; /* oldest first */
    size_t count, bytes;
} RangeList;

typedef struct RangeProfile {
    RegionView view;
    bool large_pages;   /* memory in pages of 2 MiB; also the granule then */
    size_t first_span;  /* of the first region; each further one is twice as large, up to sixteen times */
    size_t comfortable; /* bytes reserved before resting ranges are used again ahead of time; at most an eighth of a limit */
    size_t rest_limit;  /* ranges that rest; 0: none do */
} RangeProfile;

typedef struct Ranges {
    RangeProfile profile;
    size_t granule;
    Region regions[REGION_LIMIT];
    size_t region_count; /* published with its region: readable without a lock */
    size_t reserved;     /* bytes in all regions */
    RangeList taken, resting, free[RANGE_SIZES]; /* by logarithm of the number of granules */
} Ranges;

/* The machine's pages, and those of 2 MiB. */
size_t us_page_size(void);
size_t us_large_page_size(void);

/* Reserves nothing yet. */
void us_ranges_init(Ranges *ranges, const RangeProfile *profile);

/* A range of at least `length` > 0 bytes; its start is a multiple of `alignment`, a power of two. NULL: no addresses or no
 * memory left. */
Range *us_ranges_take(Ranges *ranges, size_t length, size_t alignment);

/* Gives a range up: it rests. */
void us_ranges_give(Ranges *ranges, Range *range);

/* Puts empty memory where something else was mapped at the alias, as it was when its region was reserved. */
void us_ranges_empty(const Ranges *ranges, uintptr_t address, size_t size);

/* The range, taken or resting, that holds the address; NULL: none. */
Range *us_ranges_find(const Ranges *ranges, uintptr_t address);

/* The region some of whose addresses are among [address, address + size); NULL: none. */
const Region *us_ranges_hold(const Ranges *ranges, uintptr_t address, size_t size);

#endif
