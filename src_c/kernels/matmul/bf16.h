/* Products of bfloat16 and float16 matrices by tiles: see bf16_tiles.h. */
#ifndef UNDERSTUDY_MATMUL_BF16_H
#define UNDERSTUDY_MATMUL_BF16_H

#include "kernels/matmul/bf16_tiles.h"
#include "kernels/matmul/matmul.h"

struct Sizes; /* kernels/matmul/lines.h */

/* Bytes of the panel of an operand with so many rows (of A) or columns (of B), aligned to 64. */
size_t us_bf16_panel(DType dtype, int64_t lines, int64_t depth);

/* c = a b, or c += a b. Of pairs of bytes (uint16), c holds int32. Of others only where every sum is exact but for rounding; else
 * false, and c is untouched: then, and on other machines, operands are converted to float32. Rows of c are packed, `stride`
 * elements apart. */
bool us_bf16_multiply(const struct Sizes *sizes, const Matrix *a, const Matrix *b, void *panel_a, void *panel_b, bool adds,
                      float *c, int64_t stride);

#endif
