/* Operators that meet the other ranks of a communicator, which they get by its name: steps (ascend/common/op_steps.h) of
 * kernels and of exchanges (src_c/ranks). Every exchange ends on all ranks or on none; ranks that run different operators
 * are told so. */
#ifndef ASCEND_OPAPI_RANKS_H
#define ASCEND_OPAPI_RANKS_H

#include "ascend/common/op_steps.h"
#include "ascend/opapi/families.h"

/* The place of the thread's device in the communicator `group` (group/unknown, group/several). NULL after a refusal. */
Room *op_require_group(OpCall *op, const char *name, const char *group);
/* Rows and columns (shape). */
void op_require_matrix(OpCall *op, const Operand *matrix, int64_t rows, int64_t columns);
static inline int64_t op_rank_count(const Room *room)
{
    return room != NULL ? room->ranks : 1;
}

/* A whole operator: no rank goes on before all are there. */
aclnnStatus op_barrier(OpCall *op, Room *room);
/* Nothing is kept between operators; `synchronizes`: a barrier. */
aclnnStatus op_reset_buffers(OpCall *op, Room *room, bool synchronizes);

/* ---- steps; all ranks give tensors of one type and, where nothing else is said, of one size ---- */

/* The tensor, or a row-major copy of it. */
const Operand *op_packed(OpCall *op, const Operand *operand);
/* to: the sums over the ranks, in their order, formed in the type that sums of `from` have, and rounded once. */
void op_all_reduce(OpCall *op, Room *room, const Operand *from, const Operand *to);
/* The same of this rank's rows only: rows / ranks. */
void op_reduce_scatter(OpCall *op, Room *room, const Operand *from, const Operand *to);
/* Rows of matrices, `sent[rank]` to each rank and `received[rank]` from it, in the order of the ranks. */
void op_all_to_all(OpCall *op, Room *room, const Operand *from, const int64_t *sent, const Operand *to,
                   const int64_t *received);
/* The rows of all ranks. */
void op_all_gather(OpCall *op, Room *room, const Operand *from, const Operand *to);

#endif
