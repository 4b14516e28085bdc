/* Products of matrices whose ranks exchange what goes into them, or what comes out. */
#ifndef ASCEND_OPAPI_RANK_PRODUCTS_H
#define ASCEND_OPAPI_RANK_PRODUCTS_H

#include "ascend/opapi/matmul.h"
#include "ascend/opapi/norm.h"
#include "ascend/opapi/quant_matmul.h"
#include "ascend/opapi/ranks.h"

/* A rank's product, x1 @ x2 + bias + x3 of x1 [b, s, k] or [m, k] and x2 [k, n], and what becomes of it. Operands that a page
 * does not have are NULL, as optional ones may be. */
typedef struct RankProduct {
    Room *room;
    const Operand *x1, *x2, *bias, *x3, *out;
    const Operand *row_scale, *scale, *offset; /* of integers: of both, or, with an offset or groups, of x2 */
    int64_t group;
    const Operand *sent_scale, *sum_scale; /* steps of the integers that are sent, and of their sums: for each column */
    /* In place of out: what is added to the sum, the sum with it, and its norm. */
    const Operand *residual, *gamma, *y, *norm;
    double epsilon;
} RankProduct;

/* All dimensions but the last one as one. */
int64_t op_row_count(const Operand *x);
/* The dimensions of x1 with n columns (shape). */
void op_require_rows(OpCall *op, const Operand *out, const Operand *x1, int64_t n);
/* residual [b, s, n], b * s being the rows of x1 (shape). */
void op_require_residual(OpCall *op, const Operand *residual, const Operand *x1, int64_t n);
int64_t op_weight_columns(const Operand *weight); /* also of packed integers */
bool op_is_row(const Operand *line, int64_t n); /* [n] or [1, n], or not given */
aclnnStatus op_matmul_all_reduce(OpCall *op, const RankProduct *product);
/* out [m / ranks, n] (shape). */
void op_require_scattered(OpCall *op, const Room *room, const Operand *x1, const Operand *x2, const Operand *out);
aclnnStatus op_matmul_reduce_scatter(OpCall *op, const RankProduct *product);
/* out [m * ranks, n], gathered [m * ranks, k] (shape). */
void op_require_gathered(OpCall *op, const Room *room, const Operand *x1, const Operand *x2, const Operand *out,
                         const Operand *gathered);
/* gathered: the rows of all ranks, if it is given. */
aclnnStatus op_all_gather_matmul(OpCall *op, const RankProduct *product, const Operand *gathered);

#endif
