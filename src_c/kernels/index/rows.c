#include "kernels/index/rows.h"

#include "kernels/move/past.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <string.h>

/* Bytes of a piece of work; of the shortest rows that go past the caches, where all of them are more than these keep. */
enum { PIECE_BYTES = 64 * 1024, PAST_ROW = 256 };

static int64_t rows_of_piece(int64_t row_bytes)
{
    return row_bytes >= PIECE_BYTES || row_bytes == 0 ? 1 : PIECE_BYTES / row_bytes;
}

/* Rows of one plane that follow each other in the output. `bytes` is a constant wherever a copy is one instruction. */
US_ALWAYS_INLINE void pick_run(const char *plane, const int64_t *index, int64_t count, char *to, int64_t bytes)
{
    for (int64_t k = 0; k < count; k++) {
        if (index[k] < 0) {
            memset(to + k * bytes, 0, (size_t)bytes);
        } else {
            memcpy(to + k * bytes, plane + index[k] * bytes, (size_t)bytes);
        }
    }
}

/* The same past the caches, while the next row is asked for. */
static void pick_past(const char *plane, const int64_t *index, int64_t count, char *to, int64_t bytes)
{
    for (int64_t k = 0; k < count; k++) {
        const char *const from = plane + (index[k] < 0 ? 0 : index[k]) * bytes;
        const char *const next = k + 1 < count && index[k + 1] >= 0 ? plane + index[k + 1] * bytes : from;
        if (index[k] < 0) {
            memset(to + k * bytes, 0, (size_t)bytes);
        } else {
            us_copy_past(to + k * bytes, from, (size_t)bytes, next);
        }
    }
    us_past_is_done();
}

static bool goes_past(const RowPick *pick)
{
    const int64_t rows = pick->batches * pick->outer * pick->picks;
    return pick->row_bytes >= PAST_ROW && rows >= PAST_BYTES / pick->row_bytes;
}

static void pick_in_plane(const char *plane, const int64_t *index, int64_t count, char *to, int64_t bytes)
{
    switch (bytes) {
    case 1:
        pick_run(plane, index, count, to, 1);
        break;
    case 2:
        pick_run(plane, index, count, to, 2);
        break;
    case 4:
        pick_run(plane, index, count, to, 4);
        break;
    case 8:
        pick_run(plane, index, count, to, 8);
        break;
    case 16:
        pick_run(plane, index, count, to, 16);
        break;
    default:
        pick_run(plane, index, count, to, bytes);
    }
}

static void pick_piece(void *context, int64_t piece)
{
    const RowPick *pick = context;
    const int64_t rows = rows_of_piece(pick->row_bytes), total = pick->batches * pick->outer * pick->picks;
    const int64_t end = total - piece * rows < rows ? total : (piece + 1) * rows;
    const bool past = goes_past(pick);
    for (int64_t row = piece * rows, count; row < end; row += count) {
        const int64_t plane = row / pick->picks, k = row % pick->picks;
        count = pick->picks - k < end - row ? pick->picks - k : end - row;
        (past ? pick_past : pick_in_plane)((const char *)pick->in + plane * pick->axis * pick->row_bytes,
                                           pick->index + plane / pick->outer * pick->picks + k, count,
                                           (char *)pick->out + row * pick->row_bytes, pick->row_bytes);
    }
}

void us_pick_rows(const RowPick *pick)
{
    const int64_t total = pick->batches * pick->outer * pick->picks, rows = rows_of_piece(pick->row_bytes);
    if (pick->row_bytes > 0) {
        us_parallel((total + rows - 1) / rows, pick_piece, (void *)pick);
    }
}

void us_put_rows(void *out, const void *rows, const int64_t *index, int64_t count, int64_t row_bytes)
{
    for (int64_t k = 0; k < count; k++) {
        memcpy((char *)out + index[k] * row_bytes, (const char *)rows + k * row_bytes, (size_t)row_bytes);
    }
}

int64_t us_first_outside(const int32_t *index, int64_t count, int64_t limit)
{
    enum { AT_ONCE = 256 };
    int64_t first = 0;
    for (int outside = 0; first + AT_ONCE <= count; first += AT_ONCE) {
        for (int64_t k = first; k < first + AT_ONCE; k += LANES) {
            READ_AHEAD(index, k, count, READ_AHEAD_BYTES)
        }
        for (int64_t k = first; k < first + AT_ONCE; k++) {
            outside |= index[k] < 0 || index[k] >= (int32_t)limit;
        }
        if (outside) {
            break;
        }
    }
    while (first < count && index[first] >= 0 && index[first] < limit) {
        first++;
    }
    return first;
}
