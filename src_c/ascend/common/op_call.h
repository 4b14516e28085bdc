/* One operator call on its road: check -> plan -> submit. A first function reads like the vendor's page, in its order:
 *
 *     OpCall op = op_begin("aclnnX", workspaceSize, executor);
 *     const Operand *x = op_input(&op, "self", self);
 *     const Operand *y = op_output(&op, "out", out);
 *     op_require_dtype(&op, x, op_float_dtypes(&op));
 *     op_require_shape(&op, y, op_shape(x));
 *     return op_plan(&op, us_kernel, &attributes, sizeof attributes);
 *
 * Every check is sticky: after the first refusal the later lines do nothing, and op_plan frees what was made. Nothing is
 * written to *workspaceSize and *executor unless the call succeeds, and no tensor data is read.
 * Most first functions are made from pages (src_c/ascend/opapi/pages), by these same calls. */
#ifndef ASCEND_OP_CALL_H
#define ASCEND_OP_CALL_H

#include "ascend/common/dtype.h"
#include "ascend/common/executor.h"
#include "ascend/common/platform.h"
#include "ascend/common/status.h"
#include "report/report.h"
#include "tensor/number.h"

/* Kernels that are planned one after another: op_steps.h. */
typedef struct OpSteps {
    bool begun, meets;
    struct OpStep *first, **end;
    int32_t count;
    size_t used; /* bytes of temporaries */
} OpSteps;

typedef struct OpCall {
    Call call;
    const ProductProfile *product;
    uint64_t *workspace_size;
    aclOpExecutor **result;
    Executor *executor; /* being built; NULL when the call was refused from the start */
    int32_t invalid;    /* status of the checks that follow; pages of one family use another than 161002 */
    int32_t missing;    /* of a parameter that is NULL; one page uses another than 161001 */
    OpSteps steps;
} OpCall;

/* `function` is the operator's name without GetWorkspaceSize: rule ids begin with it. */
OpCall op_begin(const char *function, uint64_t *workspace_size, aclOpExecutor **executor);

/* ---- parameters ---------------------------------------------------------------------------------------------------
 * Takes up the next parameter. Required ones must not be NULL (161001, op->missing), given ones must be alive (161002,
 * handle), and the sizes of tensors make a shape: none negative, their product below 2^63 (161002, sizes).
 * Results are never NULL: after a refusal, or for an optional one that was not given, they stand for nothing. */

const Operand *op_input(OpCall *op, const char *name, const aclTensor *tensor);
const Operand *op_optional_input(OpCall *op, const char *name, const aclTensor *tensor);
/* One of shape [0] is as NULL: clients pass it for a tensor that they do not have. Others without elements are given. */
const Operand *op_filled_input(OpCall *op, const char *name, const aclTensor *tensor);
const Operand *op_output(OpCall *op, const char *name, const aclTensor *tensor);
const Operand *op_optional_output(OpCall *op, const char *name, const aclTensor *tensor);

/* The tensor just taken up is read and written: it counts among the inputs and among the outputs (aclnn-base 6). */
const Operand *op_updated(OpCall *op, const Operand *taken);

/* The vendor's kernel takes the operand as it lies, without the copy that compares its view with the storage shape: only the
 * device bounds it. */
static inline void op_unbind(const Operand *operand)
{
    ((Operand *)operand)->unbound = true;
}

/* NULL is not given. */
static inline bool op_given(const Operand *operand)
{
    return operand != NULL && operand->handle != NULL;
}

bool op_empty(const Operand *operand); /* given, and some size is 0 */
const Operand *op_filled(const Operand *operand); /* an empty one stands for nothing: PyTorch's adapter has some */

/* What the tensors of a list are known to have in common, so that checks need not ask each of hundreds: all are given, of
 * one type. */
typedef struct Alike {
    bool known;
    int32_t lowest_rank, highest_rank;
} Alike;

/* Tensors by position: a list parameter, or some operands put together by OPERANDS(a, b, c). NULL items stand as
 * operands that were not given. */
typedef struct Operands {
    const char *name;
    bool given;
    bool output; /* a list taken up as output */
    int32_t count;
    const Operand *const *items;
    Alike alike;
} Operands;
#define OPERANDS(...) \
    ((Operands){.name = "", \
                .given = true, \
                .count = sizeof((const Operand *[]){__VA_ARGS__}) / sizeof(const Operand *), \
                .items = (const Operand *[]){__VA_ARGS__}})

/* An optional list or array of no entries counts as NULL: clients pass one for the other (client conflicts, general rule 10). */
Operands op_inputs(OpCall *op, const char *name, const aclTensorList *list);
Operands op_optional_inputs(OpCall *op, const char *name, const aclTensorList *list);
Operands op_outputs(OpCall *op, const char *name, const aclTensorList *list);
Operands op_optional_outputs(OpCall *op, const char *name, const aclTensorList *list);
Operands op_updated_list(OpCall *op, Operands taken); /* as op_updated */

