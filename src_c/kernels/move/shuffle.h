/* Vectors of 16 bytes, and columns of them that fill a register, whose elements are put in other places. */
#ifndef UNDERSTUDY_SHUFFLE_H
#define UNDERSTUDY_SHUFFLE_H

#include "tensor/convert.h"
#include "tensor/levels.h"

#include <string.h>

/* GCC 11 would put a column together in memory. */
#if __GNUC__ >= 12
#define COLUMN_BYTES REGISTER_BYTES
#else
#define COLUMN_BYTES 16
#endif

#define VECTOR_BYTES 16
#define VECTOR Vector
#define NAME(function) function
#include "kernels/move/shuffle.inc"

#define VECTOR_BYTES COLUMN_BYTES
#define VECTOR Column
#define NAME(function) US_NAME(function, column)
#include "kernels/move/shuffle.inc"

/* 16 bytes from each of some places `step` bytes apart. */
US_ALWAYS_INLINE Column load_column(const char *from, int64_t step)
{
    Vector parts[COLUMN_BYTES / 16];
#pragma GCC unroll 4
    for (int i = 0; i < COLUMN_BYTES / 16; i++) {
        memcpy(&parts[i], from + i * step, 16);
    }
#if COLUMN_BYTES == 64
    typedef uint64_t One __attribute__((vector_size(16)));
    typedef uint64_t Two __attribute__((vector_size(32)));
    const Two low = __builtin_shufflevector((One)parts[0], (One)parts[1], 0, 1, 2, 3);
    const Two high = __builtin_shufflevector((One)parts[2], (One)parts[3], 0, 1, 2, 3);
    return (Column)__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#elif COLUMN_BYTES == 32
    typedef uint64_t One __attribute__((vector_size(16)));
    return (Column)__builtin_shufflevector((One)parts[0], (One)parts[1], 0, 1, 2, 3);
#else
    return parts[0];
#endif
}

#endif
