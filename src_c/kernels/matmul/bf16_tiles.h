/* Tiles of bfloat16 numbers, which AMX or the pair products of AVX-512 multiply; and of pairs of
 * bytes, whose sums are int32. A float16 number is the sum of two
 * bfloat16 numbers, its parts: all parts meet.
 *
 * A strip is 16 lines of an operand, rows of A or columns of B, in tiles of 32 of the depth, padded with zeros. A tile of
 * A is 16 rows of 32 numbers, one of B has pairs of the depth below each other: [pair][column][2].
 *
 * The instructions take denormal numbers for zero, and flush denormal sums. So operands are looked at, and products of
 * which some sum could be denormal must go another way. Sums are rounded in the order of the instructions, so bits depend
 * on the processor, as a BLAS's do. */
#ifndef UNDERSTUDY_MATMUL_BF16_TILES_H
#define UNDERSTUDY_MATMUL_BF16_TILES_H

#include "tensor/view.h"

#include <stdbool.h>
#include <stdint.h>

enum { BF16_SIDE = 16, BF16_DEEP = 32, BF16_TILE = BF16_SIDE * BF16_DEEP, BF16_BLOCK = 2 * BF16_SIDE };

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define US_BF16 1
#endif

/* Whether this machine multiplies numbers of these types so: float16, bfloat16, or uint16 for pairs of bytes.
 * UNDERSTUDY_BF16=off: it does not; =avx512: not by AMX. */
bool us_bf16_takes(DType a, DType b);

static inline int us_bf16_parts(DType dtype)
{
    return dtype == DTYPE_FLOAT16 ? 2 : 1;
}

static inline int64_t us_bf16_count(int64_t size, int64_t of)
{
    return (size + of - 1) / of;
}

/* ---- numbers ---- */

/* Of magnitudes, as bits: the least one that is not zero, less 1, and the largest. */
typedef struct Bf16Range {
    uint16_t least, most;
} Bf16Range;

static inline Bf16Range us_bf16_no_range(void)
{
    return (Bf16Range){UINT16_MAX, 0};
}

static inline Bf16Range us_bf16_both(Bf16Range a, Bf16Range b)
{
    return (Bf16Range){a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
}

Bf16Range us_bf16_range(const void *numbers, int64_t count);

/* Whether every sum of products of such numbers is exact but for rounding. */
bool us_bf16_is_exact(DType dtype, Bf16Range a, Bf16Range b);

/* ---- operands ---- */

/* Steps of packed numbers in elements: from strip to strip, along its tiles, the rows of a tile, and the parts of numbers.
 */
typedef struct Bf16Layout {
    int64_t strip, tile, row, part;
} Bf16Layout;

/* What of a tile is written where fewer lines or numbers are left: zeros for them; the lines that are left, with zeros behind
 * them; or only these numbers. */
typedef enum Bf16Fill { BF16_FILL_ALL, BF16_FILL_LINES, BF16_FILL_NOTHING } Bf16Fill;

typedef struct Bf16Operand {
    const void *data;
    DType dtype;
    int64_t lines, depth, line_step, depth_step; /* steps in elements */
    bool below; /* pairs lie below each other */
    Bf16Fill fill;
    uint16_t *tiles;
    Bf16Layout layout;
} Bf16Operand;

/* *range grows to that of the numbers too, unless range is NULL. */
void us_bf16_pack(const Bf16Operand *operand, Bf16Range *range);

/* ---- products, between us_bf16_begin and us_bf16_end on one thread ---- */

void us_bf16_begin(void);
void us_bf16_end(void);

/* Some tiles of two strips of A and of B, of which the second may be the first once more, and gives nothing then: the tiles'
 * offsets in elements, and the steps of rows and parts. */
typedef struct Bf16Meeting {
    const uint16_t *a[2], *b[2];
    const int64_t *a_tiles, *b_tiles;
    int64_t tiles, a_row, b_row, a_part, b_part;
    int parts;
    int64_t empty; /* pairs at the end of the last tile that are zeros and may be left out */
    bool bytes; /* pairs of them, those of A unsigned, those of B signed: c holds int32, modulo 2^32 */
} Bf16Meeting;

/* As many tiles of the depth as should meet at a time, at most `limit`: those of two strips of each operand stay in the
 * first cache, where the instructions need them that fast. At least one meets. */
int64_t us_bf16_slab(int64_t limit);

/* c = a b, or c += a b, of BF16_BLOCK rows and columns; rows are `stride` apart. */
void us_bf16_multiply_block(const Bf16Meeting *meeting, float *c, int64_t stride, bool adds);

/* c = a b of padded tiles of whole strips, rounded to the numbers' type, of at most BF16_BLOCK rows and columns. */
void us_bf16_multiply_rounded(const Bf16Meeting *meeting, int64_t rows, int64_t columns, uint16_t *c, int64_t stride);

/* Turns 16 columns of sums: to[column * count + i] is that of rows[i], and rows are `stride` apart. */
void us_bf16_columns(const float *sums, int64_t stride, const int32_t *rows, int64_t count, float *to);

#endif
