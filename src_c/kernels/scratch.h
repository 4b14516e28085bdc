/* Working memory of a kernel: a stack of blocks for each thread. Threads keep their blocks from call to call, because first
 * touch of fresh memory costs more than most kernels (performance-notes); very large blocks are given back. */
#ifndef UNDERSTUDY_SCRATCH_H
#define UNDERSTUDY_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/* A block of `size` bytes, aligned to 64, with any content. NULL: no memory. Blocks nest: the one taken last by a thread is
 * given back first, by that thread. Giving back NULL does nothing. */
void *us_scratch_take(size_t size);
void us_scratch_give_back(void *block);

/* Bytes that a part of a block takes, or that all do, and the next part of it: *cursor steps over an aligned part. */
static inline size_t us_scratch_round(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Sizes come from a caller's shapes, whose elements need not be in memory: a view may stand for 2^63 - 1 of them with one
 * stored. So products are counted by these functions, and what is more than there can be is more than can be taken. */
static inline int64_t us_scratch_count(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Of `count` elements of `size` bytes: as one of fewer than 64 parts of a block, too. */
static inline size_t us_scratch_bytes(int64_t count, size_t size)
{
    const size_t too_much = SIZE_MAX / 128;
    size_t bytes;
    return __builtin_mul_overflow((uint64_t)count, size, &bytes) || bytes > too_much ? too_much : us_scratch_round(bytes);
}

/* A block of `count` elements of `size` bytes. */
static inline void *us_scratch_array(int64_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow((uint64_t)count, size, &bytes) ? NULL : us_scratch_take(bytes);
}

static inline size_t us_scratch_sum(const size_t *parts, int count)
{
    size_t sum = 0;
    for (int i = 0; i < count; i++) {
        sum += us_scratch_round(parts[i]);
    }
    return sum;
}

static inline void *us_scratch_part(char **cursor, size_t bytes)
{
    void *part = *cursor;
    *cursor += us_scratch_round(bytes);
    return part;
}

#endif
