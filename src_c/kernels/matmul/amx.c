#include "kernels/matmul/amx.h"

#include "kernels/matmul/lines.h"

/* Two strips of each operand meet at a time, over SLAB tiles, which stay in the first cache. */
enum { SLAB = 8 };

size_t us_amx_panel(DType dtype, int64_t lines, int64_t depth)
{
    const int64_t tiles = us_amx_count(lines, AMX_SIDE) * us_amx_count(depth, AMX_DEEP);
    return (size_t)(tiles * us_amx_parts(dtype) * AMX_TILE) * sizeof(uint16_t);
}

/* A strip's tiles lie one after the other. */
static AmxLayout panel_layout(DType dtype, int64_t depth)
{
    const int64_t tile = us_amx_parts(dtype) * AMX_TILE;
    return (AmxLayout){.strip = us_amx_count(depth, AMX_DEEP) * tile, .tile = tile, .row = AMX_DEEP, .part = AMX_TILE};
}

/* A block of which only a part belongs to the result. */
static void multiply_edge(const AmxMeeting *meeting, int64_t rows, int64_t columns, float *c, int64_t stride, bool adds)
{
    _Alignas(64) float sums[AMX_BLOCK * AMX_BLOCK];
    for (int64_t i = 0; adds && i < rows; i++) {
        memcpy(sums + i * AMX_BLOCK, c + i * stride, (size_t)columns * sizeof *c);
    }
    us_amx_multiply_block(meeting, sums, AMX_BLOCK, adds);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(c + i * stride, sums + i * AMX_BLOCK, (size_t)columns * sizeof *c);
    }
}

/* A strip from a tile on, or the last strip instead of one behind it. */
static const uint16_t *strip_at(const AmxOperand *operand, int64_t strip, int64_t tile)
{
    const int64_t last = us_amx_count(operand->lines, AMX_SIDE) - 1;
    return operand->tiles + least(strip, last) * operand->layout.strip + tile * operand->layout.tile;
}

static void multiply_slab(const AmxOperand *a, const AmxOperand *b, int64_t first, int64_t tiles, bool adds, float *c,
                          int64_t stride)
{
    int64_t offsets[SLAB];
    for (int64_t i = 0; i < SLAB; i++) {
        offsets[i] = i * a->layout.tile;
    }
    AmxMeeting meeting = {.a_tiles = offsets, .b_tiles = offsets, .tiles = tiles, .a_row = AMX_DEEP, .b_row = AMX_DEEP,
                          .a_part = AMX_TILE, .b_part = AMX_TILE, .parts = us_amx_parts(a->dtype)};
    for (int64_t column = 0; column < b->lines; column += AMX_BLOCK) {
        for (int64_t row = 0; row < a->lines; row += AMX_BLOCK) {
            const int64_t rows = least(AMX_BLOCK, a->lines - row), columns = least(AMX_BLOCK, b->lines - column);
            for (int i = 0; i < 2; i++) {
                meeting.a[i] = strip_at(a, row / AMX_SIDE + i, first);
                meeting.b[i] = strip_at(b, column / AMX_SIDE + i, first);
            }
            float *to = c + row * stride + column;
            if (rows == AMX_BLOCK && columns == AMX_BLOCK) {
                us_amx_multiply_block(&meeting, to, stride, adds);
            } else {
                multiply_edge(&meeting, rows, columns, to, stride, adds);
            }
        }
    }
}

bool us_amx_multiply(const Sizes *sizes, const Matrix *a, const Matrix *b, void *panel_a, void *panel_b, bool adds,
                     float *c, int64_t stride)
{
    const AmxLayout layout = panel_layout(a->dtype, sizes->k);
    const AmxOperand left = {.data = a->data, .dtype = a->dtype, .lines = sizes->m, .depth = sizes->k,
                             .line_step = a->row, .depth_step = a->column, .tiles = panel_a, .layout = layout};
    const AmxOperand right = {.data = b->data, .dtype = b->dtype, .lines = sizes->n, .depth = sizes->k,
                              .line_step = b->column, .depth_step = b->row, .below = true, .tiles = panel_b,
                              .layout = layout};
    AmxRange ranges[2] = {us_amx_no_range(), us_amx_no_range()};
    us_amx_pack(&left, &ranges[0]);
    us_amx_pack(&right, &ranges[1]);
    if (!us_amx_is_exact(a->dtype, ranges[0], ranges[1])) {
        return false;
    }
    const int64_t tiles = us_amx_count(sizes->k, AMX_DEEP);
    us_amx_begin();
    for (int64_t first = 0; first < tiles; first += SLAB) {
        multiply_slab(&left, &right, first, least(SLAB, tiles - first), adds || first > 0, c, stride);
    }
    us_amx_end();
    return true;
}
