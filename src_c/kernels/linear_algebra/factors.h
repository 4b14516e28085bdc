/* Factors of single matrices by the LAPACK (kernels/matmul/blas.h), which must be there, in its order, column after column:
 * float32, float64, complex64 or complex128. Pivots count from 1: row i was exchanged with row pivots[i]. What returns an int
 * returns 0, or the number, from 1 on, of the first zero on the diagonal of the triangular factor. */
#ifndef UNDERSTUDY_FACTORS_H
#define UNDERSTUDY_FACTORS_H

#include "kernels/kernels.h"

typedef struct Columns {
    void *data;
    int rows, columns, leading;
} Columns;

/* a = L U in place, after exchanges of rows; `pivots` NULL: without, and after a zero on the diagonal there are no factors. */
int us_lu(DType dtype, const Columns *a, int *pivots);

/* Whether they are pivots of a matrix of n rows. */
bool us_are_pivots(const int *pivots, int n);

/* L U becomes its inverse; with a zero on the diagonal of U it stays as it is. KERNEL_NO_MEMORY, or `zero`. */
KernelStatus us_lu_invert(DType dtype, const Columns *lu, const int *pivots, int *zero);

/* b becomes the solution of op(L U) x = b; `operation` is 'N', 'T' or 'C'. */
void us_lu_solve(DType dtype, char operation, const Columns *lu, const int *pivots, const Columns *b);

/* a = Q R in place: R, and below it the reflectors v of Q = (1 - tau v v^H) …; tau has min(rows, columns) elements. */
KernelStatus us_qr_factors(DType dtype, const Columns *a, void *tau);

/* The x with the smallest |a x - b|, in the first rows of b; a, of at least as many rows as columns, becomes its factors.
 * KERNEL_NO_MEMORY, or `zero`: then there is no solution, and b is Q^H b. */
KernelStatus us_least_squares(DType dtype, const Columns *a, const Columns *b, int *zero);

#endif
