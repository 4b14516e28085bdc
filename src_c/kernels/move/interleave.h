/* Rows whose elements take turns: in_turns[c * rows + r] = rows[offsets[r] + c], or the other way round. */
#ifndef UNDERSTUDY_INTERLEAVE_H
#define UNDERSTUDY_INTERLEAVE_H

#include <stdbool.h>
#include <stdint.h>

enum { INTERLEAVED_ROWS = 16, INTERLEAVED_BYTES = 16 /* of a row at a time */ };

/* 2, 3, 4, 8 or 16 rows of elements of 1, 2, 4 or 8 bytes; distances in bytes. */
typedef struct Interleaved {
    int64_t offsets[INTERLEAVED_ROWS];
    int64_t rows, columns, element;
    bool apart; /* `from` has the elements in turns, `to` the rows */
} Interleaved;

/* `count` times, to_step and from_step apart. */
void us_interleave(const Interleaved *rows, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count);

#endif
