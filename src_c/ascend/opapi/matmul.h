/* Matrix products. */
#ifndef ASCEND_OPAPI_MATMUL_H
#define ASCEND_OPAPI_MATMUL_H

#include "ascend/opapi/blocked_weight.h"

/* out = beta * addend + alpha * (a @ b), as torch.matmul for vectors, matrices and batches; addend may be NULL and
 * broadcasts to out. 16-bit types are summed in float32 and rounded once, integers modulo their size. */
aclnnStatus op_matmul(OpCall *op, const Operand *a, const Operand *b, const Operand *addend, Number beta, Number alpha,
                      const Operand *out);
/* A matrix of one row on the left, or of one column on the right, becomes a vector where out has no axis for it: clients
 * write vectors so. */
void op_take_vectors(OpCall *op, const Operand **a, const Operand **b, const Operand *out);
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

/* out = round((a @ b + bias) * scale + offset) of matrices; scale and offset are in parameters, 64 bits for all columns or at
 * least one for each. bias may be NULL. */
aclnnStatus op_quantized_matmul(OpCall *op, const Operand *a, const Operand *b, const Operand *bias,
                                const Operand *parameters, const Operand *out);

/* out = y with the low-rank update of each row from column `begin` on: src_c/kernels/matmul/lora.h. Weights of all layers. */
typedef struct LoraCall {
    const Operand *y, *x, *b, *indices, *a, *out; /* a may be NULL */
    int64_t layer, begin;
    double scale;
} LoraCall;
aclnnStatus op_add_lora(OpCall *op, const LoraCall *call);

/* Batches of matrices whose axes lie in another order, and whose results stand side by side. */
typedef struct ReorderedProduct {
    const Operand *x1, *x2, *scale, *out; /* scale: of integers in out; may be NULL */
    IntArguments order1, order2;          /* the axes that are batch, rows and columns */
    int64_t pieces;                       /* of the batch, in out */
} ReorderedProduct;
/* The sizes of a batch by these orders: the batch, rows of x1, depth of x1 and of x2, columns of x2. */
typedef struct ReorderedSizes {
    int64_t batch, batch2, m, k, k2, n;
} ReorderedSizes;
ReorderedSizes op_reordered_sizes(const Operand *x1, const Operand *x2, IntArguments order1, IntArguments order2);
bool op_is_order(IntArguments order, int64_t a, int64_t b, int64_t c);
/* [m, batch, n]; scaled [m, 1, batch * n]; of several pieces [pieces, m, batch / pieces * n]. */
Shape op_shape_reordered_product(OpCall *op, const Operand *x1, const Operand *x2, IntArguments order1, IntArguments order2,
                              const Operand *scale, int64_t pieces);
aclnnStatus op_reordered_product(OpCall *op, const ReorderedProduct *product);

#endif
