/* Memory that lives as long as a call's executor, for first functions that make their own views and attributes. */
#ifndef ASCEND_OP_MEMORY_H
#define ASCEND_OP_MEMORY_H

#include "ascend/common/op_call.h"

/* NULL after a refusal; running out of memory is one. */
static inline void *op_take(OpCall *op, size_t size)
{
    void *taken = op_refused(op) ? NULL : executor_take(op->executor, size);
    op_require(op, taken != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    return taken;
}

#endif
