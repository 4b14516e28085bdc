/* Products of few rows, as decoders of language models have them, by matrices of 16-bit numbers, each of which is read once:
 * converted a line at a time, it meets all rows before the next one. Sums are formed in float32. */
#ifndef UNDERSTUDY_MATMUL_FEW_ROWS_H
#define UNDERSTUDY_MATMUL_FEW_ROWS_H

#include "kernels/matmul/lines.h"

bool us_few_rows_take(const Matmul *product);

/* Floats of a row of A as it is wanted: zeros are behind its depth. */
int64_t us_few_rows_stride(int64_t depth);

/* c = alpha * a b + beta * c; rows of a are us_few_rows_stride apart, those of c `stride`. */
void us_few_rows_multiply(const Sizes *sizes, const float *a, const Matrix *b, const double *alpha, const double *beta,
                          float *c, int64_t stride);

#endif
