/* Setting, scaling, copying, adding and combining whole tensors (mcdnn 7.3). */
#include "kernels/blend/tensor_ops.h"

#include "check.h"
#include "kernels/widened.h"

typedef struct OpTensorDescriptor {
    bool set;
    mcdnnOpTensorOp_t op;
    mcdnnDataType_t compute;
    mcdnnNanPropagation_t nan;
} OpTensorDescriptor;

/* parameter/broadcast: a size that is neither that of the output nor 1 */
static void check_broadcast(Call *call, const Operand *operand, const Operand *output)
{
    const Tensor *tensor = operand->tensor, *wanted = output->tensor;
    ShapeText text, wanted_text;
    bool fits = call->status == 0 && tensor->rank == wanted->rank;
    for (int32_t axis = 0; fits && axis < wanted->rank; axis++)
        fits = tensor->sizes[axis] == wanted->sizes[axis] || tensor->sizes[axis] == 1;
    us_require(call, fits, operand->shape_name, "broadcast", MCDNN_STATUS_BAD_PARAM,
               "%s is %s, which does not spread over %s, %s", operand->shape_name, sizes_text(tensor, text),
               output->shape_name, sizes_text(wanted, wanted_text));
}

/* c from a and b, either of which may be absent: the end of a call. */
static mcdnnStatus_t compute(Call *call, const Dnn *dnn, const Operand *a, const Operand *b, const Operand *c,
                             const TensorArithmetic *kernel)
{
    Launch launch;
    us_launch_begin(&launch, call->function);
    launch_optional(&launch, a->name, a->tensor, a->data, 1);
    launch_optional(&launch, b->name, b->tensor, b->data, 1);
    launch_output(&launch, c->name, c->tensor, c->data, 1, kernel->beta);
    return run_kernel(call, dnn, &launch, us_tensor_arithmetic, kernel, sizeof *kernel);
}

static const Operand no_operand = {.name = "b"};

/* A tensor that becomes a value, or that many times itself. */
static mcdnnStatus_t change(const char *function, mcdnnHandle_t handle, mcdnnTensorDescriptor_t yDesc, void *y,
                            const char *factor_name, const void *factor, TensorOperation operation)
{
    static const TensorRule rules[] = {{FLOAT_TYPE, 0, 0}, {APART, 0, 0}};
    Operand it = operand("yDesc", yDesc, "y", y);
    Call call = us_call_begin(function);
    const Dnn *dnn = check_handle(&call, handle);
    check_shapes(&call, &it, 1);
    check_pointers(&call, &it, 1);
    check_on_host(&call, factor_name, factor);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, &it, rules, COUNT_OF(rules));
    if (call.status != 0)
        return us_call_end(&call);
    return compute(&call, dnn, operation == TENSOR_FILL ? &no_operand : &it, &no_operand, &it,
                   &(TensorArithmetic){.operation = operation, .alpha1 = scaling_factor(factor, it.tensor)});
}

mcdnnStatus_t mcdnnSetTensor(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t yDesc, void *y, const void *valuePtr)
{
    return change("mcdnnSetTensor", handle, yDesc, y, "valuePtr", valuePtr, TENSOR_FILL);
}

mcdnnStatus_t mcdnnScaleTensor(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t yDesc, void *y, const void *alpha)
{
    return change("mcdnnScaleTensor", handle, yDesc, y, "alpha", alpha, TENSOR_SCALE);
}

enum { SOURCE, RESULT };

static TensorArithmetic blending(const Tensor *result, const void *alpha, const void *beta)
{
    return (TensorArithmetic){.operation = TENSOR_SCALE, .alpha1 = scaling_factor(alpha, result),
                              .beta = scaling_factor(beta, result)};
}

/* Bytes come from float: rounded to the nearest and saturated, where the kernel would truncate. */
static KernelStatus blend_bytes(const View *views, const void *attributes)
{
    const bool reads = ((const TensorArithmetic *)attributes)->beta != 0;
    return views[2].dtype == DTYPE_INT8 ? us_run_widened(us_tensor_arithmetic, 3, views, attributes, reads)
                                        : us_tensor_arithmetic(views, attributes);
}

/* Between floating types and bytes; where one side has vectors of channels, both are split into them. */
static mcdnnStatus_t blend_with_bytes(Call *call, const Dnn *dnn, const Operand *operands, const TensorArithmetic *kernel)
{
    const Tensor *source = operands[SOURCE].tensor, *result = operands[RESULT].tensor;
    const int32_t lanes = source->lanes > result->lanes ? source->lanes : result->lanes;
    const bool splits = lanes > 1;
    const View absent = us_view_absent();
    const View from = splits ? tensor_lanes(source, operands[SOURCE].data, lanes)
                             : tensor_view(source, operands[SOURCE].data, 1);
    const View to = splits ? tensor_lanes(result, operands[RESULT].data, lanes)
                           : tensor_view(result, operands[RESULT].data, 1);
    Launch launch;
    us_launch_begin(&launch, call->function);
    us_launch_view(&launch, "x", &from);
    us_launch_view(&launch, "b", &absent);
    us_launch_view(&launch, "y", &to);
    us_launch_output(&launch, kernel->beta != 0);
    return run_kernel(call, dnn, &launch, blend_bytes, kernel, sizeof *kernel);
}

