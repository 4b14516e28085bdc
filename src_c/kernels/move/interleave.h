/* Rows whose elements take turns in the result: to[c * rows + r] = from[offsets[r] + c]. */
#ifndef UNDERSTUDY_INTERLEAVE_H
#define UNDERSTUDY_INTERLEAVE_H

#include <stdint.h>

enum { INTERLEAVED_ROWS = 16, INTERLEAVED_BYTES = 16 /* of a row at a time */ };

/* 2, 4, 8 or 16 rows of elements of 1, 2, 4 or 8 bytes; distances in bytes. */
typedef struct Interleaved {
    int64_t offsets[INTERLEAVED_ROWS];
    int64_t rows, columns, element;
} Interleaved;

/* `count` times, to_step and from_step apart. */
void us_interleave(const Interleaved *rows, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count);

#endif
