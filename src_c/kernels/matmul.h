/* Matrix products through a CBLAS (OpenBLAS), which is loaded when it is first needed: UNDERSTUDY_BLAS, or
 * libscipy_openblas.so beside libunderstudy.so, or the system's. */
#ifndef UNDERSTUDY_MATMUL_H
#define UNDERSTUDY_MATMUL_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a CBLAS was found; tries to load one. */
bool us_matmul_available(void);

/* Element (i, j) of the matrix is data[i * stride + j], of a transposed one data[j * stride + i]. */
typedef struct Matrix {
    const float *data;
    int64_t stride;
    bool transposed;
} Matrix;

/* result[m, n] = a[m, k] * b[k, n], added to what is there when `accumulate`. Divided over all cores in blocks of a
 * fixed size, each computed by one thread, so that results do not depend on the number of threads. */
typedef struct MatrixProduct {
    Matrix a, b;
    int64_t m, n, k;
    bool accumulate;
    float *result;
    int64_t result_stride;
} MatrixProduct;
void us_matmul(const MatrixProduct *product);

/* A product of packed or padded matrices in fp64, by the calling thread: whoever divides the work does it in blocks of
 * a fixed size, as us_matmul does. */
typedef struct MatrixProductDouble {
    const double *a, *b;
    int64_t a_stride, b_stride;
    int64_t m, n, k;
    bool accumulate;
    double *result;
    int64_t result_stride;
} MatrixProductDouble;
void us_matmul_double(const MatrixProductDouble *product);

#endif
