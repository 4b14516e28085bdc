/* Runs of graphs: their steps, one after the other. */
#include "device/graph_launch.h"

#include "report/trace.h"

#include <stdlib.h>

typedef struct Cursor {
    size_t next;     /* step of the branch */
    size_t furthest; /* behind the last step that has been passed */
    bool active;
} Cursor;

typedef struct Run {
    GraphState *graph;
    const GraphLaunch *launch; /* NULL: a part of another graph's run */
    Cursor *cursors;
    bool over; /* STEP_END was reached */
    DeviceFault fault;
    Explanation *why;
} Run;

static const uint32_t NO_STEP = UINT32_MAX;

typedef enum Progress { PROGRESS_MADE, PROGRESS_NONE, PROGRESS_OVER } Progress;

/* ---- numbers in device memory ------------------------------------------------------------------------------------ */

static const void *open_number(Run *run, const void *address, size_t size)
{
    const Device *device = run->graph->public.device;
    Explanation detail = {{0}};
    const void *opened = us_memory_open(device->platform, device, address, size, MEMORY_USER_KERNEL, &detail);
    if (opened == NULL) {
        us_explain(run->why, "a step that decides: %s", detail.text);
        run->fault = DEVICE_FAULT_ADDRESS;
    }
    return opened;
}

