/* One operator call on its road: check -> plan -> submit. An operator file reads like the vendor's page, in its order:
 *
 *     OpCall op = op_begin("aclnnX", workspaceSize, executor);
 *     const Operand *x = op_input(&op, "self", self);
 *     const Operand *y = op_output(&op, "out", out);
 *     op_require_dtype(&op, x, op_float_dtypes(&op));
 *     op_require_shape(&op, y, op_shape(x));
 *     return op_plan(&op, us_kernel, &attributes, sizeof attributes);
 *
 * Every check is sticky: after the first refusal the later lines do nothing, and op_plan frees what was made. Nothing is
 * written to *workspaceSize and *executor unless the call succeeds, and no tensor data is read. */
#ifndef ASCEND_OP_CALL_H
#define ASCEND_OP_CALL_H

#include "ascend/common/dtype.h"
#include "ascend/common/executor.h"
#include "ascend/common/platform.h"
#include "ascend/common/status.h"
#include "report/report.h"

typedef struct OpCall {
    Call call;
    const ProductProfile *product;
    uint64_t *workspace_size;
    aclOpExecutor **result;
    Executor *executor; /* being built; NULL when the call was refused from the start */
} OpCall;

/* `function` is the operator's name without GetWorkspaceSize: rule ids begin with it. */
OpCall op_begin(const char *function, uint64_t *workspace_size, aclOpExecutor **executor);

/* Takes up the next tensor parameter. Required ones must not be NULL (161001). The result is never NULL: after a
 * refusal it is a tensor without type and shape. */
const Operand *op_input(OpCall *op, const char *name, const aclTensor *tensor);
const Operand *op_optional_input(OpCall *op, const char *name, const aclTensor *tensor);
const Operand *op_output(OpCall *op, const char *name, const aclTensor *tensor);
const Operand *op_optional_output(OpCall *op, const char *name, const aclTensor *tensor);

bool op_given(const Operand *operand);
bool op_empty(const Operand *operand); /* given, and some size is 0 */

/* ---- checks: 161002, with the rule named in the comment ---------------------------------------------------------- */

/* ACL_FLOAT, ACL_FLOAT16 and, unless the product is 910A, ACL_BF16. */
DTypeSet op_float_dtypes(const OpCall *op);

void op_require_dtype(OpCall *op, const Operand *operand, DTypeSet allowed);          /* dtype */
void op_require_same_dtype(OpCall *op, const Operand *operand, const Operand *model); /* same-dtype */
/* Also that the sizes make a shape: none negative, product below 2^63 (size). */
void op_require_rank(OpCall *op, const Operand *operand, int32_t lowest, int32_t highest); /* rank */
void op_require_shape(OpCall *op, const Operand *operand, const Shape *expected);     /* shape */
void op_require_public_format(OpCall *op, const Operand *operand);                    /* format */
void op_require_nd(OpCall *op, const Operand *operand);                               /* format */

/* Broadcasts `operand` with *shape and stores the result there. */
void op_require_broadcast(OpCall *op, const Operand *operand, Shape *shape); /* broadcast */

Shape op_shape(const Operand *operand);

/* Number of elements; more than 2^63 - 1 are refused (size). */
int64_t op_elements(OpCall *op, const Operand *operand);

/* Any other check. */
#define op_require(op, condition, ...) us_require(&(op)->call, (condition), __VA_ARGS__)
static inline bool op_refused(const OpCall *op)
{
    return op->call.status != 0;
}

/* ---- end of the first function ----------------------------------------------------------------------------------- */

/* Hands the executor over; the kernel's views are the operands in order. Views that leave their storage: 561103. */
aclnnStatus op_plan(OpCall *op, Kernel *kernel, const void *attributes, size_t size);

/* The same for an executor that does nothing when it runs: an operator's shortcut for empty tensors. */
aclnnStatus op_plan_nothing(OpCall *op);

/* ---- second function --------------------------------------------------------------------------------------------- */

aclnnStatus op_execute(const char *function, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                       const void *stream);

#endif
