/* Setting, scaling, copying, adding and combining whole tensors (mcdnn 7.3). */
#include "kernels/blend/tensor_ops.h"

#include "check.h"

typedef struct OpTensorDescriptor {
    bool set;
    mcdnnOpTensorOp_t op;
    mcdnnDataType_t compute;
    mcdnnNanPropagation_t nan;
} OpTensorDescriptor;

static void add_operand(Launch *launch, const char *parameter, const Tensor *tensor, const void *data)
{
    View view = tensor != NULL ? tensor_view(tensor, data, 1) : us_view_absent();
    us_launch_view(launch, parameter, &view);
}

/* parameter/broadcast: a size that is neither that of the output nor 1 */
static void check_broadcast(Call *call, const char *parameter, const Tensor *tensor, const char *output_parameter,
                            const Tensor *output)
{
    ShapeText text, wanted;
    bool fits = call->status == 0 && tensor->rank == output->rank;
    for (int32_t axis = 0; fits && axis < output->rank; axis++)
        fits = tensor->sizes[axis] == output->sizes[axis] || tensor->sizes[axis] == 1;
    us_require(call, fits, parameter, "broadcast", MCDNN_STATUS_BAD_PARAM,
               "%s is %s, which does not spread over %s, %s",
               parameter, sizes_text(tensor, text), output_parameter, sizes_text(output, wanted));
}

static void launch_arithmetic(Call *call, const Dnn *dnn, Launch *launch, const TensorArithmetic *kernel)
{
    us_launch_output(launch, kernel->beta != 0.0); /* the operand added last */
    us_launch_kernel(launch, us_tensor_arithmetic, kernel, sizeof *kernel);
    submit(call, dnn, launch);
}

