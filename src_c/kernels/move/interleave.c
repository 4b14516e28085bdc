#include "kernels/move/interleave.h"

#include "kernels/move/shuffle.h"

#include <string.h>

US_ALWAYS_INLINE void interleave_run(const Interleaved *all, char *to, const char *from, int rows, int size)
{
    const int64_t bytes = all->columns * size;
    int64_t at = 0;
    for (; at + INTERLEAVED_BYTES <= bytes; at += INTERLEAVED_BYTES) {
        Vector now[INTERLEAVED_ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            memcpy(&now[r], from + all->offsets[r] + at, sizeof now[r]);
        }
        interleave_rows(now, rows, size);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            memcpy(to + at * rows + r * INTERLEAVED_BYTES, &now[r], sizeof now[r]);
        }
    }
    for (; at < bytes; at += size) {
        for (int r = 0; r < rows; r++) {
            memcpy(to + at * rows + r * size, from + all->offsets[r] + at, (size_t)size);
        }
    }
}

US_ALWAYS_INLINE void interleave_of_size(const Interleaved *all, char *to, const char *from, int size)
{
    switch (all->rows) {
    case 2: interleave_run(all, to, from, 2, size); break;
    case 4: interleave_run(all, to, from, 4, size); break;
    case 8: interleave_run(all, to, from, 8, size); break;
    default: interleave_run(all, to, from, INTERLEAVED_ROWS, size); break;
    }
}

void us_interleave(const Interleaved *rows, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count)
{
    for (int64_t k = 0; k < count; k++, to += to_step, from += from_step) {
        switch (rows->element) {
        case 1: interleave_of_size(rows, to, from, 1); break;
        case 2: interleave_of_size(rows, to, from, 2); break;
        case 4: interleave_of_size(rows, to, from, 4); break;
        default: interleave_of_size(rows, to, from, 8); break;
        }
    }
}
