/* Products of bfloat16 and float16 matrices by tiles: see bf16_tiles.h. */
#ifndef UNDERSTUDY_MATMUL_BF16_H
#define UNDERSTUDY_MATMUL_BF16_H

#include "kernels/matmul/bf16_tiles.h"
#include "kernels/matmul/matmul.h"

struct Sizes; /* kernels/matmul/lines.h */

/* Bytes of the panel of an operand with so many rows (of A) or columns (of B), aligned to 64. */
size_t us_bf16_panel(DType dtype, int64_t lines, int64_t depth);

/* Rows of the result, `stride` elements apart: float32 sums (int32 of pairs of bytes), or, where `rounded` is not NULL, sums
 * rounded to the operands' type, of a product that is at most BF16_SHALLOW deep. */
enum { BF16_SHALLOW = 256 };
typedef struct Bf16Result {
    float *sums;
    uint16_t *rounded;
    int64_t stride;
    bool adds; /* to the sums that are there */
} Bf16Result;

/* Whether products may be added to these float32 sums, whoever made them: any sum of them and of products that
 * us_bf16_multiply takes is 0 or normal. */
bool us_bf16_adds_to(const float *sums, int64_t rows, int64_t columns, int64_t stride);

/* Of pairs of bytes (uint16) always. Of others only where every sum is exact but for rounding; else false, and nothing is
 * written: then, and on other machines, operands are converted to float32. */
bool us_bf16_multiply(const struct Sizes *sizes, const Matrix *a, const Matrix *b, void *panel_a, void *panel_b,
                      const Bf16Result *c);

#endif
