#include "kernels/matmul/bf16.h"

#include "kernels/matmul/lines.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

/* Tiles of the depth that meet at a time, at most. */
enum { SLAB = 16 };

size_t us_bf16_panel(DType dtype, int64_t lines, int64_t depth)
{
    const int64_t tiles = us_scratch_count(us_bf16_count(lines, BF16_SIDE), us_bf16_count(depth, BF16_DEEP));
    return us_scratch_bytes(tiles, (size_t)us_bf16_parts(dtype) * BF16_TILE * sizeof(uint16_t));
}

/* A strip's tiles lie one after the other. */
static Bf16Layout panel_layout(DType dtype, int64_t depth)
{
    const int64_t tile = us_bf16_parts(dtype) * BF16_TILE;
    return (Bf16Layout){.strip = us_bf16_count(depth, BF16_DEEP) * tile, .tile = tile, .row = BF16_DEEP, .part = BF16_TILE};
}

/* A block of which only a part belongs to the result. */
static void multiply_edge(const Bf16Meeting *meeting, int64_t rows, int64_t columns, float *c, int64_t stride, bool adds)
{
    _Alignas(64) float sums[BF16_BLOCK * BF16_BLOCK];
    for (int64_t i = 0; adds && i < rows; i++) {
        memcpy(sums + i * BF16_BLOCK, c + i * stride, (size_t)columns * sizeof *c);
    }
    us_bf16_multiply_block(meeting, sums, BF16_BLOCK, adds);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(c + i * stride, sums + i * BF16_BLOCK, (size_t)columns * sizeof *c);
    }
}

/* A strip from a tile on, or the last strip instead of one behind it. */
static const uint16_t *strip_at(const Bf16Operand *operand, int64_t strip, int64_t tile)
{
    const int64_t last = us_bf16_count(operand->lines, BF16_SIDE) - 1;
    return operand->tiles + smaller(strip, last) * operand->layout.strip + tile * operand->layout.tile;
}

static void multiply_block(const Bf16Operand *a, const Bf16Operand *b, int64_t first, int64_t row, int64_t column,
                           Bf16Meeting *meeting, const Bf16Result *c)
{
    const int64_t rows = smaller(BF16_BLOCK, a->lines - row), columns = smaller(BF16_BLOCK, b->lines - column);
    for (int i = 0; i < 2; i++) {
        meeting->a[i] = strip_at(a, row / BF16_SIDE + i, first);
        meeting->b[i] = strip_at(b, column / BF16_SIDE + i, first);
    }
    const int64_t at = row * c->stride + column;
    if (c->rounded != NULL) {
        us_bf16_multiply_rounded(meeting, rows, columns, c->rounded + at, c->stride);
    } else if (rows == BF16_BLOCK && columns == BF16_BLOCK) {
        us_bf16_multiply_block(meeting, c->sums + at, c->stride, c->adds);
    } else {
        multiply_edge(meeting, rows, columns, c->sums + at, c->stride, c->adds);
    }
}

/* Deep columns stay in the nearest cache, and rows pass by them. What a shallow product takes is to write rows. */
static void multiply_slab(const Bf16Operand *a, const Bf16Operand *b, int64_t first, int64_t tiles, const Bf16Result *c)
{
    int64_t offsets[SLAB];
    for (int64_t i = 0; i < SLAB; i++) {
        offsets[i] = i * a->layout.tile;
    }
    Bf16Meeting meeting = {.a_tiles = offsets, .b_tiles = offsets, .tiles = tiles, .a_row = BF16_DEEP, .b_row = BF16_DEEP,
                           .a_part = BF16_TILE, .b_part = BF16_TILE, .parts = us_bf16_parts(a->dtype),
                           .bytes = a->dtype == DTYPE_UINT16};
    const int64_t behind = (first + tiles) * BF16_DEEP - a->depth; /* numbers of the last tile that are not there */
    meeting.empty = behind > 0 ? behind / 2 : 0;
    const bool by_rows = c->rounded != NULL;
    const int64_t outer = by_rows ? a->lines : b->lines, inner = by_rows ? b->lines : a->lines;
    for (int64_t i = 0; i < outer; i += BF16_BLOCK) {
        for (int64_t k = 0; k < inner; k += BF16_BLOCK) {
            multiply_block(a, b, first, by_rows ? i : k, by_rows ? k : i, &meeting, c);
        }
    }
}

bool us_bf16_adds_to(const float *sums, int64_t rows, int64_t columns, int64_t stride)
{
    /* Magnitudes from 2^-103 on, as bits: multiples of 2^-126, the least normal number, as the products are. */
    const uint32_t least = (127 - 103) << 23, magnitude = 0x7fffffff;
    uint32_t found = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < columns; k++) {
            found |= (float_bits(sums[i * stride + k]) & magnitude) - 1 < least - 1;
        }
    }
    return found == 0;
}

bool us_bf16_multiply(const Sizes *sizes, const Matrix *a, const Matrix *b, void *panel_a, void *panel_b,
                      const Bf16Result *c)
{
    const Bf16Layout layout = panel_layout(a->dtype, sizes->k);
    const Bf16Operand left = {.data = a->data, .dtype = a->dtype, .lines = sizes->m, .depth = sizes->k,
                              .line_step = a->row, .depth_step = a->column, .tiles = panel_a, .layout = layout};
    const Bf16Operand right = {.data = b->data, .dtype = b->dtype, .lines = sizes->n, .depth = sizes->k,
                               .line_step = b->column, .depth_step = b->row, .below = true, .tiles = panel_b,
                               .layout = layout};
    Bf16Range ranges[2] = {us_bf16_no_range(), us_bf16_no_range()};
    const bool bytes = a->dtype == DTYPE_UINT16;
    us_bf16_pack(&left, bytes ? NULL : &ranges[0]);
    us_bf16_pack(&right, bytes ? NULL : &ranges[1]);
    if (!bytes && !us_bf16_is_exact(a->dtype, ranges[0], ranges[1])) {
        return false;
    }
    const int64_t tiles = us_bf16_count(sizes->k, BF16_DEEP);
    const int64_t each = us_bf16_count(tiles, us_bf16_count(tiles, us_bf16_slab(SLAB)));
    us_bf16_begin();
    for (int64_t first = 0; first < tiles; first += each) {
        Bf16Result slab = *c;
        slab.adds |= first > 0;
        multiply_slab(&left, &right, first, smaller(each, tiles - first), &slab);
    }
    us_bf16_end();
    return true;
}
