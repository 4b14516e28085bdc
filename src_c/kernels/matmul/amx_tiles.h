/* The AMX tiles of bfloat16 numbers. A float16 number is the sum of two bfloat16 numbers, its parts: all parts meet.
 *
 * A strip is 16 lines of an operand, rows of A or columns of B, in tiles of 32 of the depth, padded with zeros. A tile of
 * A is 16 rows of 32 numbers, one of B has pairs of the depth below each other: [pair][column][2].
 *
 * The instructions take denormal numbers for zero, and flush denormal sums. So operands are looked at, and products of
 * which some sum could be denormal must go another way. Sums are rounded in the order of the instructions, so bits depend
 * on the processor, as a BLAS's do. */
#ifndef UNDERSTUDY_MATMUL_AMX_TILES_H
#define UNDERSTUDY_MATMUL_AMX_TILES_H

#include "tensor/view.h"

#include <stdbool.h>
#include <stdint.h>

enum { AMX_SIDE = 16, AMX_DEEP = 32, AMX_TILE = AMX_SIDE * AMX_DEEP, AMX_BLOCK = 2 * AMX_SIDE };

/* Whether this machine multiplies numbers of these types so; UNDERSTUDY_AMX=off: it does not. */
bool us_amx_takes(DType a, DType b);

static inline int us_amx_parts(DType dtype)
{
    return dtype == DTYPE_FLOAT16 ? 2 : 1;
}

static inline int64_t us_amx_count(int64_t size, int64_t of)
{
    return (size + of - 1) / of;
}

/* ---- numbers ---- */

/* Of magnitudes, as bits: the least one that is not zero, less 1, and the largest. */
typedef struct AmxRange {
    uint16_t least, most;
} AmxRange;

static inline AmxRange us_amx_no_range(void)
{
    return (AmxRange){UINT16_MAX, 0};
}

static inline AmxRange us_amx_both(AmxRange a, AmxRange b)
{
    return (AmxRange){a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
}

AmxRange us_amx_range(const void *numbers, int64_t count);

/* Whether every sum of products of such numbers is exact but for rounding. */
bool us_amx_is_exact(DType dtype, AmxRange a, AmxRange b);

/* ---- operands ---- */

/* Steps of packed numbers in elements: from strip to strip, along its tiles, the rows of a tile, and the parts of numbers.
 */
typedef struct AmxLayout {
    int64_t strip, tile, row, part;
} AmxLayout;

/* What of a tile is written where fewer lines or numbers are left: zeros for them; the lines that are left, with zeros behind
 * them; or only these numbers. */
typedef enum AmxFill { AMX_FILL_ALL, AMX_FILL_LINES, AMX_FILL_NOTHING } AmxFill;

typedef struct AmxOperand {
    const void *data;
    DType dtype;
    int64_t lines, depth, line_step, depth_step; /* steps in elements */
    bool below; /* pairs lie below each other */
    AmxFill fill;
    uint16_t *tiles;
    AmxLayout layout;
} AmxOperand;

/* *range grows to that of the numbers too, unless range is NULL. */
void us_amx_pack(const AmxOperand *operand, AmxRange *range);

/* ---- products, between us_amx_begin and us_amx_end on one thread ---- */

void us_amx_begin(void);
void us_amx_end(void);

/* Some tiles of two strips of A and of B, of which the second may be the first once more, and gives nothing then: the tiles'
 * offsets in elements, and the steps of rows and parts. */
typedef struct AmxMeeting {
    const uint16_t *a[2], *b[2];
    const int64_t *a_tiles, *b_tiles;
    int64_t tiles, a_row, b_row, a_part, b_part;
    int parts;
} AmxMeeting;

/* c = a b, or c += a b, of AMX_BLOCK rows and columns; rows are `stride` apart. */
void us_amx_multiply_block(const AmxMeeting *meeting, float *c, int64_t stride, bool adds);

/* Turns 16 columns of sums: to[column * count + i] is that of rows[i], and rows are `stride` apart. */
void us_amx_columns(const float *sums, int64_t stride, const int32_t *rows, int64_t count, float *to);

#endif
