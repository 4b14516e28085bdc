/* Products of bfloat16 and float16 matrices by AMX, whose tiles multiply bfloat16 numbers and add in float32. A float16
 * number is the sum of two bfloat16 numbers.
 *
 * The instructions take denormal numbers for zero, and flush denormal sums. So panels are looked at while they are packed,
 * and products of which some sum could be denormal are refused: then, and on other machines, operands are converted to
 * float32. Sums are rounded in the order of the instructions, so bits depend on the processor, as a BLAS's do. */
#ifndef UNDERSTUDY_MATMUL_AMX_H
#define UNDERSTUDY_MATMUL_AMX_H

#include "kernels/matmul/matmul.h"

struct Sizes; /* kernels/matmul/lines.h */

/* Whether this machine multiplies matrices of these types so; UNDERSTUDY_AMX=off: it does not. */
bool us_amx_takes(DType a, DType b);

/* Bytes of the panel of an operand with so many rows (of A) or columns (of B), aligned to 64. */
size_t us_amx_panel(DType dtype, int64_t lines, int64_t depth);

/* c = a b, or c += a b, where every sum is exact but for rounding; or else false, and c is untouched. Rows of c are packed,
 * `stride` elements apart. */
bool us_amx_multiply(const struct Sizes *sizes, const Matrix *a, const Matrix *b, void *panel_a, void *panel_b, bool adds,
                     float *c, int64_t stride);

#endif
