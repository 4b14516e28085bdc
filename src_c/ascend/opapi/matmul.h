/* Matrix products. */
#ifndef ASCEND_OPAPI_MATMUL_H
#define ASCEND_OPAPI_MATMUL_H

#include "ascend/opapi/families.h"

/* out = beta * addend + alpha * (a @ b), as torch.matmul for vectors, matrices and batches; addend may be NULL and
 * broadcasts to out. 16-bit types are summed in float32 and rounded once, integers modulo their size. */
aclnnStatus op_matmul(OpCall *op, const Operand *a, const Operand *b, const Operand *addend, Number beta, Number alpha,
                      const Operand *out);

#endif
