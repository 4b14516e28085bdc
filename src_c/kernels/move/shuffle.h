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

/* Vector `row` of three in which the elements take turns, or of the three whose elements did. */
US_ALWAYS_INLINE Vector pick_of_three(const Vector *now, int size, int row, bool apart)
{
    Vector of_two, of_all; /* constants */
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const int side = 16 / size, k = i / size, in_turns = row * side + k;
        const int from = (apart ? 3 * k + row : in_turns % 3 * side + in_turns / 3) * size + i % size;
        of_two[i] = (uint8_t)(from < 32 ? from : 0);
        of_all[i] = (uint8_t)(from < 32 ? i : from - 16);
    }
    return __builtin_shuffle(__builtin_shuffle(now[0], now[1], of_two), now[2], of_all);
}

/* In place of `rows` (2, 3, 4, 8 or 16) vectors come their elements in turns; or, `apart`, of elements that take turns those of
 * each row. */
US_ALWAYS_INLINE void weave_rows(Vector *now, int rows, int size, bool apart)
{
    if (rows == 3) {
        const Vector next[] = {pick_of_three(now, size, 0, apart), pick_of_three(now, size, 1, apart),
                               pick_of_three(now, size, 2, apart)};
        now[0] = next[0];
        now[1] = next[1];
        now[2] = next[2];
    } else {
        interleave_again(now, rows, size, apart ? 8 / size : rows / 2);
    }
}

#endif
