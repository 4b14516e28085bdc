/* Decompositions of matrices by the LAPACK (kernels/matmul/blas.h), which must be there. The last two axes of a view are
 * the matrix, those in front a batch, the same for all views of a call. `compute` is float32, float64, complex64 or
 * complex128; other types convert to it and back. Matrices with more than 2^31 - 1 rows or columns are KERNEL_NO_MEMORY. */
#ifndef UNDERSTUDY_DECOMPOSE_H
#define UNDERSTUDY_DECOMPOSE_H

#include "kernels/kernels.h"

typedef struct Decomposition {
    DType compute;
} Decomposition;

/* Whether the LAPACK has a routine for this type: "getrf" … */
bool us_has_routine(DType compute, const char *routine);

Kernel us_inverse; /* x, inverse: NaN throughout where x is singular */

/* x, sign, logarithm, which have the batch's shape: sign(det x) and log |det x|; 0 and -inf where det x is 0. Without a
 * sign the logarithm is log det x, for real types NaN where det x is below 0. */
Kernel us_log_determinant;

/* x [m, n], q [m, k] or absent, r [k, n]; k is taken from r: min(m, n), or m for all of q. */
Kernel us_qr;

/* x [m, m], of which the half counts that is wanted, factor: NaN in this half where x is not positive definite, 0 in the
 * other. */
typedef struct Cholesky {
    DType compute;
    bool upper;
} Cholesky;
Kernel us_cholesky;

/* x [m, n], singular values [min(m, n)], u [m, m or min(m, n)], v [n, n or min(m, n)], both absent or both there:
 * x = u diag(values) v^H. NaN throughout where the LAPACK finds none. */
Kernel us_svd;

typedef struct TriangularSolve {
    DType compute;
    bool upper, transposed, unit; /* of the matrix: its upper half counts; it is transposed; its diagonal is all 1 */
} TriangularSolve;
Kernel us_triangular_solve; /* b [m, k], a [m, m], x = inverse(a) b, and the half of a that counts [m, m] */

#endif
