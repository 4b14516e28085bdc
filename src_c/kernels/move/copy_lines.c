#include "kernels/move/copy_lines.h"

#include "kernels/move/copy_run.h"
#include "kernels/move/copy_runs.h"
#include "kernels/sizes.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 16, /* elements of a line that are turned round together */
    TURNED_BYTES = 16 * 1024, /* from the first to the last of lines that are copied across */
};

/* ---- neighbours ---- */

static void copy_neighbours(const Lines *all, int64_t bytes)
{
    if (bytes <= SHORT_RUN) {
        us_copy_runs(&(Runs){.to = all->to, .from = all->from, .groups = 1, .count = all->lines, .run_to = all->line_to,
                             .run_from = all->line_from, .bytes = bytes});
        return;
    }
    for (int64_t line = 0; line < all->lines; line++) {
        memcpy(all->to + line * all->line_to, all->from + line * all->line_from, (size_t)bytes);
    }
}

/* ---- one element, repeated ---- */

/* SMALL_PART bytes and more. */
US_ALWAYS_INLINE void fill_lines(const Lines *all, int size)
{
    const int64_t bytes = all->count * size;
    for (int64_t line = 0; line < all->lines; line++) {
        char *to = all->to + line * all->line_to, same[LARGE_PART];
#pragma GCC unroll 64
        for (int i = 0; i < LARGE_PART; i += size) {
            memcpy(same + i, all->from + line * all->line_from, (size_t)size);
        }
        int64_t i = 0;
        for (; i + LARGE_PART <= bytes; i += LARGE_PART) {
            memcpy(to + i, same, LARGE_PART);
        }
        for (; i + SMALL_PART <= bytes; i += SMALL_PART) {
            memcpy(to + i, same, SMALL_PART);
        }
        memcpy(to + bytes - SMALL_PART, same, SMALL_PART);
    }
}

/* ---- any distances ---- */

/* What lies backwards is turned round in blocks, for which compilers have one instruction. */
#define COPY_STRIDED(type) \
    for (int64_t line = 0; line < all->lines; line++) { \
        char *to = all->to + line * all->line_to; \
        const char *from = all->from + line * all->line_from; \
        int64_t i = 0; \
        for (; backwards && i + BLOCK <= count; i += BLOCK) { \
            type block[BLOCK], turned[BLOCK]; \
            memcpy(block, from - (i + BLOCK - 1) * (int64_t)sizeof(type), sizeof block); \
            for (int k = 0; k < BLOCK; k++) { \
                turned[k] = block[BLOCK - 1 - k]; \
            } \
            memcpy(to + i * (int64_t)sizeof(type), turned, sizeof turned); \
        } \
        for (; i < count; i++) { \
            memcpy(to + i * to_step, from + i * from_step, sizeof(type)); \
        } \
    }

static void copy_strided(const Lines *all, bool backwards)
{
    const int64_t count = all->count, to_step = all->to_step, from_step = all->from_step;
    switch (all->element) {
    case 1:
        COPY_STRIDED(uint8_t)
        break;
    case 2:
        COPY_STRIDED(uint16_t)
        break;
    case 4:
        COPY_STRIDED(uint32_t)
        break;
    case 8:
        COPY_STRIDED(uint64_t)
        break;
    default:
        COPY_STRIDED(Sixteen)
        break;
    }
}

/* Lines that lie together closely enough for the nearest cache to keep them. */
static int64_t lines_at_once(const Lines *all)
{
    const int64_t to = llabs(all->line_to), from = llabs(all->line_from);
    return TURNED_BYTES / larger(larger(to, from), 1);
}

/* Many short lines are few long ones across them. */
static void copy_across(const Lines *all, int64_t at_once)
{
    for (int64_t line = 0; line < all->lines; line += at_once) {
        copy_strided(&(Lines){all->to + line * all->line_to, all->from + line * all->line_from, all->count, all->to_step,
                              all->from_step, smaller(at_once, all->lines - line), all->line_to, all->line_from, all->element},
                     false);
    }
}

void us_copy_lines(const Lines *all)
{
    const int64_t size = all->element, at_once = lines_at_once(all);
    const bool packed = all->to_step == size, backwards = packed && all->from_step == -size && all->count >= BLOCK;
    if (packed && all->from_step == size) {
        copy_neighbours(all, all->count * size);
    } else if (packed && all->from_step == 0 && all->count * size >= SMALL_PART) {
        switch (size) {
        case 1: fill_lines(all, 1); break;
        case 2: fill_lines(all, 2); break;
        case 4: fill_lines(all, 4); break;
        case 8: fill_lines(all, 8); break;
        default: fill_lines(all, 16); break;
        }
    } else if (all->count < smaller(at_once, smaller(all->lines, BLOCK))) {
        copy_across(all, at_once);
    } else {
        copy_strided(all, backwards);
    }
}
