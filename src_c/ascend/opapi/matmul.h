/* Matrix products. */
#ifndef ASCEND_OPAPI_MATMUL_H
#define ASCEND_OPAPI_MATMUL_H

#include "ascend/opapi/blocked_weight.h"

/* out = beta * addend + alpha * (a @ b), as torch.matmul for vectors, matrices and batches; addend may be NULL and
 * broadcasts to out. 16-bit types are summed in float32 and rounded once, integers modulo their size. */
aclnnStatus op_matmul(OpCall *op, const Operand *a, const Operand *b, const Operand *addend, Number beta, Number alpha,
                      const Operand *out);
/* The matrix, or the batch of them, transposed where `turned`. */
const Operand *op_turned(OpCall *op, const Operand *matrix, bool turned);
/* Of matrices that are turned so; also refuses what does not fit (b/shape). */
Shape op_shape_turned_product(OpCall *op, const Operand *a, const Operand *b, bool turned_a, bool turned_b);
/* The joint batch of matrices; false: there is none. */
bool op_joint_batch(const Operand *a, const Operand *b, Shape *shape);
/* That batch of matrices of these sizes. */
Shape op_shape_in_batch(const OpCall *op, const Operand *a, const Operand *b, int64_t rows, int64_t columns);
/* Matrices with the batch's axes in front, of stride 0 where they have none. */
View op_with_batch(const View *view, int32_t rank, const int64_t *shape);
/* The type that products of this type are summed in. */
DType op_product_type(DType dtype);

#endif
