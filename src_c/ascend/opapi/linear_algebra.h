/* Matrices beside their plain products: what products, maps and reductions make of them. */
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
/* exp(cost) with factors for its rows and columns: kernels/linear_algebra/sinkhorn.h. */
aclnnStatus op_sinkhorn(OpCall *op, const Operand *cost, double tolerance, const Operand *p);

#endif
