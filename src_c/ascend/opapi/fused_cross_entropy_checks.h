/* Checks that the fused cross entropy operators share. */
#ifndef ASCEND_FUSED_CROSS_ENTROPY_CHECKS_H
#define ASCEND_FUSED_CROSS_ENTROPY_CHECKS_H

#include "ascend/common/op_call.h"
#include "kernels/matmul/blas.h"

/* -0.0 passes, NaN does not (aclnn-ops 3.3 #6). */
static inline void require_no_label_smoothing(OpCall *op, float label_smoothing)
{
    op_require(op, label_smoothing == 0.0f, "labelSmoothing", "range", ACLNN_ERR_PARAM_INVALID,
               "labelSmoothing is %g; only 0 is allowed", (double)label_smoothing);
}

/* aclnn-ops 3.3 #16. */
static inline void require_product(OpCall *op)
{
    op_require(op, op->product->product != PRODUCT_910A, "product", "unsupported", ACLNN_ERR_RUNTIME_ERROR,
               "%s does not have this operator", op->product->series);
}

static inline void require_matrix_library(OpCall *op)
{
    op_require(op, us_blas_available(), "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
               "no library with cblas_sgemm was found; UNDERSTUDY_BLAS may name one");
}

static inline void op_require_size(OpCall *op, const Operand *operand, int64_t size)
{
    Shape expected = {.rank = 1, .sizes = {size}};
    op_require_shape(op, operand, &expected);
}

static inline void op_require_sizes(OpCall *op, const Operand *operand, int64_t rows, int64_t columns)
{
    Shape expected = {.rank = 2, .sizes = {rows, columns}};
    op_require_shape(op, operand, &expected);
}

#endif
