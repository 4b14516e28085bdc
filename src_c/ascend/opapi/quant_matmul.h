/* Products of quantized matrices: src_c/kernels/quantize/product.h. */
#ifndef ASCEND_OPAPI_QUANT_MATMUL_H
#define ASCEND_OPAPI_QUANT_MATMUL_H

#include "ascend/opapi/blocked_weight.h"
#include "kernels/map/map.h"

/* One call. Operands that a page does not have are NULL. */
typedef struct QuantMatmulCall {
    const Operand *x1, *x2;
    bool transpose1, transpose2; /* of the last two dimensions */
    const Operand *row_scale;    /* of x1 */
    const Operand *scale, *offset; /* of x2 */
    const Operand *shift, *bias, *out;
    bool padded_scale;           /* to a multiple of 16 numbers */
    bool blocked;                /* the page of weights in blocks: other types beside 4 bits */
    const MapFormula *activation; /* of the result; NULL: none */
    int64_t group_size;          /* rows << 32 | columns << 16 | depth; 0 where the page has none */
} QuantMatmulCall;

/* Of batches that broadcast; the last two dimensions are turned as the flags say, and packed integers counted. */
Shape op_shape_product_of_integers(OpCall *op, const Operand *x1, const Operand *x2, bool turned1, bool turned2);

/* The weight of a product, which may lie in blocks (format). */
const Operand *op_second_factor(OpCall *op, const Operand *x1, bool turned1, const Operand *x2, bool turned2,
                                const Operand *out);

/* The same where no flag says whether the matrices of the blocks are transposed: what fits both ways is not. */
const Operand *op_second_factor_of_either(OpCall *op, const Operand *x1, const Operand *x2, const Operand *out);
/* `gelu_erf`, `gelu_tanh`; NULL: neither. */
const MapFormula *op_fused_formula(const char *name);

/* Types that go together (out/types), shapes, packed integers: the rules stand on the pages. */
void op_require_quant_matmul(OpCall *op, const QuantMatmulCall *call);
aclnnStatus op_quant_matmul(OpCall *op, const QuantMatmulCall *call);

/* The rows of a matrix, or of all matrices of a batch; of a copy where they do not lie in equal steps. A line [1, n] is [n]. */
const Operand *op_as_rows(OpCall *op, const Operand *x);
const Operand *op_as_line(OpCall *op, const Operand *line);

/* out = (x1 @ x2 + bias) * scale of whole tensors. */
aclnnStatus op_scaled_matmul(OpCall *op, const Operand *x1, const Operand *x2, const Operand *bias, float scale,
                             const Operand *out);

/* out = the sum over the batch of (x1 @ x2) * rows * columns, of ACL_INT8 [batch, m, k] and [batch, k, n]: x2 in blocks is a
 * factor of it if it is not transposed. */
bool op_is_summed_factor(const Operand *x2);
aclnnStatus op_summed_quant_matmul(OpCall *op, const Operand *x1, const Operand *x2, const Operand *rows,
                                   const Operand *columns, const Operand *out);

/* Weights of which two of every four integers are kept: src_c/kernels/quantize/sparse.h. bias may be NULL. */
typedef struct SparseProduct {
    const Operand *x, *kept, *places, *row_scale, *column_scale, *bias, *out;
} SparseProduct;
/* [n, bytes], which may lie in blocks of 16 rows and 8 bytes (shape). */
const Operand *op_places(OpCall *op, const Operand *places, int64_t n, int64_t bytes);
aclnnStatus op_sparse_matmul(OpCall *op, const SparseProduct *call);

typedef struct WeightQuantCall {
    const Operand *x, *weight, *scale, *offset, *quant_scale, *quant_offset, *bias, *y;
    int64_t group;
} WeightQuantCall;

void op_require_weight_quant_shapes(OpCall *op, const WeightQuantCall *call);
void op_require_weight_quant_types(OpCall *op, const WeightQuantCall *call);
aclnnStatus op_weight_quant_matmul(OpCall *op, const WeightQuantCall *call);

/* WeightQuantBatchMatmul: a scale and an offset in two parts for many rows, ready ones for few. */
typedef struct FactoredWeightCall {
    const Operand *x, *weight, *diagonal, *deq_offset, *deq_scale, *added, *factor, *bias, *out;
    bool transpose1, transpose2;
    float scale, offset;
} FactoredWeightCall;

bool op_is_large_product(const Operand *x, bool transposed);
void op_require_factored_weight(OpCall *op, const FactoredWeightCall *call);
aclnnStatus op_factored_weight_matmul(OpCall *op, const FactoredWeightCall *call);

#endif
