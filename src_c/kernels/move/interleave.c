#include "kernels/move/interleave.h"

#include "kernels/move/shuffle.h"

#include <string.h>

US_ALWAYS_INLINE void interleave_run(const Interleaved *all, char *to, const char *from, int rows, int size, bool apart)
{
    const int64_t bytes = all->columns * size, *offsets = all->offsets;
    int64_t at = 0;
    for (; at + INTERLEAVED_BYTES <= bytes; at += INTERLEAVED_BYTES) {
        Vector now[INTERLEAVED_ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            memcpy(&now[r], from + (apart ? at * rows + r * INTERLEAVED_BYTES : offsets[r] + at), sizeof now[r]);
        }
        weave_rows(now, rows, size, apart);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            memcpy(to + (apart ? offsets[r] + at : at * rows + r * INTERLEAVED_BYTES), &now[r], sizeof now[r]);
        }
    }
    for (; at < bytes; at += size) {
        for (int r = 0; r < rows; r++) {
            const int64_t turn = at * rows + r * size, own = offsets[r] + at;
            memcpy(to + (apart ? own : turn), from + (apart ? turn : own), (size_t)size);
        }
    }
}

US_ALWAYS_INLINE void interleave_of_size(const Interleaved *all, char *to, const char *from, int size, bool apart)
{
    switch (all->rows) {
    case 2: interleave_run(all, to, from, 2, size, apart); break;
    case 3: interleave_run(all, to, from, 3, size, apart); break;
    case 4: interleave_run(all, to, from, 4, size, apart); break;
    case 8: interleave_run(all, to, from, 8, size, apart); break;
    default: interleave_run(all, to, from, INTERLEAVED_ROWS, size, apart); break;
    }
}

US_ALWAYS_INLINE void interleave_one(const Interleaved *all, char *to, const char *from, bool apart)
{
    switch (all->element) {
    case 1: interleave_of_size(all, to, from, 1, apart); break;
    case 2: interleave_of_size(all, to, from, 2, apart); break;
    case 4: interleave_of_size(all, to, from, 4, apart); break;
    default: interleave_of_size(all, to, from, 8, apart); break;
    }
}

void us_interleave(const Interleaved *rows, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count)
{
    for (int64_t k = 0; k < count; k++, to += to_step, from += from_step) {
        if (rows->apart) {
            interleave_one(rows, to, from, true);
        } else {
            interleave_one(rows, to, from, false);
        }
    }
}
