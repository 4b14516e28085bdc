/* Products of few rows, as decoders of language models and recurrent networks have them, by matrices of 16-bit numbers or of
 * float32, which nobody packs: a few lines, converted or where they lie, meet all rows before the next ones. Sums are formed in
 * float32. */
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
