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

/* `rows` (2, 4, 8 or 16) vectors in place of which come their elements in turns: those of vector i with those of the one
 * half the rows below it, again and again. */
US_ALWAYS_INLINE void interleave_rows(Vector *now, int rows, int size)
{
    Vector next[16];
#pragma GCC unroll 4
    for (int width = 1; width < rows; width *= 2) {
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

#endif
