/* The road of an operator call: begin, plan, submit. Parameters are taken up in op_parameters.c, checks are in op_checks.c. */
#include "ascend/common/op_call.h"

#include "ascend/common/op_memory.h"
#include "ascend/common/op_dump.h"
#include "ascend/common/op_steps.h"
#include "device/check.h"
#include "device/graph.h"
#include "kernels/move/copies.h"
#include "report/grace.h"

#include <string.h>

OpCall op_begin(const char *function, uint64_t *workspace_size, aclOpExecutor **executor)
{
    OpCall op = {.call = us_call_begin(function),
                 .product = ascend_product(),
                 .workspace_size = workspace_size,
                 .result = executor,
                 .invalid = ACLNN_ERR_PARAM_INVALID,
                 .missing = ACLNN_ERR_PARAM_NULLPTR};
    op_require(&op, workspace_size != NULL, "workspaceSize", "null", ACLNN_ERR_PARAM_NULLPTR, "workspaceSize is NULL");
    op_require(&op, executor != NULL, "executor", "null", ACLNN_ERR_PARAM_NULLPTR, "executor is NULL");
    if (op_refused(&op)) {
        return op;
    }
    op.executor = executor_create(function);
    op_require(&op, op.executor != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    return op;
}

/* ---- end of the first function ---- */

/* aclnn-ops 0.4: a view that is not contiguous must stay inside the storage shape. Contiguous ones are not checked
 * here; the device finds those that leave their memory. */
static void require_inside_storage(OpCall *op, const Operand *operand)
{
    if (op_refused(op) || !op_given(operand) || operand->unbound || us_view_is_contiguous(&operand->view)) {
        return;
    }
    View view = operand->view;
    memcpy(view.strides, operand->strides, (size_t)view.rank * sizeof *view.strides);
    const int64_t storage = op_storage_elements(operand);
    int64_t lowest = 0;
    int64_t highest = 0;
    bool inside = us_view_extent(&view, &lowest, &highest) &&
                  !__builtin_add_overflow(lowest, operand->offset, &lowest) &&
                  !__builtin_add_overflow(highest, operand->offset, &highest) && lowest >= 0 &&
                  highest < storage;
    char text[SHAPE_TEXT_SIZE];
    char strides[SHAPE_TEXT_SIZE];
    op_require(op, inside, operand->name, "view", ACLNN_ERR_INNER_NULLPTR,
               "%s is a view %s with strides %s and offset %lld that leaves its storage of %lld elements",
               operand->name,
               us_shape_text(view.rank, view.shape, text, sizeof text),
               us_shape_text(view.rank, view.strides, strides, sizeof strides), (long long)operand->offset,
               (long long)storage);
}

/* Our kernels need none; UNDERSTUDY_CHECK=workspace asks for some, as the card's operators do. */
static uint64_t workspace_wanted(const Executor *executor)
{
    return executor->task.kernel != NULL && (us_checks() & CHECK_WORKSPACE) != 0 ? CHECKED_WORKSPACE : 0;
}

static aclnnStatus hand_over(OpCall *op)
{
    if (op->steps.begun) {
        return op->call.status;
    }
    if (!op_refused(op)) {
        aclOpExecutor *handle = us_handle_create(HANDLE_EXECUTOR, op->executor);
        op_require(op, handle != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
                   "no handle is left for the executor");
        if (handle != NULL) {
            *op->workspace_size = workspace_wanted(op->executor);
            *op->result = handle;
            return us_call_end(&op->call);
        }
    }
    executor_release(op->executor);
    return us_call_end(&op->call);
}

/* Types of which several elements share a byte are read by a view of the plan's own. What no view is of is not read. */
static bool is_readable(const Operand *operand, int32_t count, const PlannedView *planned)
{
    bool readable = operand->view.dtype != DTYPE_NONE, read = false;
    for (int32_t i = 0; !readable && i < count; i++) {
        const bool mine = planned[i].operand == operand;
        read |= mine;
        readable = mine && planned[i].view != NULL && planned[i].view->dtype != DTYPE_NONE;
    }
    return readable || !read;
}

static void require_operands_inside(OpCall *op, int32_t count, const PlannedView *planned)
{
    for (const Operand *operand = op_refused(op) ? NULL : op->executor->operands; operand != NULL;
         operand = operand->next) {
        op_require(op, !op_given(operand) || is_readable(operand, count, planned), "kernel", "missing",
                   ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "no kernel handles %s of %s", acl_dtype_name(operand->dtype),
                   operand->name);
        require_inside_storage(op, operand);
    }
}

static bool is_in_blocks(const PlannedView *planned)
{
    return planned->operand != NULL && planned->operand->blocks != NULL;
}

/* Numbers the copies, one for each operand, and tells how many there are. */
static int32_t number_copies(const Planned *plan, int32_t *copy_of)
{
    int32_t copies = 0;
    for (int32_t i = 0; i < plan->count; i++) {
        copy_of[i] = is_in_blocks(&plan->views[i]) ? copies : -1;
        for (int32_t k = 0; k < i && copy_of[i] == copies; k++) {
            copy_of[i] = plan->views[k].operand == plan->views[i].operand ? copy_of[k] : copies;
        }
        copies += copy_of[i] == copies;
    }
    return copies;
}

/* The kernel runs on copies of what lies in blocks. */
static Planned with_copies(OpCall *op, Planned plan)
{
    bool any = false;
    for (int32_t i = 0; i < plan.count; i++) {
        any |= is_in_blocks(&plan.views[i]);
    }
    if (!any || op_refused(op)) {
        return plan;
    }
    const size_t begin = (sizeof(KernelCopies) + (size_t)plan.count * sizeof(int32_t) + 15) / 16 * 16;
    KernelCopies *how = op_take(op, begin + plan.size);
    PlannedView *views = op_take(op, 2 * (size_t)plan.count * sizeof *views);
    if (op_refused(op)) {
        return plan;
    }
    *how = (KernelCopies){.kernel = plan.kernel, .count = plan.count, .attributes = begin};
    how->copies = number_copies(&plan, how->copy_of);
    memcpy(views, plan.views, (size_t)plan.count * sizeof *views);
    for (int32_t i = 0; i < plan.count; i++) {
        if (how->copy_of[i] >= 0) {
            const Operand *operand = plan.views[i].operand;
            views[plan.count + how->copy_of[i]] = (PlannedView){operand, VIEW_READ, operand->blocks};
        }
    }
    if (plan.size > 0) {
        memcpy((char *)how + begin, plan.attributes, plan.size);
    }
    return (Planned){us_kernel_with_copies, how, begin + plan.size, plan.count + how->copies, views};
}

/* Only a program's tensor is looked at where the operand is: what is derived from it is moved by itself (nnopbase). */
static View *view_of(OpCall *op, const PlannedView *planned)
{
    const Operand *operand = planned->operand;
    if (operand != NULL && operand->handle != NULL && planned->view == NULL && operand->given == NULL) {
        return (View *)&operand->view;
    }
    View *view = op_take(op, sizeof *view);
    if (view != NULL) {
        *view = planned->view != NULL ? *planned->view : operand != NULL ? operand->view : us_view_absent();
    }
    return view;
}

aclnnStatus op_plan_whole(OpCall *op, Planned plan)
{
    if (op->steps.begun) {
        op_add_step(op, plan);
        return op->call.status;
    }
    const int32_t count = plan.count;
    const size_t size = plan.size;
    const PlannedView *planned = plan.views;
    const int32_t results = op_refused(op) ? 0 : op->executor->task.result_count;
    const size_t total = (size_t)count + (size_t)results;
    View **views = op_take(op, total * sizeof *views);
    const char **names = op_take(op, total * sizeof *names);
    ViewAccess *access = op_take(op, total * sizeof *access);
    const Operand **operands = op_take(op, total * sizeof *operands);
    void *kept = op_take(op, size);
    if (op_refused(op)) {
        return hand_over(op);
    }
    for (int32_t i = 0; i < count; i++) {
        const Operand *operand = planned[i].operand;
        views[i] = view_of(op, &planned[i]);
        names[i] = operand != NULL ? operand->name : "";
        access[i] = planned[i].access;
        operands[i] = access[i] == VIEW_TEMPORARY ? NULL : operand != NULL && operand->given != NULL ? operand->given : operand;
    }
    for (int32_t i = count; i < count + results; i++) {
        views[i] = view_of(op, &(PlannedView){0});
        names[i] = "shape";
        access[i] = VIEW_RESULT;
    }
    if (size > 0) {
        memcpy(kept, plan.attributes, size);
    }
    LaunchTask *task = &op->executor->task;
    task->kernel = plan.kernel;
    task->view_count = (int32_t)total;
    op->executor->views = views;
    task->views = (const View *const *)views;
    task->names = names;
    task->access = access;
    task->attributes = kept;
    task->attribute_size = size;
    op->executor->view_operands = operands;
    return hand_over(op);
}

aclnnStatus op_plan_views(OpCall *op, Kernel *kernel, const void *attributes, size_t size, int32_t count,
                          const PlannedView *planned)
{
    require_operands_inside(op, count, planned);
    return op_plan_whole(op, with_copies(op, (Planned){kernel, attributes, size, count, planned}));
}

aclnnStatus op_plan(OpCall *op, Kernel *kernel, const void *attributes, size_t size)
{
    int32_t count = 0;
    for (const Operand *operand = op_refused(op) ? NULL : op->executor->operands; operand != NULL;
         operand = operand->next) {
        count++;
    }
    PlannedView *views = op_take(op, (size_t)count * sizeof *views);
    if (op_refused(op)) {
        return hand_over(op);
    }
    int32_t at = 0;
    for (const Operand *operand = op->executor->operands; operand != NULL; operand = operand->next) {
        views[at++] = (PlannedView){operand, operand->output ? VIEW_WRITE : VIEW_READ, NULL};
    }
    return op_plan_views(op, kernel, attributes, size, count, views);
}

aclnnStatus op_plan_operands(OpCall *op, Kernel *kernel, const void *attributes, size_t size, Operands inputs,
                             Operands outputs)
{
    const int32_t count = inputs.count + outputs.count;
    PlannedView *views = op_take(op, (size_t)count * sizeof *views);
    if (op_refused(op)) {
        return hand_over(op);
    }
    for (int32_t i = 0; i < count; i++) {
        const bool output = i >= inputs.count;
        views[i] = (PlannedView){output ? outputs.items[i - inputs.count] : inputs.items[i],
                                 output ? VIEW_WRITE : VIEW_READ, NULL};
    }
    return op_plan_views(op, kernel, attributes, size, count, views);
}

/* On the stream's worker. The tensor may have been destroyed meanwhile: then nobody can ask for its shape. */
static void set_view_shape(void *tensor, const LaunchResult *result)
{
    us_grace_enter();
    Tensor *object = us_handle_object(tensor, HANDLE_TENSOR);
    if (object != NULL) {
        object->view.rank = result->rank;
        memcpy(object->view.sizes, result->shape, (size_t)result->rank * sizeof *result->shape);
        memcpy(object->strides, result->strides, (size_t)result->rank * sizeof *result->strides);
    }
    us_grace_leave();
}

void op_plan_shape_of(OpCall *op, const Operand *output)
{
    if (!op_refused(op)) {
        LaunchTask *task = &op->executor->task;
        task->finish = set_view_shape;
        task->finish_arguments[task->result_count++] = (void *)(uintptr_t)output->handle;
    }
}

aclnnStatus op_plan_nothing(OpCall *op)
{
    return hand_over(op);
}

/* ---- second function ---- */

/* The stream that the operator goes to. What the runtime would answer is in the sentences. */
static void require_queue(Call *call, const Stream *queue, const void *stream)
{
    us_require(call, queue != NULL, "stream", "handle", ACLNN_ERR_RUNTIME_ERROR,
               stream != NULL ? "stream (%p) is not alive" : "stream is NULL (%p) and this thread has no device set", stream);
    us_require(call, queue != queue->context->default_stream || !us_capture_in_context(queue->context, true), "stream",
               "implicit", ACLNN_ERR_RUNTIME_ERROR,
               "the default stream cannot be used while another stream of its context is captured (107031)");
    us_require(call, !us_stream_is_closed(queue), "stream", "closed", ACLNN_ERR_RUNTIME_ERROR,
               "stream %d is bound to a model that takes no more work: aclmdlRIBuildEnd was called (107000)",
               (int)queue->id);
    if (call->status == 0 && us_capture_open_group(queue) == GROUP_ELSEWHERE) {
        us_capture_invalidate(queue);
        us_refuse(call, "stream", "other-group", ACLNN_ERR_RUNTIME_ERROR,
                  "a task group of another stream is being recorded; stream %d gets tasks when it has ended (107034)",
                  (int)queue->id);
    }
}

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
    us_require(&call, strcmp(plan->function, function) == 0, "executor", "operator", ACLNN_ERR_INNER,
               "executor (%p) was planned by %sGetWorkspaceSize", (void *)executor, plan->function);
    us_require(&call, workspace != NULL || workspace_size == 0, "workspace", "null", ACLNN_ERR_PARAM_NULLPTR,
               "workspace is NULL although workspaceSize is %llu", (unsigned long long)workspace_size);
    if (call.status == 0 && plan->task.kernel != NULL) {
        Stream *queue = ascend_stream(stream);
        require_queue(&call, queue, stream);
        LaunchTask task = plan->task;
        if (call.status == 0 && workspace_wanted(plan) > 0) {
            size_t wanted = workspace_wanted(plan);
            bool given = us_check_workspace(queue->context->device, function, workspace, workspace_size, wanted);
            task.workspace = workspace;
            task.workspace_size = given ? wanted : 0; /* once told is enough */
        }
        if (call.status == 0) {
            op_dump_tensors(plan, queue, false);
        }
        us_require(&call, us_launch_submit_task(&task, queue), "stream", "exhausted", ACLNN_ERR_RUNTIME_ERROR,
                   "no host memory to queue the operator");
        if (call.status == 0) {
            op_dump_tensors(plan, queue, true);
            op_dump_arguments(plan, queue->context->device->platform);
        }
    }
    if (ends) {
        executor_release(plan);
    }
    return us_call_end(&call);
}
