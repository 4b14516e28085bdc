#include "ascend/common/op_call.h"

#include <stdlib.h>
#include <string.h>

/* Stands for a tensor after a refusal, so that later lines may read its shape. */
static const Operand no_operand = {.name = "", .dtype = ACL_DT_UNDEFINED, .format = ACL_FORMAT_UNDEFINED};

OpCall op_begin(const char *function, uint64_t *workspace_size, aclOpExecutor **executor)
{
    OpCall op = {.call = us_call_begin(function),
                 .product = ascend_product(),
                 .workspace_size = workspace_size,
                 .result = executor};
    op_require(&op, workspace_size != NULL, "workspaceSize", "null", ACLNN_ERR_PARAM_NULLPTR, "workspaceSize is NULL");
    op_require(&op, executor != NULL, "executor", "null", ACLNN_ERR_PARAM_NULLPTR, "executor is NULL");
    if (op_refused(&op)) {
        return op;
    }
    op.executor = malloc(sizeof *op.executor);
    op_require(&op, op.executor != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (op.executor != NULL) {
        op.executor->repeatable = false;
        op.executor->operand_count = 0;
        us_launch_begin(&op.executor->launch, function);
    }
    return op;
}

/* ---- tensors ---- */

static View view_of(const Tensor *tensor)
{
    View view = {.dtype = dtype_of_acl(tensor->dtype), .rank = tensor->view.rank};
    /* Modulo 2^64: a senseless offset gives a senseless address, which the device refuses to open. */
    uintptr_t distance = (uintptr_t)tensor->offset * acl_dtype_bytes(tensor->dtype);
    view.data = (void *)((uintptr_t)tensor->address + distance);
    memcpy(view.shape, tensor->view.sizes, (size_t)view.rank * sizeof *view.shape);
    memcpy(view.strides, tensor->strides, (size_t)view.rank * sizeof *view.strides);
    return view;
}

static const Operand *take_up(OpCall *op, const char *name, const aclTensor *handle, bool output, bool required)
{
    op_require(op, handle != NULL || !required, name, "null", ACLNN_ERR_PARAM_NULLPTR, "%s is NULL", name);
    if (op_refused(op)) {
        return &no_operand;
    }
    Operand *operand = &op->executor->operands[op->executor->operand_count];
    operand->name = name;
    operand->output = output;
    if (handle == NULL) {
        operand->dtype = ACL_DT_UNDEFINED;
        operand->format = ACL_FORMAT_UNDEFINED;
        operand->offset = 0;
        operand->storage_elements = 0;
        operand->view = us_view_absent();
    } else {
        const Tensor *tensor = us_handle_object(handle, HANDLE_TENSOR);
        op_require(op, tensor != NULL, name, "handle", ACLNN_ERR_PARAM_INVALID,
                   "%s (%p) is no live aclTensor: destroyed, or never created by this library", name,
                   (const void *)handle);
        if (tensor == NULL) {
            return &no_operand;
        }
        operand->dtype = tensor->dtype;
        operand->format = tensor->format;
        operand->offset = tensor->offset;
        operand->storage_elements = us_shape_elements(tensor->storage.rank, tensor->storage.sizes);
        operand->view = view_of(tensor);
    }
    op->executor->operand_count++;
    return operand;
}

const Operand *op_input(OpCall *op, const char *name, const aclTensor *tensor)
{
    return take_up(op, name, tensor, false, true);
}

const Operand *op_optional_input(OpCall *op, const char *name, const aclTensor *tensor)
{
    return take_up(op, name, tensor, false, false);
}

const Operand *op_output(OpCall *op, const char *name, const aclTensor *tensor)
{
    return take_up(op, name, tensor, true, true);
}

const Operand *op_optional_output(OpCall *op, const char *name, const aclTensor *tensor)
{
    return take_up(op, name, tensor, true, false);
}

bool op_given(const Operand *operand)
{
    return !us_view_is_absent(&operand->view);
}

bool op_empty(const Operand *operand)
{
    return us_view_is_empty(&operand->view);
}

/* ---- checks ---- */

DTypeSet op_float_dtypes(const OpCall *op)
{
    DTypeSet floats = DTYPE_BIT(ACL_FLOAT) | DTYPE_BIT(ACL_FLOAT16);
    return op->product->product == PRODUCT_910A ? floats : floats | DTYPE_BIT(ACL_BF16);
}

void op_require_dtype(OpCall *op, const Operand *operand, DTypeSet allowed)
{
    char text[DTYPE_SET_TEXT_SIZE];
    op_require(op, dtype_in(operand->dtype, allowed), operand->name, "dtype", ACLNN_ERR_PARAM_INVALID,
               "%s has type %s (%d); on %s it may be %s", operand->name, acl_dtype_name(operand->dtype),
               (int)operand->dtype, op->product->series, dtype_set_text(allowed, text));
}

void op_require_same_dtype(OpCall *op, const Operand *operand, const Operand *model)
{
    op_require(op, operand->dtype == model->dtype, operand->name, "same-dtype", ACLNN_ERR_PARAM_INVALID,
               "%s has type %s, %s has %s", operand->name, acl_dtype_name(operand->dtype), model->name,
               acl_dtype_name(model->dtype));
}

void op_require_rank(OpCall *op, const Operand *operand, int32_t lowest, int32_t highest)
{
    char text[SHAPE_TEXT_SIZE];
    const View *view = &operand->view;
    op_require(op, view->rank >= lowest && view->rank <= highest, operand->name, "rank", ACLNN_ERR_PARAM_INVALID,
               "%s is %s, %d dimensions; it needs %d to %d", operand->name,
               us_shape_text(view->rank, view->shape, text, sizeof text), (int)view->rank, (int)lowest, (int)highest);
    op_elements(op, operand);
}

int64_t op_elements(OpCall *op, const Operand *operand)
{
    char text[SHAPE_TEXT_SIZE];
    const View *view = &operand->view;
    int64_t elements = us_view_elements(view);
    op_require(op, elements >= 0, operand->name, "size", ACLNN_ERR_PARAM_INVALID,
               "%s is %s: sizes must not be negative, nor their product exceed 2^63 - 1", operand->name,
               us_shape_text(view->rank, view->shape, text, sizeof text));
    return elements;
}

static bool same_sizes(const View *view, const Shape *shape)
{
    return view->rank == shape->rank &&
           memcmp(view->shape, shape->sizes, (size_t)shape->rank * sizeof *shape->sizes) == 0;
}

void op_require_shape(OpCall *op, const Operand *operand, const Shape *expected)
{
    char actual_text[SHAPE_TEXT_SIZE];
    char expected_text[SHAPE_TEXT_SIZE];
    const View *view = &operand->view;
    op_require(op, same_sizes(view, expected), operand->name, "shape", ACLNN_ERR_PARAM_INVALID, "%s is %s, expected %s",
               operand->name, us_shape_text(view->rank, view->shape, actual_text, sizeof actual_text),
               us_shape_text(expected->rank, expected->sizes, expected_text, sizeof expected_text));
}

void op_require_public_format(OpCall *op, const Operand *operand)
{
    op_require(op, !acl_format_is_private(operand->format), operand->name, "format", ACLNN_ERR_PARAM_INVALID,
               "%s has private format %d", operand->name, (int)operand->format);
}

void op_require_nd(OpCall *op, const Operand *operand)
{
    op_require(op, operand->format == ACL_FORMAT_ND, operand->name, "format", ACLNN_ERR_PARAM_INVALID,
               "%s has format %d; only ACL_FORMAT_ND (%d) is allowed", operand->name, (int)operand->format,
               (int)ACL_FORMAT_ND);
}

void op_require_broadcast(OpCall *op, const Operand *operand, Shape *shape)
{
    if (op_refused(op)) {
        return;
    }
    View sizes = {.rank = shape->rank};
    memcpy(sizes.shape, shape->sizes, (size_t)shape->rank * sizeof *shape->sizes);
    const View *views[] = {&sizes, &operand->view};
    Shape joint = {0};
    bool fits = us_broadcast_shape(views, 2, &joint.rank, joint.sizes, NULL);
    char operand_text[SHAPE_TEXT_SIZE];
    char shape_text[SHAPE_TEXT_SIZE];
    op_require(op, fits, operand->name, "broadcast", ACLNN_ERR_PARAM_INVALID,
               "%s is %s, which does not broadcast with %s of the parameters before it", operand->name,
               us_shape_text(operand->view.rank, operand->view.shape, operand_text, sizeof operand_text),
               us_shape_text(shape->rank, shape->sizes, shape_text, sizeof shape_text));
    if (fits) {
        *shape = joint;
    }
}

Shape op_shape(const Operand *operand)
{
    Shape shape = {.rank = operand->view.rank};
    memcpy(shape.sizes, operand->view.shape, (size_t)shape.rank * sizeof *shape.sizes);
    return shape;
}

/* ---- end of the first function ---- */

/* aclnn-ops 0.4: a view that is not contiguous must stay inside the storage shape. Contiguous ones are not checked
 * here; the device finds those that leave their memory. */
static void require_inside_storage(OpCall *op, const Operand *operand)
{
    const View *view = &operand->view;
    if (!op_given(operand) || us_view_is_contiguous(view)) {
        return;
    }
    int64_t lowest = 0;
    int64_t highest = 0;
    bool inside = us_view_extent(view, &lowest, &highest) &&
                  !__builtin_add_overflow(lowest, operand->offset, &lowest) &&
                  !__builtin_add_overflow(highest, operand->offset, &highest) && lowest >= 0 &&
                  highest < operand->storage_elements;
    char text[SHAPE_TEXT_SIZE];
    char strides[SHAPE_TEXT_SIZE];
    op_require(op, inside, operand->name, "view", ACLNN_ERR_INNER_NULLPTR,
               "%s is a view %s with strides %s and offset %lld that leaves its storage of %lld elements",
               operand->name,
               us_shape_text(view->rank, view->shape, text, sizeof text),
               us_shape_text(view->rank, view->strides, strides, sizeof strides), (long long)operand->offset,
               (long long)operand->storage_elements);
}

static aclnnStatus finish(OpCall *op)
{
    if (!op_refused(op)) {
        aclOpExecutor *handle = us_handle_create(HANDLE_EXECUTOR, op->executor);
        op_require(op, handle != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
                   "no handle is left for the executor");
        if (handle != NULL) {
            *op->workspace_size = 0;
            *op->result = handle;
            return us_call_end(&op->call);
        }
    }
    free(op->executor);
    return us_call_end(&op->call);
}

aclnnStatus op_plan(OpCall *op, Kernel *kernel, const void *attributes, size_t size)
{
    Executor *executor = op->executor;
    for (int32_t i = 0; !op_refused(op) && i < executor->operand_count; i++) {
        require_inside_storage(op, &executor->operands[i]);
        us_launch_access(&executor->launch, executor->operands[i].name, &executor->operands[i].view,
                         executor->operands[i].output ? VIEW_WRITE : VIEW_READ);
    }
    if (!op_refused(op)) {
        us_launch_kernel(&executor->launch, kernel, attributes, size);
    }
    return finish(op);
}

aclnnStatus op_plan_nothing(OpCall *op)
{
    return finish(op);
}

/* ---- second function ---- */

/* aclnn-ops 0.3. The executor ends here, whatever happens, unless it is repeatable: a repeatable one is the
 * caller's. */
aclnnStatus op_execute(const char *function, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                       const void *stream)
{
    Call call = us_call_begin(function);
    us_require(&call, executor != NULL, "executor", "null", ACLNN_ERR_PARAM_NULLPTR, "executor is NULL");
    if (call.status != 0) {
        return us_call_end(&call);
    }
    Executor *plan = us_handle_object(executor, HANDLE_EXECUTOR);
    bool ends = plan != NULL && !plan->repeatable;
    if (ends && us_handle_end(executor, HANDLE_EXECUTOR) == NULL) {
        plan = NULL; /* another thread ran it just now */
        ends = false;
    }
    us_require(&call, plan != NULL, "executor", "handle", ACLNN_ERR_INNER,
               "executor (%p) is not alive: it has run, was destroyed, or was never created", (void *)executor);
    us_require(&call, strcmp(plan->launch.function, function) == 0, "executor", "operator", ACLNN_ERR_INNER,
               "executor (%p) was planned by %sGetWorkspaceSize", (void *)executor, plan->launch.function);
    us_require(&call, workspace != NULL || workspace_size == 0, "workspace", "null", ACLNN_ERR_PARAM_NULLPTR,
               "workspace is NULL although workspaceSize is %llu", (unsigned long long)workspace_size);
    if (call.status == 0 && plan->launch.kernel != NULL) {
        Stream *queue = ascend_stream(stream);
        us_require(&call, queue != NULL, "stream", "handle", ACLNN_ERR_RUNTIME_ERROR,
                   stream != NULL ? "stream (%p) is not alive" : "stream is NULL (%p) and this thread has no device set",
                   stream);
        us_require(&call, us_launch_submit(&plan->launch, queue), "stream", "exhausted", ACLNN_ERR_RUNTIME_ERROR,
                   "no host memory to queue the operator");
    }
    if (ends) {
        free(plan);
    }
    return us_call_end(&call);
}
