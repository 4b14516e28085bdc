#include "kernels/ft_blas.h"

#include "kernels/matmul.h"
#include "tensor/clones.h"

#include <math.h>
#include <string.h>

/* Weak: they do not pull the loader of the CBLAS out of the static library (see ft_blas.h). */
#pragma weak us_matmul_available
#pragma weak us_matmul
#pragma weak us_matmul_double

enum { BLOCK = 256 }; /* rows, and columns */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t blocks_of(int64_t size)
{
    return (size + BLOCK - 1) / BLOCK;
}

bool us_ft_blas_available(void)
{
    return us_matmul_available != NULL && us_matmul_available();
}

/* ---- product ---- */

#define REAL float
#define NAME(name) name##_float
#include "kernels/ft_blas_rows.inc"

#define REAL double
#define NAME(name) name##_double
#include "kernels/ft_blas_rows.inc"

static void multiply_float(const FtMatrixProduct *work, int64_t row, int64_t column, int64_t m, int64_t n)
{
    float *c = (float *)work->c + row * work->n + column;
    const float *bias = work->bias ? (const float *)work->bias + row * work->n + column : NULL;
    copy_bias_float(c, bias, m, n, work->n);
    const MatrixProduct product = {
        .a = {(const float *)work->a + row * work->k, work->k, false},
        .b = {(const float *)work->b + column, work->n, false},
        .m = m, .n = n, .k = work->k,
        .accumulate = bias != NULL,
        .result = c,
        .result_stride = work->n,
    };
    us_matmul(&product); /* no larger than its blocks, so one thread does it */
    activate_float(c, work->activation, m, n, work->n);
}

static void multiply_double(const FtMatrixProduct *work, int64_t row, int64_t column, int64_t m, int64_t n)
{
    double *c = (double *)work->c + row * work->n + column;
    const double *bias = work->bias ? (const double *)work->bias + row * work->n + column : NULL;
    copy_bias_double(c, bias, m, n, work->n);
    const MatrixProductDouble product = {
        .a = (const double *)work->a + row * work->k, .a_stride = work->k,
        .b = (const double *)work->b + column, .b_stride = work->n,
        .m = m, .n = n, .k = work->k,
        .accumulate = bias != NULL,
        .result = c,
        .result_stride = work->n,
    };
    us_matmul_double(&product);
    activate_double(c, work->activation, m, n, work->n);
}

int64_t us_ft_blas_product_blocks(const FtMatrixProduct *work)
{
    return blocks_of(work->m) * blocks_of(work->n);
}

void us_ft_blas_product(const FtMatrixProduct *work, int64_t begin, int64_t end)
{
    const int64_t across = blocks_of(work->n);
    for (; begin < end; begin++) {
        const int64_t row = begin / across * BLOCK, column = begin % across * BLOCK;
        const int64_t m = least(work->m - row, BLOCK), n = least(work->n - column, BLOCK);
        if (work->dtype == DTYPE_FLOAT32) {
            multiply_float(work, row, column, m, n);
        } else {
            multiply_double(work, row, column, m, n);
        }
    }
}

/* ---- attention ---- */

KERNEL_CLONES static void scale_row(float *row, float scale, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        row[i] *= scale;
    }
}

int64_t us_ft_blas_attention_blocks(const FtAttention *work)
{
    return work->heads * blocks_of(work->length);
}

void us_ft_blas_attention(const FtAttention *work, int64_t begin, int64_t end)
{
    const int64_t length = work->length, depth = work->depth, blocks = blocks_of(length);
    const float scale = 1 / sqrtf((float)depth);
    for (; begin < end; begin++) {
        const int64_t first_row = begin / blocks * length; /* of the head */
        const int64_t row = first_row + begin % blocks * BLOCK;
        const int64_t rows = least(first_row + length - row, BLOCK);
        float *scores = work->scores + row * length, *weights = work->weights + row * length;
        const MatrixProduct similarity = {
            .a = {work->q + row * depth, depth, false},
            .b = {work->k + first_row * depth, depth, true},
            .m = rows, .n = length, .k = depth,
            .result = scores,
            .result_stride = length,
        };
        us_matmul(&similarity);
        for (int64_t i = 0; i < rows; i++) {
            scale_row(scores + i * length, scale, length);
            us_ft_softmax_row(scores + i * length, weights + i * length, length);
        }
        const MatrixProduct mixture = {
            .a = {weights, length, false},
            .b = {work->v + first_row * depth, depth, false},
            .m = rows, .n = depth, .k = length,
            .result = work->out + row * depth,
            .result_stride = depth,
        };
        us_matmul(&mixture);
    }
}
