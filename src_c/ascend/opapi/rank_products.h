/* Products of matrices whose ranks exchange what goes into them, or what comes out. */
#ifndef ASCEND_OPAPI_RANK_PRODUCTS_H
#define ASCEND_OPAPI_RANK_PRODUCTS_H

#include "ascend/opapi/matmul.h"
#include "ascend/opapi/ranks.h"

/* x1 [b, s, k] or [m, k], x2 [k, n], bias and x3 may be NULL. A rank's product is rounded to the type of out. */
typedef struct RankProduct {
    Room *room;
    const Operand *x1, *x2, *bias, *x3, *out;
} RankProduct;
/* All dimensions but the last one as one. */
int64_t op_row_count(const Operand *x);
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
