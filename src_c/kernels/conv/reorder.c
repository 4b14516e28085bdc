#include "kernels/conv/reorder.h"

#include "kernels/scratch.h"

#include <string.h>

enum { GROUP = 8, PIECE = 4 };

/* The place, among the 256 bytes of 8 rows' blocks of 32, of a row's piece of 4 bytes. */
static int64_t piece_of(int64_t row, int64_t piece)
{
    return row % 2 * 128 + piece / 2 * 32 + piece % 2 * 16 + row / 2 * PIECE;
}

static int64_t place_of(int64_t rows, int64_t row, int64_t block, int64_t piece)
{
    const int64_t groups = (rows + GROUP - 1) / GROUP;
    return (block * groups + row / GROUP) * GROUP * REORDER_BLOCK + piece_of(row % GROUP, piece);
}

KernelStatus us_conv_reorder_filter(const View *views, const void *attributes)
{
    (void)attributes;
    const int64_t rows = views[0].shape[0], length = views[0].shape[1], blocks = length / REORDER_BLOCK;
    const int64_t last = (rows + GROUP - 1) / GROUP * GROUP;
    const char *from = views[0].data;
    char *to = views[1].data;
    for (int64_t row = 0; row < last; row++) {
        for (int64_t piece = 0; piece < blocks * (REORDER_BLOCK / PIECE); piece++) {
            const int64_t block = piece / (REORDER_BLOCK / PIECE);
            const int64_t place = place_of(rows, row, block, piece % (REORDER_BLOCK / PIECE));
            if (place >= rows * length) {
                continue;
            }
            if (row < rows) {
                memcpy(to + place, from + row * length + piece * PIECE, PIECE);
            } else {
                memset(to + place, 0, PIECE);
            }
        }
    }
    return KERNEL_OK;
}

int64_t us_conv_reordered_bias(int64_t result)
{
    const int64_t within = result % REORDER_BLOCK;
    return result - within + (within / 8 + within / 4 % 2 * 4) * PIECE + within % PIECE;
}

KernelStatus us_conv_reorder_bias(const View *views, const void *attributes)
{
    (void)attributes;
    const int64_t results = views[0].shape[0];
    const float *from = views[0].data;
    float *to = views[1].data;
    const int64_t last = (results + REORDER_BLOCK - 1) / REORDER_BLOCK * REORDER_BLOCK;
    for (int64_t result = 0; result < last; result++) {
        const int64_t place = us_conv_reordered_bias(result);
        if (place < results) {
            to[place] = result < results ? from[result] : 0;
        }
    }
    return KERNEL_OK;
}

KernelStatus us_conv_forward_reordered(const View *views, const void *attributes)
{
    enum { W = 1, VIEWS = 5 };
    const ReorderedConvolution *given = attributes;
    const View *whole = &views[W];
    const int64_t rows = whole->shape[0], length = whole->strides[0], kept = rows / REORDER_BLOCK;
    char *plain = us_scratch_array(us_scratch_count(kept, length), 1);
    if (plain == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t index = 0; index < kept; index++) {
        for (int64_t at = 0; at < length; at += PIECE) {
            const int64_t piece = at % REORDER_BLOCK / PIECE;
            const int64_t place = place_of(rows, index * REORDER_BLOCK + given->lane, at / REORDER_BLOCK, piece);
            memcpy(plain + index * length + at, (const char *)whole->data + place, PIECE);
        }
    }
    View of_lane[VIEWS];
    memcpy(of_lane, views, sizeof of_lane);
    of_lane[W].data = plain;
    of_lane[W].shape[0] = kept;
    if (given->conv.mirrored) { /* channels are not mirrored: twice is not at all */
        of_lane[W].data = plain + (whole->shape[2] - 1) * whole->strides[2];
        of_lane[W].strides[2] = -whole->strides[2];
    }
    const KernelStatus status = us_conv_forward(of_lane, &given->conv);
    us_scratch_give_back(plain);
    return status;
}
