/* Products of 8-bit integers by the instructions for four bytes at a time, unsigned ones of A by signed ones of B. int8 of A
 * become unsigned by adding 128, for which every column gets 128 times the sum of its own numbers less. */
#ifndef UNDERSTUDY_MATMUL_BYTES_H
#define UNDERSTUDY_MATMUL_BYTES_H

#include "kernels/matmul/lines.h"

/* So deep products are exact in int32. */
enum { BYTES_DEPTH = 1 << 14 };

/* Whether this machine multiplies int8 or uint8 by B's type so. */
bool us_bytes_takes(DType b);

/* Bytes of the panel of an operand with so many rows (of A) or columns (of B), aligned to 64. */
size_t us_bytes_panel(int64_t lines, int64_t depth);

/* c = a b, or c += a b, without the offsets, which grow by theirs, or are set. Rows of c are packed. */
void us_bytes_multiply(const Sizes *sizes, const Matrix *a, const Matrix *b, char *panel_a, char *panel_b, bool adds,
                       int32_t *c, int64_t *offsets);

/* sums += c + offsets of the columns */
void us_bytes_add(int64_t rows, int64_t columns, const int32_t *c, const int64_t *offsets, int64_t *sums);

#endif
