/* Matrix products and attention of the FT DSP library through the CBLAS, in blocks of a fixed size: who computes a
 * block, and how many do, changes no bit. A statically linked program has no CBLAS, because it cannot load one. */
#ifndef UNDERSTUDY_FT_BLAS_H
#define UNDERSTUDY_FT_BLAS_H

#include "kernels/ft_arrays.h"

bool us_ft_blas_available(void);

/* float32 and float64, k > 0. */
int64_t us_ft_blas_product_blocks(const FtMatrixProduct *work);
void us_ft_blas_product(const FtMatrixProduct *work, int64_t begin, int64_t end);

/* Blocks of rows of one head. */
int64_t us_ft_blas_attention_blocks(const FtAttention *work);
void us_ft_blas_attention(const FtAttention *work, int64_t begin, int64_t end);

#endif
