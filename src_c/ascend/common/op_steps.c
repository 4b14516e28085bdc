#include "ascend/common/op_steps.h"

#include "ascend/common/op_memory.h"
#include "kernels/scratch.h"
#include "ranks/steps.h"

#include <string.h>

enum { ALIGNMENT = 16 };

typedef struct OpStep {
    Planned plan; /* in the executor's memory */
    bool meets;
    struct OpStep *next;
} OpStep;

void op_begin_steps(OpCall *op)
{
    op->steps = (OpSteps){.begun = true};
}

const Operand *op_temporary(OpCall *op, aclDataType dtype, Shape shape)
{
    static const Operand NOTHING = {.name = ""};
    Operand *made = op_take(op, sizeof *made);
    const int64_t elements = us_shape_elements(shape.rank, shape.sizes);
    op_require(op, elements >= 0, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for what the operator computes in between");
    if (op_refused(op)) {
        return &NOTHING;
    }
    const DType type = dtype_of_acl(dtype);
    *made = (Operand){.name = "temporary", .item = -1, .dtype = dtype, .format = ACL_FORMAT_ND, .temporary = true};
    made->handle = (const aclTensor *)(const void *)made; /* it is given */
    made->view = us_view_contiguous((void *)(uintptr_t)op->steps.used, type, shape.rank, shape.sizes);
    if (__builtin_add_overflow(op->steps.used, us_scratch_bytes(elements, us_dtype_size(type)), &op->steps.used)) {
        op->steps.used = SIZE_MAX / 2; /* more than can be taken */
    }
    return made;
}

void op_plan_meeting(OpCall *op, Kernel *kernel, const void *attributes, size_t size, int32_t count,
                     const PlannedView *views)
{
    op->steps.meets = true;
    op_plan_views(op, kernel, attributes, size, count, views);
    op->steps.meets = false;
}

static const void *kept(OpCall *op, const void *bytes, size_t size)
{
    void *copy = op_take(op, size);
    if (copy != NULL && size > 0) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

void op_add_step(OpCall *op, Planned plan)
{
    OpStep *step = op_take(op, sizeof *step);
    PlannedView *views = op_take(op, (size_t)plan.count * sizeof *views);
    const void *attributes = kept(op, plan.attributes, plan.size);
    for (int32_t i = 0; !op_refused(op) && i < plan.count; i++) {
        views[i] = plan.views[i];
        if (views[i].view != NULL) {
            views[i].view = kept(op, views[i].view, sizeof *views[i].view);
        }
    }
    if (op_refused(op)) {
        return;
    }
    *step = (OpStep){.plan = {plan.kernel, attributes, plan.size, plan.count, views}, .meets = op->steps.meets};
    struct OpStep **end = op->steps.first != NULL ? op->steps.end : &op->steps.first;
    *end = step;
    op->steps.end = &step->next;
    op->steps.count++;
}

/* ---- one plan of all ---- */

static const Operand *given_by_program(const Operand *operand)
{
    return operand != NULL && operand->given != NULL ? operand->given : operand;
}

/* What an earlier step has written is no input of the task. */
static ViewAccess access_of(const PlannedView *views, int32_t i)
{
    const Operand *operand = views[i].operand;
    if (operand != NULL && operand->temporary) {
        return VIEW_TEMPORARY;
    }
    for (int32_t k = 0; operand != NULL && k < i; k++) {
        if (given_by_program(views[k].operand) == given_by_program(operand) && (views[k].access & VIEW_WRITE) != 0) {
            return VIEW_WRITE;
        }
    }
    return views[i].access;
}

static size_t rounded(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static Planned joined(OpCall *op)
{
    int32_t views = 0;
    size_t size = 0;
    for (const OpStep *step = op->steps.first; step != NULL; step = step->next) {
        views += step->plan.count;
        size += rounded(step->plan.size);
    }
    const size_t flags = sizeof(RankSteps) + (size_t)op->steps.count * sizeof(Step);
    const size_t begin = rounded(flags + (size_t)views * sizeof(bool));
    RankSteps *all = op_take(op, begin + size);
    PlannedView *planned = op_take(op, (size_t)views * sizeof *planned);
    Planned plan = {us_rank_steps, all, begin + size, 0, planned};
    if (op_refused(op)) {
        return (Planned){0};
    }
    *all = (RankSteps){.scratch_size = op->steps.used, .temporaries = flags};
    size_t at = begin;
    for (const OpStep *step = op->steps.first; step != NULL; step = step->next) {
        all->steps[all->count++] = (Step){step->plan.kernel, step->plan.count, step->meets, at};
        memcpy((char *)all + at, step->plan.attributes, step->plan.size);
        at += rounded(step->plan.size);
        for (int32_t i = 0; i < step->plan.count; i++) {
            planned[plan.count] = step->plan.views[i];
            planned[plan.count].access = access_of(planned, plan.count);
            ((bool *)all + flags)[plan.count] = planned[plan.count].access == VIEW_TEMPORARY;
            plan.count++;
        }
    }
    return plan;
}

aclnnStatus op_end_steps(OpCall *op)
{
    const Planned plan = joined(op);
    op->steps.begun = false;
    if (op_refused(op) || op->steps.count == 0) {
        return op_plan_nothing(op);
    }
    op->executor->task.meeting = &us_rank_steps_meeting;
    return op_plan_whole(op, plan);
}
