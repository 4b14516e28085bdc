/* Element-wise operations on matrices (BLAS extensions), in float64 with one rounding. */
#ifndef UNDERSTUDY_MATRICES_H
#define UNDERSTUDY_MATRICES_H

#include "kernels/kernels.h"

/* c = alpha * a + beta * b. views of rank 2 and one shape: a, b (absent: nothing is added), c, then alpha and beta
 * where the attributes do not hold them. c may be a or b. With b absent and alpha 1 it is a copy. Integers saturate. */
typedef struct MatrixSum {
    bool conjugated_a, conjugated_b;
    double alpha[2], beta[2];
} MatrixSum;
Kernel us_matrix_sum;

/* The same of a batch: views of a, b and c of rank 3 and one shape, whose matrices may lie any number of elements
 * apart. */
Kernel us_matrix_sums;

/* c = a * x. views of rank 2 and one shape: a, x, c. */
Kernel us_matrix_scale;

/* A triangle of a column-major n x n matrix and its packed columns. views: the packed elements, the matrix [n, n]. */
typedef struct TriangleCopy {
    bool upper, to_matrix;
} TriangleCopy;
Kernel us_triangle_copy;

#endif
