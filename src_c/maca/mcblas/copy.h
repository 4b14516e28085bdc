/* Copies of matrices between device addresses, as a call does before it works in place. */
#ifndef MCBLAS_COPY_H
#define MCBLAS_COPY_H

#include "call.h"

/* C = A on the stream, m x n, unless they are the same. Where the factor that comes next is 0, what A holds does not count. */
void blas_copy_matrix(BlasCall *call, DType dtype, int m, int n, const void *A, int lda, void *C, int ldc,
                      const BlasScalar *factor);

#endif