static bool has_bytes(const Operand *operand)
{
    return !us_dtype_is_float(type_dtype(operand->tensor->type));
}

mcdnnStatus_t mcdnnTransformTensor(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const void *beta, const mcdnnTensorDescriptor_t yDesc, void *y)
{
    static const TensorRule rules[] = {{SAME_SIZES, RESULT, SOURCE}, {FLOAT_OR_BYTES, SOURCE, 0},
                                       {FLOAT_OR_BYTES, RESULT, 0}, {APART, RESULT, 0}};
    Operand operands[] = {operand("xDesc", xDesc, "x", x), operand("yDesc", yDesc, "y", y)};
    Call call = us_call_begin("mcdnnTransformTensor");
    const Dnn *dnn = check_handle(&call, handle);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, rules, COUNT_OF(rules));
    if (call.status != 0)
        return us_call_end(&call);
    const TensorArithmetic kernel = blending(operands[RESULT].tensor, alpha, beta);
    return has_bytes(&operands[SOURCE]) || has_bytes(&operands[RESULT])
               ? blend_with_bytes(&call, dnn, operands, &kernel)
               : compute(&call, dnn, &operands[SOURCE], &no_operand, &operands[RESULT], &kernel);
}

mcdnnStatus_t mcdnnAddTensor(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t aDesc, const void *A,
    const void *beta, const mcdnnTensorDescriptor_t cDesc, void *C)
{
    static const TensorRule same[] = {{SAME_TYPE, SOURCE, RESULT}}, supported[] = {{FLOAT_TYPE, RESULT, 0},
                                                                                   {APART, RESULT, 0}};
    Operand operands[] = {operand("aDesc", aDesc, "A", A), operand("cDesc", cDesc, "C", C)};
    Call call = us_call_begin("mcdnnAddTensor");
    const Dnn *dnn = check_handle(&call, handle);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    check_broadcast(&call, &operands[SOURCE], &operands[RESULT]);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, same, COUNT_OF(same));
    us_require(&call, operands[RESULT].tensor->rank <= 5, "cDesc", "rank", MCDNN_STATUS_NOT_SUPPORTED,
               "cDesc has %d dimensions, at most 5 are supported", operands[RESULT].tensor->rank);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, supported, COUNT_OF(supported));
    if (call.status != 0)
        return us_call_end(&call);
    const TensorArithmetic kernel = blending(operands[RESULT].tensor, alpha, beta);
    return compute(&call, dnn, &operands[SOURCE], &no_operand, &operands[RESULT], &kernel);
}

static OpTensorDescriptor *descriptor(Call *call, mcdnnOpTensorDescriptor_t opTensorDesc)
{
    return descriptor_of(call, "opTensorDesc", opTensorDesc, HANDLE_OP_TENSOR, "an operation descriptor");
}

mcdnnStatus_t mcdnnCreateOpTensorDescriptor(mcdnnOpTensorDescriptor_t *opTensorDesc)
{
    return descriptor_make("mcdnnCreateOpTensorDescriptor", HANDLE_OP_TENSOR, "opTensorDesc", opTensorDesc,
                           &(const OpTensorDescriptor){0}, sizeof(OpTensorDescriptor));
}

mcdnnStatus_t mcdnnDestroyOpTensorDescriptor(mcdnnOpTensorDescriptor_t opTensorDesc)
{
    return descriptor_end("mcdnnDestroyOpTensorDescriptor", HANDLE_OP_TENSOR, "opTensorDesc", opTensorDesc);
}

