/* An operator that is several kernels, run one after another as one task. What one leaves for another is a temporary:
 *
 *     op_begin_steps(&op);
 *     const Operand *product = op_temporary(&op, ACL_FLOAT, op_shape(out));
 *     op_matmul(&op, a, b, NULL, ZERO, ONE, product);
 *     op_all_reduce(&op, room, product, out);
 *     return op_end_steps(&op);
 *
 * Between begin and end whatever plans adds a step; statuses need not be looked at. */
#ifndef ASCEND_OP_STEPS_H
#define ASCEND_OP_STEPS_H

#include "ascend/common/op_call.h"

void op_begin_steps(OpCall *op);
aclnnStatus op_end_steps(OpCall *op);

/* Row-major. Counts as given. */
const Operand *op_temporary(OpCall *op, aclDataType dtype, Shape shape);
/* op_plan_views for a kernel that meets other ranks: its attributes begin with a RankTask. */
void op_plan_meeting(OpCall *op, Kernel *kernel, const void *attributes, size_t size, int32_t count,
                     const PlannedView *views);

/* ---- for op_call.c ---- */

/* What is behind op_plan_views. */
typedef struct Planned {
    Kernel *kernel;
    const void *attributes;
    size_t size;
    int32_t count;
    const PlannedView *views;
} Planned;
aclnnStatus op_plan_whole(OpCall *op, Planned plan);
void op_add_step(OpCall *op, Planned plan);

#endif
