/* Stable sorting by unsigned keys, on all cores. */
#ifndef UNDERSTUDY_RADIX_H
#define UNDERSTUDY_RADIX_H

#include <stdint.h>

/* A key and what it belongs to. */
typedef struct WideEntry {
    uint64_t key, place;
} WideEntry;

/* The same in one number, for keys and places below 2^32: key << 32 | place. */
typedef uint64_t NarrowEntry;

/* Sorts by the keys; `bits`: keys are below 2^bits. `spare` has room for as many. Where the sorted entries are, in
 * one of the two; NULL: no memory. */
WideEntry *us_sort_wide(WideEntry *entries, WideEntry *spare, int64_t count, int bits);
NarrowEntry *us_sort_narrow(NarrowEntry *entries, NarrowEntry *spare, int64_t count, int bits);

#endif
