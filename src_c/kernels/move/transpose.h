/* Matrices whose rows become columns, bit by bit, on the calling thread. */
#ifndef UNDERSTUDY_TRANSPOSE_H
#define UNDERSTUDY_TRANSPOSE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a row of the least square that is turned at once. */
enum { SQUARE_BYTES = 16 };

/* to[c][r] = from[r][c]: elements that are neighbours in the rows of both. */
typedef struct Transposed {
    char *to;
    const char *from;
    int64_t to_row, from_row; /* bytes from one row to the next */
    int64_t rows, columns;    /* of `from` */
    int64_t next;             /* bytes from what is read to what is read after it, which is asked for; or 0 */
    bool past;     /* past the caches, where us_transposes_lines: all rows of `to` begin and end with cache lines */
    int64_t first; /* if past: to[c][r] = from[first + r][c], where behind the last row the first follows, a column later */
} Transposed;

void us_transpose_part(const Transposed *all, int64_t element);

/* Nothing is asked for, and nothing goes past the caches. */
void us_transpose(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns,
                  int64_t element);

/* Whether this level writes whole cache lines at once. */
bool us_transposes_lines(void);

/* Whether half the nearest cache, of 8 lines at each of 64 places, holds a line of each of so many rows. */
bool us_lines_fit(int64_t rows, int64_t row_bytes);

#endif
