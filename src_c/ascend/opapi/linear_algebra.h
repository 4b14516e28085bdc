/* Matrices beside their products: src_c/kernels/linear_algebra, and what products, maps and reductions make of them. */
#ifndef ASCEND_OPAPI_LINEAR_ALGEBRA_H
#define ASCEND_OPAPI_LINEAR_ALGEBRA_H

#include "ascend/opapi/matmul.h"

Shape op_shape_outer(OpCall *op, const Operand *a, const Operand *b);
/* out[i, j] = a[i] * b[j] */
aclnnStatus op_outer(OpCall *op, const Operand *a, const Operand *b, const Operand *out);
/* batch1 [b, m, k] and batch2 [b, k, n] fit, of one batch or of a batch of 1 (batch2/batch, batch2/shape). */
Shape op_shape_summed_product(OpCall *op, const Operand *a, const Operand *b);
aclnnStatus op_addbmm(OpCall *op, const Operand *self, const Operand *a, const Operand *b, Number beta, Number alpha,
                      const Operand *out);

/* 'abcd,abced->abce' or 'a,b->ab' (equation/known) of two tensors (tensors/length) of their shapes (tensors/shape). */
void require_einsum(OpCall *op, Operands tensors, const char *equation);
Shape op_shape_einsum(OpCall *op, Operands tensors, const char *equation);
aclnnStatus op_einsum(OpCall *op, Operands tensors, const Operand *output);

aclnnStatus op_trace(OpCall *op, const Operand *self, const Operand *out);
aclnnStatus op_cross(OpCall *op, const Operand *self, const Operand *other, int32_t axis, const Operand *out);
/* out, complex, of its parts, or of modulus and angle. */
aclnnStatus op_complex(OpCall *op, const Operand *real, const Operand *imaginary, const Operand *out);
/* The type of a complex type's parts, float32 of integers; others are their own. */
aclDataType op_angle_type(aclDataType dtype);
/* Of complex numbers, or 0 and pi of real ones. */
aclnnStatus op_angle(OpCall *op, const Operand *x, const Operand *out);
aclnnStatus op_polar(OpCall *op, const Operand *modulus, const Operand *angle, const Operand *out);

/* Windows of images as columns: two entries each, in the order of the axes. */
typedef struct UnfoldSettings {
    IntArguments kernel, dilation, padding, stride;
} UnfoldSettings;
#define UNFOLD_SETTINGS ((UnfoldSettings){kernelSize, dilation, padding, stride})
/* Lengths (kernelSize/length …) and values (kernelSize/range …). */
void require_unfold_settings(OpCall *op, UnfoldSettings settings);
Shape op_shape_unfolded(OpCall *op, const Operand *self, IntArguments kernel, IntArguments dilation,
                        IntArguments padding, IntArguments stride);
aclnnStatus op_im2col(OpCall *op, const Operand *self, UnfoldSettings settings, const Operand *out);
/* The shape of an image that has such columns; rows that are not a multiple of the window's taps are refused
 * (columns/taps). */
Shape op_shape_folded(OpCall *op, const Operand *columns, IntArguments size, IntArguments kernel);
aclnnStatus op_col2im(OpCall *op, const Operand *columns, UnfoldSettings settings, const Operand *out);

/* The library that decomposes is there, if there is anything to do (self/library). */
void require_lapack(OpCall *op, const Operand *self, const char *routine);
/* The last two sizes of self are equal (self/square). */
void require_square(OpCall *op, const Operand *self);
Shape op_shape_matrix_batch(OpCall *op, const Operand *self);
/* mode 0: reduced, 1: complete, 2: only r. */
Shape op_shape_qr_q(OpCall *op, const Operand *self, int64_t mode);
Shape op_shape_qr_r(OpCall *op, const Operand *self, int64_t mode);
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

/* x1 [..., p, m], x2 [..., r, m]: their batches broadcast (x2/broadcast). */
Shape op_shape_distances(OpCall *op, const Operand *x1, const Operand *x2);
aclnnStatus op_distances(OpCall *op, const Operand *x1, const Operand *x2, double power, const Operand *out);
Shape op_shape_distance_slopes(OpCall *op, const Operand *grad, const Operand *x1);
/* out = slope of the distances [..., p, r] by x1, of its shape, with the slopes of the result in grad. */
aclnnStatus op_distances_backward(OpCall *op, const Operand *grad, const Operand *x1, const Operand *x2,
                                  const Operand *distances, double power, const Operand *out);
/* Of n rows [n (n - 1) / 2]: each with those after it. */
Shape op_shape_pairs(OpCall *op, const Operand *self);
aclnnStatus op_pair_distances(OpCall *op, const Operand *self, double power, const Operand *out);

#endif
