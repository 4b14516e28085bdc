/* Numbers of elements, and how many parts they make; the largest element. */
#ifndef UNDERSTUDY_SIZES_H
#define UNDERSTUDY_SIZES_H

#include <stdint.h>

/* An element of 16 bytes, to be moved. */
typedef struct Sixteen {
    uint64_t halves[2];
} Sixteen;

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t bounded(int64_t value, int64_t lowest, int64_t highest)
{
    return value < lowest ? lowest : smaller(value, highest);
}

/* Parts of `of` that hold `size`, which may be 2^63 - 1. */
static inline int64_t ceiling(int64_t size, int64_t of)
{
    return size / of + (size % of > 0);
}

#endif
