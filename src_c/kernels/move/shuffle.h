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

/* Rows of bytes: `step` apart, or, where there is a table, anywhere. */
typedef struct Rows {
    const char *first;
    int64_t step;
    const char *const *table;
} Rows;

US_ALWAYS_INLINE const char *row_at(Rows rows, int number)
{
    return rows.table != NULL ? rows.table[number] : rows.first + number * rows.step;
}

/* `part` bytes, 16 or more, of each of as many rows as fill a column: of `first` and each `apart`th after it, from `at` on. */
US_ALWAYS_INLINE Column load_column(Rows rows, int first, int apart, int64_t at, int part)
{
    Column whole;
    memcpy(&whole, row_at(rows, first) + at, sizeof whole);
    (void)apart, (void)part; /* where one part is a column */
#if COLUMN_BYTES > 16
    typedef uint64_t One __attribute__((vector_size(16)));
    typedef uint64_t Two __attribute__((vector_size(32)));
    Two pairs[COLUMN_BYTES / 32];
#pragma GCC unroll 2
    for (int i = 0; i < COLUMN_BYTES / 32 && part < COLUMN_BYTES; i++) {
        if (part == sizeof(Two)) {
            memcpy(&pairs[i], row_at(rows, first + i * apart) + at, sizeof pairs[i]);
        } else {
            One one, other;
            memcpy(&one, row_at(rows, first + 2 * i * apart) + at, sizeof one);
            memcpy(&other, row_at(rows, first + (2 * i + 1) * apart) + at, sizeof other);
            pairs[i] = __builtin_shufflevector(one, other, 0, 1, 2, 3);
        }
    }
    if (part < COLUMN_BYTES) {
#if COLUMN_BYTES == 64
        return (Column)__builtin_shufflevector(pairs[0], pairs[1], 0, 1, 2, 3, 4, 5, 6, 7);
#else
        return (Column)pairs[0];
#endif
    }
#endif
    return whole;
}

/* Every second 16 bytes of a, and of b behind them, from number `first` on. */
US_ALWAYS_INLINE Column every_second(Column a, Column b, int first)
{
    Column places; /* a constant */
#pragma GCC unroll 64
    for (int i = 0; i < COLUMN_BYTES; i++) {
        places[i] = (uint8_t)((2 * (i / 16) + first) * 16 + i % 16);
    }
    return __builtin_shuffle(a, b, places);
}

/* As many columns as there are 16 bytes in a part of a row: of each row that a column has room for the first 16 bytes, of each
 * the next 16, and so on. */
US_ALWAYS_INLINE void load_columns(Column *to, Rows rows, int first, int apart, int64_t at, int part)
{
    const int count = part / 16;
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        to[i] = load_column(rows, first + i * (COLUMN_BYTES / part) * apart, apart, at, part);
    }
#pragma GCC unroll 2
    for (int turn = 1; turn < count; turn *= 2) {
        Column next[4];
#pragma GCC unroll 2
        for (int i = 0; i < count / 2; i++) {
            next[i] = every_second(to[2 * i], to[2 * i + 1], 0);
            next[i + count / 2] = every_second(to[2 * i], to[2 * i + 1], 1);
        }
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            to[i] = next[i];
        }
    }
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
