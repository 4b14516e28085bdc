#include "kernels/move/transpose.h"

#include "kernels/move/copy_lines.h"
#include "kernels/move/shuffle.h"
#include "kernels/sizes.h"
#include "tensor/intrinsics.h"

enum {
    SQUARES = COLUMN_BYTES / SQUARE_BYTES, /* one below the other, that are turned at once */
    NEAR_ROW = 2048, /* bytes */
    FEW_LINES = 8,
};

/* Bytes of a row that are turned at once: as many as the rows of a column, but no more than 32 columns can hold. */
US_ALWAYS_INLINE int part_of(int size)
{
    return (2 * size < SQUARES ? 2 * size : SQUARES) * SQUARE_BYTES;
}

/* A square of 16 / size rows of 16 bytes. */
US_ALWAYS_INLINE void transpose_square(char *to, int64_t to_row, const char *from, int64_t from_row, int size)
{
    const int rows = SQUARE_BYTES / size;
    Vector now[16];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        memcpy(&now[i], from + i * from_row, SQUARE_BYTES);
    }
    interleave_rows(now, rows, size);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        memcpy(to + i * to_row, &now[i], SQUARE_BYTES);
    }
}

/* `past` the caches where columns are lines. */
US_ALWAYS_INLINE void store_column(char *to, const Column *column, bool past)
{
#if COLUMN_BYTES == 64
    if (past) {
        _mm512_stream_si512((__m512i *)(void *)to, (__m512i)*column);
        return;
    }
#endif
    (void)past;
    memcpy(to, column, sizeof *column);
}

/* SQUARES times as many rows of `part` bytes. */
US_ALWAYS_INLINE void transpose_column(char *to, int64_t to_row, Rows from, int64_t at, int part, int size, bool past)
{
    const int rows = SQUARE_BYTES / size, beside = part / SQUARE_BYTES;
    Column now[32]; /* `rows` for each 16 bytes of the part */
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        Column parts[4];
        load_columns(parts, from, i, rows, at, part);
#pragma GCC unroll 4
        for (int k = 0; k < beside; k++) {
            now[k * rows + i] = parts[k];
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < beside; k++) {
        interleave_rows_column(now + k * rows, rows, size);
    }
#pragma GCC unroll 32
    for (int i = 0; i < beside * rows; i++) {
        store_column(to + i * to_row, &now[i], past);
    }
}

/* What is read after `bytes` of some rows. */
US_ALWAYS_INLINE void ask_for_next(const Transposed *all, const char *from, int64_t rows, int64_t bytes)
{
    for (int64_t r = 0; all->next != 0 && r < rows; r++) {
        for (int64_t byte = 0; byte < bytes; byte += CACHE_LINE_BYTES) {
            __builtin_prefetch(from + r * all->from_row + byte + all->next);
        }
    }
}

/* Behind the last row of `from` the first follows, an element later. */
static const char *row_around(const Transposed *all, int64_t number, int64_t size)
{
    const bool again = number >= all->rows;
    return all->from + (again ? (number - all->rows) * all->from_row + size : number * all->from_row);
}

/* As many rows at a time as a column holds. The last rows and columns overlap the ones before. */
US_ALWAYS_INLINE void transpose_columns(const Transposed *all, int size, bool past)
{
    const int part = part_of(size);
    const int64_t side = SQUARE_BYTES / size, tall = side * SQUARES;
    for (int64_t begin = 0; begin < all->rows; begin += tall) {
        const int64_t first = smaller(begin, all->rows - tall);
        const char *table[COLUMN_BYTES];
        Rows rows = {all->from + first * all->from_row, all->from_row, NULL};
        if (past) {
            for (int64_t r = 0; r < tall; r++) {
                table[r] = row_around(all, all->first + first + r, size);
            }
            rows.table = table;
        }
        char *to = all->to + first * size;
        int64_t c = 0;
        for (; c + part / size <= all->columns; c += part / size) {
            for (int64_t r = 0; c * size % CACHE_LINE_BYTES == 0 && all->next != 0 && r < tall; r++) {
                __builtin_prefetch(row_at(rows, (int)r) + c * size + all->next);
            }
            transpose_column(to + c * all->to_row, all->to_row, rows, c * size, part, size, past);
        }
        for (int64_t rest = c; rest < all->columns; rest += side) {
            c = smaller(rest, all->columns - side);
            transpose_column(to + c * all->to_row, all->to_row, rows, c * size, SQUARE_BYTES, size, past);
        }
    }
}

/* The same with squares. What does not change is kept by itself: the bytes that are written could be part of it. */
US_ALWAYS_INLINE void transpose_squares(const Transposed *all, int size)
{
    const int64_t side = SQUARE_BYTES / size, rows = all->rows, columns = all->columns;
    const int64_t from_row = all->from_row, to_row = all->to_row;
    for (int64_t begin = 0; begin < rows; begin += side) {
        const int64_t r = smaller(begin, rows - side);
        const char *from = all->from + r * from_row;
        char *to = all->to + r * size;
        ask_for_next(all, from, side, columns * size);
        int64_t c = 0;
        for (; c + side <= columns; c += side) {
            transpose_square(to + c * to_row, to_row, from + c * size, from_row, size);
        }
        if (c < columns) {
            c = columns - side;
            transpose_square(to + c * to_row, to_row, from + c * size, from_row, size);
        }
    }
}

bool us_lines_fit(int64_t rows, int64_t row_bytes)
{
    const int64_t places_bytes = 64 * CACHE_LINE_BYTES, step = row_bytes & -row_bytes;
    return step < places_bytes && rows * step <= 8 / 2 * places_bytes;
}

/* Whether so many rows are so near each other that a processor fetches them as one stream, and the cache keeps them. */
static bool are_near(int64_t rows, int64_t row_bytes)
{
    return (row_bytes < 0 ? -row_bytes : row_bytes) <= NEAR_ROW && us_lines_fit(rows, row_bytes);
}

US_ALWAYS_INLINE void transpose(const Transposed *all, int size)
{
    const int64_t side = SQUARE_BYTES / size, tall = side * SQUARES, rows = all->rows;
    /* lines that are read in several parts stay in the nearest cache */
    const bool fits = part_of(size) == CACHE_LINE_BYTES || tall <= FEW_LINES || are_near(tall, all->from_row);
    if (tall > side && rows >= tall && all->columns >= side && fits) {
        if (all->past) {
            transpose_columns(all, size, true);
        } else {
            transpose_columns(all, size, false);
        }
    } else if (side > 1 && rows >= side && all->columns >= side) {
        transpose_squares(all, size);
    } else {
        us_copy_lines(&(Lines){all->to, all->from, rows, size, all->from_row, all->columns, all->to_row, size, size});
    }
}

bool us_transposes_lines(void)
{
    return COLUMN_BYTES == CACHE_LINE_BYTES;
}

void us_transpose_part(const Transposed *all, int64_t element)
{
    switch (element) {
    case 1: transpose(all, 1); break;
    case 2: transpose(all, 2); break;
    case 4: transpose(all, 4); break;
    case 8: transpose(all, 8); break;
    default: transpose(all, 16); break;
    }
}

void us_transpose(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns,
                  int64_t element)
{
    us_transpose_part(&(Transposed){to, from, to_row, from_row, rows, columns, 0, false, 0}, element);
}