typedef struct ScalarArgument {
    const char *name;
    bool given;
    aclDataType dtype;
    Number value;
} ScalarArgument;
ScalarArgument op_scalar(OpCall *op, const char *name, const aclScalar *scalar);
ScalarArgument op_optional_scalar(OpCall *op, const char *name, const aclScalar *scalar);

typedef struct ScalarArguments {
    const char *name;
    bool given;
    int32_t count;
    const ScalarArgument *items;
} ScalarArguments;
ScalarArguments op_scalars(OpCall *op, const char *name, const aclScalarList *list);

/* Values are valid until the call ends. */
typedef struct IntArguments {
    const char *name;
    bool given;
    int64_t count;
    const int64_t *values;
} IntArguments;
IntArguments op_ints(OpCall *op, const char *name, const aclIntArray *array);
IntArguments op_optional_ints(OpCall *op, const char *name, const aclIntArray *array);

typedef struct FloatArguments {
    const char *name;
    bool given;
    int64_t count;
    const float *values;
} FloatArguments;
FloatArguments op_floats(OpCall *op, const char *name, const aclFloatArray *array);

typedef struct BoolArguments {
    const char *name;
    bool given;
    int64_t count;
    const bool *values;
} BoolArguments;
BoolArguments op_bools(OpCall *op, const char *name, const aclBoolArray *array);
BoolArguments op_optional_bools(OpCall *op, const char *name, const aclBoolArray *array);

/* A required text: 161001 for NULL. Never NULL; "" for an optional one that was not given. */
const char *op_text(OpCall *op, const char *name, const char *text);
const char *op_optional_text(OpCall *op, const char *name, const char *text);

/* ---- checks: 161002 (op->invalid), with the rule named in the comment ---------------------------------------------- */

/* ACL_FLOAT, ACL_FLOAT16 and, unless the product is 910A, ACL_BF16. */
DTypeSet op_float_dtypes(const OpCall *op);
/* The set of the emulated product; sets of Ascend910, Ascend910B, Ascend910_93. */
DTypeSet op_dtypes(const OpCall *op, const DTypeSet *of_products);

void op_require_dtype(OpCall *op, const Operand *operand, DTypeSet allowed);            /* dtype */
void op_require_dtypes(OpCall *op, Operands operands, DTypeSet allowed);                /* dtype, of each */
void op_require_scalar_dtype(OpCall *op, const ScalarArgument *scalar, DTypeSet allowed); /* dtype */
void op_require_dtype_attribute(OpCall *op, const char *name, aclDataType dtype, DTypeSet allowed); /* dtype */
/* The type that `name` and others have in common (common-dtype). */
void op_require_type(OpCall *op, const char *name, aclDataType common, DTypeSet allowed);
void op_require_same_dtype(OpCall *op, const Operand *operand, const Operand *model);   /* same-dtype */
/* The type that the attribute `name` names (same-dtype). */
void op_require_given_dtype(OpCall *op, const Operand *operand, const char *name, aclDataType dtype);
void op_require_same_shape(OpCall *op, const Operand *operand, const Operand *model);   /* same-shape */
void op_require_rank(OpCall *op, const Operand *operand, int32_t lowest, int32_t highest); /* rank */
void op_require_ranks(OpCall *op, Operands operands, int32_t lowest, int32_t highest);   /* rank, of each */
void op_require_shape(OpCall *op, const Operand *operand, const Shape *expected);       /* shape */
void op_require_public_format(OpCall *op, const Operand *operand);                      /* format */
void op_require_nd(OpCall *op, const Operand *operand);                                 /* format */
void op_require_elements(OpCall *op, const Operand *operand, int64_t count);            /* elements */

/* Lists: as many entries as the model has tensors (length); shapes (same-shape) and types (same-dtype) alike, tensor by
 * tensor, or room for as many elements (same-shape too); every tensor of the type of the model's first (uniform). */
void op_require_list_length(OpCall *op, const char *name, int32_t count, Operands model);
void op_require_same_shapes(OpCall *op, Operands list, Operands model);
void op_require_room(OpCall *op, Operands list, Operands model);
void op_require_same_dtypes(OpCall *op, Operands list, Operands model);
void op_require_items(OpCall *op, Operands list); /* none is NULL (item) */
void op_require_uniform(OpCall *op, Operands list, Operands model);

