/* The shared library that multiplies matrices (CBLAS) and decomposes them (LAPACK): UNDERSTUDY_BLAS, or
 * libscipy_openblas.so of the package this one depends on, or the system's. Loaded when it is first needed, told to
 * use the calling thread only: kernels divide the work themselves, so that results do not depend on the number of
 * threads. */
#ifndef UNDERSTUDY_BLAS_H
#define UNDERSTUDY_BLAS_H

#include "tensor/view.h"

/* Whether a library with the CBLAS was found. */
bool us_blas_available(void);

/* "sgetrf" … of LAPACK: its Fortran interface, sizes are int, everything is passed by address, lengths of character arguments
 * are not passed. NULL: the library lacks it. */
void *us_lapack_function(const char *name);
/* The LAPACK's or BLAS's function for a type: "getrf" of float32 is "sgetrf". */
void *us_lapack_routine(DType dtype, const char *routine);

/* cblas.h: orders of elements, forms of operands. */
enum { BLAS_ROW_MAJOR = 101, BLAS_COLUMN_MAJOR = 102, BLAS_AS_IS = 111, BLAS_TRANSPOSED = 112, BLAS_ADJOINT = 113 };

/* c = alpha * form_a(a) form_b(b) + beta * c in one of float32, float64, complex64, complex128, which the library must
 * have. */
typedef struct BlasProduct {
    DType dtype;
    int order, form_a, form_b;
    int m, n, k;
    const double *alpha, *beta; /* real and imaginary part */
    const void *a, *b;
    void *c;
    int lda, ldb, ldc;
} BlasProduct;
void us_blas_gemm(const BlasProduct *product);

/* c = alpha * form_a(a) b + beta * c, a being stored as m x n; b and c are vectors with steps ldb and ldc. */
void us_blas_gemv(const BlasProduct *product);

#endif