static bool compare(Run *run, const Switch *decides)
{
    const void *left = open_number(run, decides->left, decides->wide ? 8 : 4);
    const void *right = left != NULL ? open_number(run, decides->right, decides->wide ? 8 : 4) : NULL;
    if (right == NULL) {
        return false;
    }
    int64_t a = decides->wide ? *(const int64_t *)left : *(const int32_t *)left;
    int64_t b = decides->wide ? *(const int64_t *)right : *(const int32_t *)right;
    switch (decides->comparison) {
    case COMPARE_EQUAL: return a == b;
    case COMPARE_NOT_EQUAL: return a != b;
    case COMPARE_GREATER: return a > b;
    case COMPARE_NOT_LESS: return a >= b;
    case COMPARE_LESS: return a < b;
    case COMPARE_NOT_GREATER: return a <= b;
    }
    return false;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void run_body(Run *run, const Body *body)
{
    const Task *task = &body->task;
    Origin before = us_set_origin((Origin){task->work.name, task->caller, true});
    Explanation detail = {{0}};
    uint64_t start = us_tracing ? us_now() : 0;
    run->fault = task->run(task->argument, &detail);
    us_value_look_again();
    us_set_origin(before);
    if (us_tracing) {
        us_task_trace(task->work, start, run->fault);
    }
    if (run->fault != DEVICE_FAULT_NONE) {
        us_explain(run->why, "%s: %s", task->work.name, detail.text);
    }
}

static void start_branch(Run *run, uint32_t branch, size_t step)
{
    run->cursors[branch] = (Cursor){.next = step, .furthest = run->cursors[branch].furthest, .active = true};
}

static void jump(Run *run, uint32_t branch, const Jump *jump)
{
    const uint32_t *index = open_number(run, jump->index, sizeof *index);
    if (index != NULL) {
        const Place *target = &jump->targets[*index < jump->count ? *index : jump->count - 1];
        if (target->branch >= run->graph->branch_count) {
            us_explain(run->why, "label %u, which a jump chose, has not been set", (unsigned)*index);
            run->fault = DEVICE_FAULT_ADDRESS;
            return;
        }
        run->cursors[branch].active = false;
        start_branch(run, target->branch, target->step + 1);
    }
}

static void choose(Run *run, const Choice *choice)
{
    const volatile uint64_t *number = open_number(run, choice->number, sizeof *number);
    if (number == NULL) {
        return;
    }
    switch (choice->choosing) {
    case CHOOSE_WHILE:
        while (*number != 0 && run->fault == DEVICE_FAULT_NONE && !us_task_gives_up()) {
            run->fault = us_graph_run(choice->graphs[0], NULL, run->why);
        }
        break;
    case CHOOSE_IF:
    case CHOOSE_SWITCH: {
        uint64_t chosen = choice->choosing == CHOOSE_SWITCH ? *number : *number != 0 ? 0 : 1;
        if (chosen < choice->count) {
            run->fault = us_graph_run(choice->graphs[chosen], NULL, run->why);
        }
        break;
    }
    }
}

/* Whether the step has to wait: for another branch, or for the world outside. */
static bool has_to_wait(const Run *run, const Step *step, bool *outside)
{
    *outside = true;
    if (step->disabled) {
        return false;
    }
    switch (step->kind) {
    case STEP_WAIT:
        *outside = false;
        return run->cursors[step->target.branch].furthest <= step->target.step;
    case STEP_EXTERNAL_WAIT: {
        uint64_t record = step->when_run ? us_event_awaited(step->event, true) : run->launch->records[step->external];
        return !us_event_is_reached(step->event, record);
    }
    case STEP_TASK:
        return step->body->task.ready != NULL && !step->body->task.ready(step->body->task.argument);
    default:
        return false;
    }
}

static void perform(Run *run, uint32_t branch, const Step *step)
{
    switch (step->kind) {
    case STEP_TASK:
        run_body(run, step->body);
        break;
    case STEP_EXTERNAL_RECORD:
        us_event_reach(step->event, run->launch->records[step->external], us_now());
        break;
    case STEP_EXTERNAL_WAIT:
        us_event_await(step->event, step->when_run ? us_event_awaited(step->event, true)
                       : run->launch->records[step->external]);
        break;
    case STEP_EXTERNAL_RESET:
        us_event_forget(step->event);
        break;
    case STEP_CHOICE:
        choose(run, step->control);
        break;
    case STEP_JUMP:
        jump(run, branch, step->control);
        break;
    case STEP_SWITCH:
        if (compare(run, step->control)) {
            run->cursors[branch].active = false;
            start_branch(run, step->target.branch, 0);
        }
        break;
    case STEP_START:
        start_branch(run, step->target.branch, 0);
        break;
    case STEP_END:
        run->over = true;
        break;
    case STEP_RECORD:
    case STEP_WAIT:
    case STEP_LABEL:
        break;
    }
}

/* The branch's next step, its task held against a change meanwhile; false: the branch has none. */
static bool take_step(Run *run, uint32_t branch, Step *step)
{
    const Cursor *cursor = &run->cursors[branch];
    if (!cursor->active) {
        return false;
    }
    pthread_mutex_lock(&run->graph->lock);
    const Branch *steps = &run->graph->branches[branch];
    bool found = cursor->next < steps->count;
    if (found) {
        *step = steps->steps[cursor->next];
        step->body = us_graph_body_at_launch(run->launch, step);
        step->disabled &= !us_graph_has_own(run->launch, step);
        if (step->body != NULL) {
            us_reference_take(&step->body->references);
        }
    }
    pthread_mutex_unlock(&run->graph->lock);
    return found;
}

/* `*blocked`: which step has to wait for the world outside; NO_STEP: none. */
static Progress advance(Run *run, uint32_t branch, bool may_block, uint32_t *blocked)
{
    Step step;
    *blocked = NO_STEP;
    if (!take_step(run, branch, &step)) {
        return PROGRESS_OVER;
    }
    bool outside = false;
    bool waits = has_to_wait(run, &step, &outside);
    *blocked = waits && outside ? step.id : NO_STEP;
    if (!waits || (may_block && outside)) {
        waits = false;
        Cursor *cursor = &run->cursors[branch];
        cursor->next++;
        if (cursor->next > cursor->furthest) {
            cursor->furthest = cursor->next;
        }
        if (!step.disabled) {
            perform(run, branch, &step);
        }
    }
    if (step.body != NULL) {
        us_body_let_go(step.body);
    }
    return waits ? PROGRESS_NONE : PROGRESS_MADE;
}

static bool goes_on(const Run *run)
{
    return !run->over && run->fault == DEVICE_FAULT_NONE && !us_task_gives_up();
}

/* Goes through all branches as far as possible without waiting. True: some branch moved; `*blocked`: one that waits
 * for the world outside, UINT32_MAX: none; `*waiting`: some branch is not at its end. Of several that wait it is that whose
 * step was recorded first: it has the earliest turn of those that take turns, and the later ones come after it. */
static bool sweep(Run *run, uint32_t *blocked, bool *waiting)
{
    bool moved = false;
    uint32_t first = NO_STEP;
    *blocked = UINT32_MAX;
    *waiting = false;
    for (uint32_t b = 0; b < run->graph->branch_count && goes_on(run); b++) {
        Progress progress = PROGRESS_MADE;
        uint32_t step = NO_STEP;
        while (goes_on(run) && (progress = advance(run, b, false, &step)) == PROGRESS_MADE) {
            moved = true;
        }
        *waiting |= progress == PROGRESS_NONE;
        if (progress == PROGRESS_NONE && step < first) {
            first = step;
            *blocked = b;
        }
    }
    return moved;
}

static void run_branches(Run *run)
{
    while (goes_on(run)) {
        uint32_t blocked = UINT32_MAX;
        bool waiting = false;
        bool moved = sweep(run, &blocked, &waiting);
        if (!goes_on(run) || !waiting) {
            return;
        }
        if (!moved && blocked == UINT32_MAX) {
            us_explain(run->why, "a branch of graph %u waits for a record that no branch makes", run->graph->public.id);
            run->fault = DEVICE_FAULT_TIMEOUT;
        } else if (!moved) {
            uint32_t step = NO_STEP;
            advance(run, blocked, true, &step);
        }
    }
}

static void set_initials(Run *run)
{
    for (size_t i = 0; i < run->graph->initial_count && run->fault == DEVICE_FAULT_NONE; i++) {
        uint64_t *number = (uint64_t *)open_number(run, run->graph->initials[i].number, sizeof *number);
        if (number != NULL) {
            *number = run->graph->initials[i].value;
        }
    }
}

DeviceFault us_graph_run(GraphState *graph, const GraphLaunch *launch, Explanation *why)
{
    enum { FEW = 8 };
    Cursor few[FEW];
    Cursor *cursors = graph->branch_count > FEW ? malloc(graph->branch_count * sizeof *cursors) : few;
    if (cursors == NULL) {
        us_explain(why, "no host memory to run graph %u", graph->public.id);
        return DEVICE_FAULT_NO_MEMORY;
    }
    for (size_t b = 0; b < graph->branch_count; b++) {
        cursors[b] = (Cursor){.active = !graph->branches[b].dormant};
    }
    Run run = {.graph = graph, .launch = launch, .cursors = cursors, .why = why};
    set_initials(&run);
    run_branches(&run);
    if (cursors != few) {
        free(cursors);
    }
    return run.fault;
}