/* Broadcasts `operand` with *shape, to at most 2^63 - 1 elements, and stores the result there. */
void op_require_broadcast(OpCall *op, const Operand *operand, Shape *shape); /* broadcast */
/* Whether the operand, if it was given, broadcasts to just this shape (broadcast). */
void op_require_expands(OpCall *op, const Operand *operand, Shape shape);
/* The shape that all broadcast to (broadcast, of the first that does not fit those before it). */
Shape op_broadcast(OpCall *op, Operands operands);

/* The common type (promote, of the first that does not mix with those before it). Tensors of rank 0 count like others.
 * Scalars follow the tensor with scalar rule on every product (client conflicts, general rule 8). */
aclDataType op_promote(OpCall *op, Operands operands);
aclDataType op_promote_scalar(OpCall *op, aclDataType tensor, const ScalarArgument *scalar);
/* The type in which functions with real results compute: ACL_FLOAT for integers and bool, else the type itself. */
aclDataType op_floating(aclDataType dtype);
bool op_is_integer(aclDataType dtype); /* or bool */
/* Of a list's first tensor. */
aclDataType op_list_dtype(Operands list);
int32_t op_list_rank(Operands list);
/* Whether a value of type `from` may be stored there (cast). */
void op_require_cast(OpCall *op, aclDataType from, const Operand *to);
void op_require_scalar_cast(OpCall *op, const ScalarArgument *scalar, aclDataType to);

/* dim is -rank … rank-1 (range); rank 0 counts as 1. The result is not negative; 0 after a refusal. */
int32_t op_require_dim(OpCall *op, const char *name, int64_t dim, int32_t rank);
/* All of them (range), none twice (unique); the axes as bits. No dims at all are all axes. */
uint32_t op_require_dims(OpCall *op, IntArguments dims, int32_t rank);
void op_require_range(OpCall *op, const char *name, int64_t value, int64_t lowest, int64_t highest); /* range */
void op_require_length(OpCall *op, const char *name, int64_t count, int64_t lowest, int64_t highest); /* length */
void op_require_each(OpCall *op, IntArguments values, int64_t lowest, int64_t highest);               /* range */

Shape op_shape(const Operand *operand);
/* The size of an axis, counted from the end when negative; -1 where there is none. */
int64_t op_size(const Operand *operand, int64_t axis);
/* A product of sizes; -1 where a factor is negative or it is too large: no tensor has so many elements. */
int64_t op_times(int64_t a, int64_t b);
/* "[2,3]", for sentences; lives as long as the call. */
const char *op_shape_text(OpCall *op, const Operand *operand);
Shape op_shape_of(int32_t rank, const int64_t *sizes);
/* [1] where one element without dimensions is expected and the operand has one: clients use either. */
Shape op_shape_or_one(const Operand *operand, Shape expected);
Shape op_reduced_shape(const Operand *operand, uint32_t axes, bool keep_dims);

int64_t op_elements(const Operand *operand);
int64_t op_storage_elements(const Operand *operand); /* -1: the storage shape is no shape */

/* Any other check. */
#define op_require(op, condition, ...) us_require(&(op)->call, (condition), __VA_ARGS__)
static inline bool op_refused(const OpCall *op)
{
    return op->call.status != 0;
}

/* The scalar as a kernel of this type wants it: rounded to the type. */
Number op_number(const ScalarArgument *scalar, aclDataType dtype);
Number op_real(double value, aclDataType dtype);

/* ---- end of the first function ----------------------------------------------------------------------------------- */

/* Hands the executor over; the kernel's views are the operands in order. Views that leave their storage: 561103. */
aclnnStatus op_plan(OpCall *op, Kernel *kernel, const void *attributes, size_t size);

/* The same with the views in another order: one may be an input and an output, and stand changed. */
typedef struct PlannedView {
    const Operand *operand; /* NULL: an absent view */
    ViewAccess access;
    const View *view; /* NULL: the operand's */
} PlannedView;
aclnnStatus op_plan_views(OpCall *op, Kernel *kernel, const void *attributes, size_t size, int32_t count,
                          const PlannedView *views);
/* Inputs, then outputs. */
aclnnStatus op_plan_operands(OpCall *op, Kernel *kernel, const void *attributes, size_t size, Operands inputs,
                             Operands outputs);

/* To be called before op_plan_views, for up to LAUNCH_RESULT_LIMIT outputs: the kernel gets one view more for each, at the
 * end, whose data is a LaunchResult, and leaves there shape and strides that the output tensor really has; aclGetViewShape
 * tells them once the stream has run it. */
void op_plan_shape_of(OpCall *op, const Operand *output);

/* The same for an executor that does nothing when it runs: an operator's shortcut for empty tensors. */
aclnnStatus op_plan_nothing(OpCall *op);

/* ---- second function --------------------------------------------------------------------------------------------- */

aclnnStatus op_execute(const char *function, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                       const void *stream);

#endif
