/* The matrix product: C = finish(alpha * op(A) op(B) + beta * addend), for batches of strided matrices of any type.
 *
 * Operands that a BLAS can take, transposed ones among them, go to it as they are (kernels/matmul/blas.h); all
 * others, and the types it does not know, pass through panels of bounded size in the computed type. Without a BLAS,
 * loops of our own do the same. The work is divided in blocks that depend on the sizes only, so results are the same
 * for any number of threads. */
#ifndef UNDERSTUDY_MATMUL_H
#define UNDERSTUDY_MATMUL_H

#include "kernels/kernels.h"

enum { MATMUL_BATCH_LIMIT = 8 };

/* Element (i, j) of matrix (b0, b1, …) of a batch is element i*row + j*column + sum b_d*batch[d] of `data`. Strides
 * may be 0 or negative. dtype DTYPE_NONE: no matrix. */
typedef struct Matrix {
    const void *data;
    DType dtype;
    int64_t row, column;
    int64_t batch[MATMUL_BATCH_LIMIT];
    bool conjugated; /* A and B: the complex conjugate is meant */
} Matrix;

/* A block of the result before it is rounded, elements of the computed type; one of the strides is 1. `batch` counts
 * the matrices in row-major order. */
typedef struct MatmulTile {
    void *values;
    int64_t row_stride, column_stride;
    int64_t batch, row, column;
    int64_t rows, columns;
} MatmulTile;
/* The tile's numbers may become others of the type that `finished` names. */
typedef void MatmulFinish(const void *context, const MatmulTile *tile);

/* compute is one of
 *   float32     operands of any real type
 *   float64     operands of any real type; results that do not fit an integer type saturate
 *   complex64, complex128   complex operands; operands of a real type hold pairs
 *   int64       integers, exact modulo 2^64: products of 8-bit integers go through the BLAS, others do not
 * 16-bit results are rounded once, from float32. Where beta is 0 the addend is not read; where alpha or k is 0, A and B
 * are not. */
typedef struct Matmul {
    int64_t m, n, k;
    int32_t batch_rank;
    int64_t batch_shape[MATMUL_BATCH_LIMIT];
    Matrix a, b;   /* m x k, k x n */
    Matrix addend; /* m x n; may be C itself, or apart from it */
    Matrix c;      /* m x n; shares no memory with A and B */
    DType compute;
    double alpha[2], beta[2]; /* real and imaginary part */
    MatmulFinish *finish;     /* NULL: nothing is done to the sums */
    const void *finish_context;
    DType finished; /* what finish leaves, of the computed type's size; DTYPE_NONE: the computed type */
    bool undivided; /* the calling thread does it in one block: the caller divides the work */
} Matmul;

KernelStatus us_matmul(const Matmul *product);

/* The product as a kernel. views: a [batch…, m, k], b [batch…, k, n], addend [batch…, m, n] or absent, c [batch…, m,
 * n], all broadcast to one batch by strides of 0; then alpha and beta, one element of the computed type each, where
 * the attributes do not hold them. */
typedef struct ViewProduct {
    DType compute;
    bool conjugated_a, conjugated_b;
    double alpha[2], beta[2];
} ViewProduct;
Kernel us_product;
Matmul us_matmul_of_views(const View *views, const ViewProduct *product);

/* The last two axes of a view with a batch of at most MATMUL_BATCH_LIMIT axes in front. */
Matrix us_matrix_of_view(const View *view);

/* A matrix of packed or padded rows, `stride` elements apart, and the transpose of such a matrix. */
static inline Matrix matrix_of_rows(const void *data, DType dtype, int64_t stride)
{
    return (Matrix){.data = data, .dtype = dtype, .row = stride, .column = 1};
}

static inline Matrix matrix_transposed(const void *data, DType dtype, int64_t stride)
{
    return (Matrix){.data = data, .dtype = dtype, .row = 1, .column = stride};
}

#endif
