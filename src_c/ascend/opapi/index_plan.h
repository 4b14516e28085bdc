/* From operands that index to the kernel: inside the files of the index family. */
#ifndef ASCEND_OPAPI_INDEX_PLAN_H
#define ASCEND_OPAPI_INDEX_PLAN_H

#include "ascend/opapi/shapes.h"
#include "kernels/index/indexing.h"

typedef struct IndexPlan {
    Indexing call;
    int32_t count; /* of index tensors */
    const Operand *operands[INDEX_LIMIT];
    View views[INDEX_LIMIT];
} IndexPlan;

/* One more axis of self that is indexed. */
void index_plan_axis(IndexPlan *plan, const Operand *self, int32_t axis);
/* The view of an index in the positions' shape: its axes are those of the joint index, aligned at the end. */
View index_plan_view(const View *index, const Indexing *call, int32_t joint_axis, int32_t joint_rank);
/* One index along one axis, for each of the positions; steps and the index's view are still to be set. */
IndexPlan index_plan_along(const Operand *self, int32_t axis, const Operand *index, const View *positions);
/* `before` may be NULL, and `other`, for the value. */
aclnnStatus index_plan_submit(OpCall *op, IndexPlan *plan, const Operand *before, const Operand *self,
                              const Operand *other, const View *other_view);

#endif