mcdnnStatus_t mcdnnSetTensor(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t yDesc, void *y, const void *valuePtr)
{
    Call call = us_call_begin("mcdnnSetTensor");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *ty = check_tensor(&call, "yDesc", yDesc);
    check_given(&call, "y", y);
    check_given(&call, "valuePtr", valuePtr);
    check_float_type(&call, "yDesc", ty);
    check_apart(&call, "yDesc", ty);
    if (call.status == 0) {
        Launch launch;
        us_launch_begin(&launch, call.function);
        add_operand(&launch, "a", NULL, NULL);
        add_operand(&launch, "b", NULL, NULL);
        add_operand(&launch, "y", ty, y);
        TensorArithmetic kernel = {.operation = TENSOR_FILL, .alpha1 = scaling_factor(valuePtr, ty)};
        launch_arithmetic(&call, dnn, &launch, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnScaleTensor(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t yDesc, void *y, const void *alpha)
{
    Call call = us_call_begin("mcdnnScaleTensor");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *ty = check_tensor(&call, "yDesc", yDesc);
    check_given(&call, "y", y);
    check_given(&call, "alpha", alpha);
    check_float_type(&call, "yDesc", ty);
    check_apart(&call, "yDesc", ty);
    if (call.status == 0) {
        Launch launch;
        us_launch_begin(&launch, call.function);
        add_operand(&launch, "y", ty, y);
        add_operand(&launch, "b", NULL, NULL);
        add_operand(&launch, "y", ty, y);
        TensorArithmetic kernel = {.operation = TENSOR_SCALE, .alpha1 = scaling_factor(alpha, ty)};
        launch_arithmetic(&call, dnn, &launch, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnTransformTensor(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const void *beta, const mcdnnTensorDescriptor_t yDesc, void *y)
{
    Call call = us_call_begin("mcdnnTransformTensor");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *tx = check_tensor(&call, "xDesc", xDesc);
    const Tensor *ty = check_tensor(&call, "yDesc", yDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "x", x);
    check_given(&call, "beta", beta);
    check_given(&call, "y", y);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "yDesc", ty, "xDesc", tx);
    check_float_type(&call, "xDesc", tx);
    check_float_type(&call, "yDesc", ty);
    check_apart(&call, "yDesc", ty);
    if (call.status == 0) {
        Launch launch;
        us_launch_begin(&launch, call.function);
        add_operand(&launch, "x", tx, x);
        add_operand(&launch, "b", NULL, NULL);
        add_operand(&launch, "y", ty, y);
        TensorArithmetic kernel = {.operation = TENSOR_SCALE,
                                   .alpha1 = scaling_factor(alpha, ty),
                                   .beta = scaling_factor(beta, ty)};
        launch_arithmetic(&call, dnn, &launch, &kernel);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnAddTensor(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t aDesc, const void *A,
    const void *beta, const mcdnnTensorDescriptor_t cDesc, void *C)
{
    Call call = us_call_begin("mcdnnAddTensor");
    const Dnn *dnn = check_handle(&call, handle);
    const Tensor *ta = check_tensor(&call, "aDesc", aDesc);
    const Tensor *tc = check_tensor(&call, "cDesc", cDesc);
    check_given(&call, "alpha", alpha);
    check_given(&call, "A", A);
    check_given(&call, "beta", beta);
    check_given(&call, "C", C);
    check_broadcast(&call, "aDesc", ta, "cDesc", tc);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "aDesc", ta, "cDesc", tc);
    us_require(&call, tc->rank <= 5, "cDesc", "rank", MCDNN_STATUS_NOT_SUPPORTED,
               "cDesc has %d dimensions, at most 5 are supported", tc->rank);
    check_float_type(&call, "cDesc", tc);
    check_apart(&call, "cDesc", tc);
    if (call.status == 0) {
        Launch launch;
        us_launch_begin(&launch, call.function);
        add_operand(&launch, "A", ta, A);
        add_operand(&launch, "b", NULL, NULL);
        add_operand(&launch, "C", tc, C);
        TensorArithmetic kernel = {.operation = TENSOR_SCALE,
                                   .alpha1 = scaling_factor(alpha, tc),
                                   .beta = scaling_factor(beta, tc)};
        launch_arithmetic(&call, dnn, &launch, &kernel);
    }
    return us_call_end(&call);
}

static OpTensorDescriptor *descriptor(Call *call, mcdnnOpTensorDescriptor_t opTensorDesc)
{
    return descriptor_of(call, "opTensorDesc", opTensorDesc, HANDLE_OP_TENSOR, "an operation descriptor");
}

mcdnnStatus_t mcdnnCreateOpTensorDescriptor(mcdnnOpTensorDescriptor_t *opTensorDesc)
{
    return descriptor_make("mcdnnCreateOpTensorDescriptor", "opTensorDesc", opTensorDesc, HANDLE_OP_TENSOR,
                           &(const OpTensorDescriptor){0}, sizeof(OpTensorDescriptor));
}

mcdnnStatus_t mcdnnDestroyOpTensorDescriptor(mcdnnOpTensorDescriptor_t opTensorDesc)
{
    return descriptor_end("mcdnnDestroyOpTensorDescriptor", "opTensorDesc", opTensorDesc, HANDLE_OP_TENSOR);
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
    Call call = us_call_begin("mcdnnOpTensor");
    const Dnn *dnn = check_handle(&call, handle);
    const OpTensorDescriptor *op = descriptor(&call, opTensorDesc);
    us_require(&call, op->set, "opTensorDesc", "set", MCDNN_STATUS_BAD_PARAM, "opTensorDesc was given no operation");
    const bool pairs = call.status == 0 && op->op != MCDNN_OP_TENSOR_SQRT && op->op != MCDNN_OP_TENSOR_NOT;
    const Tensor *ta = check_tensor(&call, "aDesc", aDesc);
    const Tensor *tb = pairs ? check_tensor(&call, "bDesc", bDesc) : NULL;
    const Tensor *tc = check_tensor(&call, "cDesc", cDesc);
    check_given(&call, "alpha1", alpha1);
    check_given(&call, "A", A);
    if (pairs) {
        check_given(&call, "alpha2", alpha2);
        check_given(&call, "B", B);
    }
    check_given(&call, "beta", beta);
    check_given(&call, "C", C);
    check_same_sizes(&call, MCDNN_STATUS_BAD_PARAM, "aDesc", ta, "cDesc", tc);
    check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "aDesc", ta, "cDesc", tc);
    if (pairs) {
        check_broadcast(&call, "bDesc", tb, "cDesc", tc);
        check_same_type(&call, MCDNN_STATUS_BAD_PARAM, "bDesc", tb, "cDesc", tc);
    }
    check_float_type(&call, "cDesc", tc);
    check_apart(&call, "cDesc", tc);
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
    Launch launch;
    us_launch_begin(&launch, call.function);
    add_operand(&launch, "A", ta, A);
    add_operand(&launch, "B", tb, B);
    add_operand(&launch, "C", tc, C);
    TensorArithmetic kernel = {.operation = operations[op->op],
                               .propagate_nan = op->nan == MCDNN_PROPAGATE_NAN,
                               .alpha1 = scaling_factor(alpha1, tc),
                               .alpha2 = pairs ? scaling_factor(alpha2, tc) : 0,
                               .beta = scaling_factor(beta, tc)};
    launch_arithmetic(&call, dnn, &launch, &kernel);
    return us_call_end(&call);
}
