/* What LAPACK does: factors, singular values, inverses, determinants, triangular systems. */
#ifndef ASCEND_OPAPI_DECOMPOSITIONS_H
#define ASCEND_OPAPI_DECOMPOSITIONS_H

#include "ascend/opapi/complex_parts.h" /* the type of singular values */
#include "ascend/opapi/matmul.h"

/* The library that decomposes is there, if there is anything to do (self/library). */
void require_lapack(OpCall *op, const Operand *self, const char *routine);
/* The last two sizes of self are equal (self/square). */
void require_square(OpCall *op, const Operand *self);
Shape op_shape_matrix_batch(OpCall *op, const Operand *self);
/* mode 0: reduced, 1: complete, 2: only r. */
Shape op_shape_qr_q(OpCall *op, const Operand *self, int64_t mode);
Shape op_shape_qr_r(OpCall *op, const Operand *self, int64_t mode);
/* Of mode 0 where `thin`, else of mode 1. */
Shape op_shape_thin_q(OpCall *op, const Operand *self, bool thin);
Shape op_shape_thin_r(OpCall *op, const Operand *self, bool thin);
Shape op_shape_solved(OpCall *op, const Operand *self, const Operand *a);
Shape op_shape_solved_matrix(OpCall *op, const Operand *self, const Operand *a);
/* self [..., m, k] and a [..., m, m] fit, and their batches (self/shape). */
void require_triangular(OpCall *op, const Operand *self, const Operand *a);
/* The upper or lower factor; NaN throughout where self is not positive definite. */
aclnnStatus op_cholesky(OpCall *op, const Operand *self, bool upper, const Operand *out);
/* Singular values; of u [..., m, m] and v [..., n, n], or only the first min(m, n) columns; neither without
 * `vectors`. */
Shape op_shape_singular_values(OpCall *op, const Operand *self);
Shape op_shape_singular_vectors(OpCall *op, const Operand *self, bool of_rows, bool full);
/* u and v have these shapes, if they are wanted (u/shape, v/shape). */
void require_vectors(OpCall *op, const Operand *self, bool full, bool wanted, const Operand *u, const Operand *v);
aclnnStatus op_svd(OpCall *op, const Operand *self, bool vectors, const Operand *values, const Operand *u,
                   const Operand *v);
aclnnStatus op_inverse(OpCall *op, const Operand *self, const Operand *out);
/* sign may be NULL. */
aclnnStatus op_log_determinant(OpCall *op, const Operand *self, const Operand *sign, const Operand *logarithm);
aclnnStatus op_qr(OpCall *op, const Operand *self, int64_t mode, const Operand *q, const Operand *r);
aclnnStatus op_triangular_solve(OpCall *op, const Operand *self, const Operand *a, bool upper, bool transposed,
                                bool unit, const Operand *x, const Operand *m);

#endif
