/* Elements of two vectors of 16 bytes that take turns. */
#ifndef UNDERSTUDY_SHUFFLE_H
#define UNDERSTUDY_SHUFFLE_H

#include "tensor/convert.h"

typedef uint8_t Vector __attribute__((vector_size(16)));

/* a[k] b[k] a[k+1] b[k+1] … of elements of `size` bytes; the first of them are `begin` bytes from the start. */
US_ALWAYS_INLINE Vector interleave(Vector a, Vector b, int size, int begin)
{
    Vector places; /* a constant: of a's bytes 0 … 15, of b's 16 … 31 */
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const int element = i / size;
        places[i] = (uint8_t)(begin + element / 2 * size + i % size + element % 2 * 16);
    }
    return __builtin_shuffle(a, b, places);
}

/* `rows` (2, 4, 8 or 16) vectors: those of vector i take turns with those of the one half the rows below it, again and again.
 * `rows` / 2 times leave the elements of all rows in turns; 8 / size times tell elements that take turns apart. */
US_ALWAYS_INLINE void interleave_again(Vector *now, int rows, int size, int widest)
{
    Vector next[16];
#pragma GCC unroll 4
    for (int width = 1; width <= widest; width *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < rows / 2; i++) {
            next[2 * i] = interleave(now[i], now[i + rows / 2], size, 0);
            next[2 * i + 1] = interleave(now[i], now[i + rows / 2], size, 8);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            now[i] = next[i];
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

/* The elements of `rows` (2, 3, 4, 8 or 16) vectors in turns; or, `apart`, those of each row, which take turns. */
US_ALWAYS_INLINE void interleave_rows(Vector *now, int rows, int size, bool apart)
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