mcdnnStatus_t mcdnnSetOpTensorDescriptor(
    mcdnnOpTensorDescriptor_t opTensorDesc, mcdnnOpTensorOp_t opTensorOp,
    mcdnnDataType_t opTensorCompType, mcdnnNanPropagation_t opTensorNanOpt)
{
    Call call = us_call_begin("mcdnnSetOpTensorDescriptor");
    OpTensorDescriptor *target = descriptor(&call, opTensorDesc);
    check_range(&call, "opTensorOp", opTensorOp, MCDNN_OP_TENSOR_ADD, MCDNN_OP_TENSOR_NOT);
    check_range(&call, "opTensorNanOpt", opTensorNanOpt, MCDNN_NOT_PROPAGATE_NAN, MCDNN_PROPAGATE_NAN);
    if (call.status == 0)
        *target = (OpTensorDescriptor){true, opTensorOp, opTensorCompType, opTensorNanOpt};
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetOpTensorDescriptor(
    const mcdnnOpTensorDescriptor_t opTensorDesc, mcdnnOpTensorOp_t *opTensorOp,
    mcdnnDataType_t *opTensorCompType, mcdnnNanPropagation_t *opTensorNanOpt)
{
    Call call = us_call_begin("mcdnnGetOpTensorDescriptor");
    const OpTensorDescriptor *source = descriptor(&call, opTensorDesc);
    if (call.status == 0) {
        GIVE(opTensorOp, source->op);
        GIVE(opTensorCompType, source->compute);
        GIVE(opTensorNanOpt, source->nan);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnOpTensor(
    mcdnnHandle_t handle, const mcdnnOpTensorDescriptor_t opTensorDesc, const void *alpha1,
    const mcdnnTensorDescriptor_t aDesc, const void *A, const void *alpha2,
    const mcdnnTensorDescriptor_t bDesc, const void *B, const void *beta,
    const mcdnnTensorDescriptor_t cDesc, void *C)
{
    enum { FIRST, SECOND, OUT };
    static const TensorRule of_first[] = {{SAME_SIZES, FIRST, OUT}, {SAME_TYPE, FIRST, OUT}},
                            of_second[] = {{SAME_TYPE, SECOND, OUT}},
                            supported[] = {{FLOAT_TYPE, OUT, 0}, {APART, OUT, 0}};
    Operand operands[] = {operand("aDesc", aDesc, "A", A), operand("bDesc", bDesc, "B", B),
                          operand("cDesc", cDesc, "C", C)};
    Call call = us_call_begin("mcdnnOpTensor");
    const Dnn *dnn = check_handle(&call, handle);
    const OpTensorDescriptor *op = descriptor(&call, opTensorDesc);
    us_require(&call, op->set, "opTensorDesc", "set", MCDNN_STATUS_BAD_PARAM, "opTensorDesc was given no operation");
    const bool pairs = call.status == 0 && op->op != MCDNN_OP_TENSOR_SQRT && op->op != MCDNN_OP_TENSOR_NOT;
    for (int i = FIRST; i <= OUT; i++) {
        if (i != SECOND || pairs) {
            check_shapes(&call, &operands[i], 1);
            check_pointers(&call, &operands[i], 1);
        }
    }
    check_on_host(&call, "alpha1", alpha1);
    if (pairs)
        check_on_host(&call, "alpha2", alpha2);
    check_on_host(&call, "beta", beta);
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, of_first, COUNT_OF(of_first));
    if (pairs) {
        check_broadcast(&call, &operands[SECOND], &operands[OUT]);
        check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, of_second, COUNT_OF(of_second));
    }
    check_rules(&call, MCDNN_STATUS_BAD_PARAM, operands, supported, COUNT_OF(supported));
    const Tensor *tc = operands[OUT].tensor;
    us_require(&call, op->compute == (tc->type == MCDNN_DATA_DOUBLE ? MCDNN_DATA_DOUBLE : MCDNN_DATA_FLOAT),
               "opTensorDesc", "compute-type", MCDNN_STATUS_NOT_SUPPORTED,
               "the descriptor computes in %s, %s data are computed in %s", type_name(op->compute), type_name(tc->type),
               tc->type == MCDNN_DATA_DOUBLE ? "DOUBLE" : "FLOAT");
    if (call.status != 0)
        return us_call_end(&call);

    static const TensorOperation operations[] = {
        [MCDNN_OP_TENSOR_ADD] = TENSOR_ADD, [MCDNN_OP_TENSOR_MUL] = TENSOR_MULTIPLY,
        [MCDNN_OP_TENSOR_MIN] = TENSOR_MINIMUM, [MCDNN_OP_TENSOR_MAX] = TENSOR_MAXIMUM,
        [MCDNN_OP_TENSOR_SQRT] = TENSOR_ROOT, [MCDNN_OP_TENSOR_NOT] = TENSOR_NOT,
    };
    const TensorArithmetic kernel = {.operation = operations[op->op],
                                     .propagate_nan = op->nan == MCDNN_PROPAGATE_NAN,
                                     .alpha1 = scaling_factor(alpha1, tc),
                                     .alpha2 = pairs ? scaling_factor(alpha2, tc) : 0,
                                     .beta = scaling_factor(beta, tc)};
    return compute(&call, dnn, &operands[FIRST], pairs ? &operands[SECOND] : &no_operand, &operands[OUT], &kernel);
}
