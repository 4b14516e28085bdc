/* Runs of graphs: one task of one stream. */
#include "device/check.h"
#include "device/graph_internal.h"
#include "device/order.h"

#include "report/trace.h"

#include <stdlib.h>

/* One launch. `records` has a number for each external step: the record it makes or waits for. */
typedef struct GraphLaunch {
    GraphState *graph; /* held */
    StreamState *stream;
    struct GraphLaunch *next; /* in the graph's line: a later one */
    bool is_in_line;          /* false: not queued, or a step of another graph, which runs within that one's launches */
    uint64_t ticket;          /* of its task, once it is in line */
    _Atomic bool aborted;
    Moment *moment; /* for the checks: what it waits for, or when it is over */
    uint64_t records[];
} GraphLaunch;

typedef struct Cursor {
    size_t next;     /* step of the branch */
    size_t furthest; /* behind the last step that has been passed */
    bool active;
} Cursor;

typedef struct Run {
    GraphState *graph;
    const uint64_t *records;
    Cursor *cursors;
    bool over; /* STEP_END was reached */
    DeviceFault fault;
    Explanation *why;
} Run;

typedef enum Progress { PROGRESS_MADE, PROGRESS_NONE, PROGRESS_OVER } Progress;

static DeviceFault run_once(GraphState *graph, const GraphLaunch *launch, Explanation *why);

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
            run->fault = run_once(choice->graphs[0], NULL, run->why);
        }
        break;
    case CHOOSE_IF:
    case CHOOSE_SWITCH: {
        uint64_t chosen = choice->choosing == CHOOSE_SWITCH ? *number : *number != 0 ? 0 : 1;
        if (chosen < choice->count) {
            run->fault = run_once(choice->graphs[chosen], NULL, run->why);
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
        uint64_t record = step->when_run ? us_event_awaited(step->event, true) : run->records[step->external];
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
        us_event_reach(step->event, run->records[step->external], us_now());
        break;
    case STEP_EXTERNAL_WAIT:
        us_event_await(step->event, step->when_run ? us_event_awaited(step->event, true)
                       : run->records[step->external]);
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
        if (step->body != NULL) {
            us_reference_take(&step->body->references);
        }
    }
    pthread_mutex_unlock(&run->graph->lock);
    return found;
}

static Progress advance(Run *run, uint32_t branch, bool may_block, bool *outside)
{
    Step step;
    if (!take_step(run, branch, &step)) {
        return PROGRESS_OVER;
    }
    bool waits = has_to_wait(run, &step, outside);
    if (!waits || (may_block && *outside)) {
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
 * for the world outside, UINT32_MAX: none; `*waiting`: some branch is not at its end. */
static bool sweep(Run *run, uint32_t *blocked, bool *waiting)
{
    bool moved = false;
    *blocked = UINT32_MAX;
    *waiting = false;
    for (uint32_t b = 0; b < run->graph->branch_count && goes_on(run); b++) {
        Progress progress = PROGRESS_MADE;
        bool outside = false;
        while (goes_on(run) && (progress = advance(run, b, false, &outside)) == PROGRESS_MADE) {
            moved = true;
        }
        *waiting |= progress == PROGRESS_NONE;
        if (progress == PROGRESS_NONE && outside && *blocked == UINT32_MAX) {
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
            bool outside = false;
            advance(run, blocked, true, &outside);
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

/* As that launch, or, without one, as a part of another graph. */
static DeviceFault run_once(GraphState *graph, const GraphLaunch *launch, Explanation *why)
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
    Run run = {.graph = graph, .records = launch != NULL ? launch->records : NULL, .cursors = cursors, .why = why};
    set_initials(&run);
    run_branches(&run);
    if (cursors != few) {
        free(cursors);
    }
    return run.fault;
}

/* ---- the line of launches: one graph's launches run one after the other, in the order of the launches ---------------- */

static void wake_line(void *argument)
{
    GraphState *graph = argument;
    pthread_mutex_lock(&graph->line_lock);
    pthread_cond_broadcast(&graph->line_moved);
    pthread_mutex_unlock(&graph->line_lock);
}

/* While the stream is locked: so no launch is ahead of another one in the line and behind it in a stream. */
static void enter_line(void *argument, uint64_t ticket)
{
    GraphLaunch *launch = argument;
    GraphState *graph = launch->graph;
    launch->is_in_line = true;
    launch->ticket = ticket;
    pthread_mutex_lock(&graph->line_lock);
    GraphLaunch *last = atomic_load(&graph->launches);
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    if (last == NULL) {
        atomic_store(&graph->launches, launch);
    } else {
        last->next = launch;
    }
    pthread_mutex_unlock(&graph->line_lock);
}

static void leave_line(const GraphLaunch *launch)
{
    GraphState *graph = launch->graph;
    pthread_mutex_lock(&graph->line_lock);
    GraphLaunch *before = atomic_load(&graph->launches);
    if (before == launch) {
        atomic_store(&graph->launches, launch->next);
    } else {
        while (before->next != launch) {
            before = before->next;
        }
        before->next = launch->next;
    }
    pthread_cond_broadcast(&graph->line_moved);
    pthread_mutex_unlock(&graph->line_lock);
}

/* Once true it stays so until the launch is over. */
static bool has_turn(const GraphLaunch *launch)
{
    return !launch->is_in_line || atomic_load(&launch->graph->launches) == launch;
}

/* With the line's lock held, which is released meanwhile. Nobody may wait for the stream of the first (deferred mode). */
static void allow_first(GraphState *graph)
{
    const GraphLaunch *first = atomic_load(&graph->launches);
    StreamState *stream = us_stream_hold(first->stream) ? first->stream : NULL; /* NULL: it drops what it has */
    const uint64_t ticket = first->ticket;
    pthread_mutex_unlock(&graph->line_lock);
    if (stream != NULL) {
        us_stream_allow(stream, ticket);
        us_stream_let_go(stream);
    }
    pthread_mutex_lock(&graph->line_lock);
}

/* False: the task gives up before its turn. */
static bool wait_for_turn(const GraphLaunch *launch)
{
    GraphState *graph = launch->graph;
    us_task_sleeps(wake_line, graph);
    const GraphLaunch *allowed = NULL;
    pthread_mutex_lock(&graph->line_lock);
    while (!has_turn(launch) && !us_task_gives_up()) {
        const GraphLaunch *first = atomic_load(&graph->launches);
        if (first != allowed) {
            allowed = first;
            allow_first(graph);
        } else {
            pthread_cond_wait(&graph->line_moved, &graph->line_lock);
        }
    }
    pthread_mutex_unlock(&graph->line_lock);
    us_task_sleeps(NULL, NULL);
    return has_turn(launch);
}

/* The run that goes on; or the first that is queued, which a card would have begun. */
void us_graph_abort(Graph *public)
{
    GraphState *graph = graph_state(public);
    StreamState *stream = NULL;
    pthread_mutex_lock(&graph->line_lock);
    GraphLaunch *launch = atomic_load(&graph->launches);
    if (launch != NULL) {
        atomic_store(&launch->aborted, true);
        stream = us_stream_hold(launch->stream) ? launch->stream : NULL;
    }
    pthread_mutex_unlock(&graph->line_lock);
    if (stream != NULL) { /* without the lock, which the task takes when it wakes */
        us_stream_rouse(stream);
        us_stream_let_go(stream);
    }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static DeviceFault run_launch(void *argument, Explanation *why)
{
    const GraphLaunch *launch = argument;
    if (!launch->is_in_line) {
        return run_once(launch->graph, launch, why);
    }
    us_task_gives_up_with(&launch->aborted);
    DeviceFault fault = has_turn(launch) || wait_for_turn(launch) ? run_once(launch->graph, launch, why)
                                                                  : DEVICE_FAULT_NONE;
    us_task_gives_up_with(NULL);
    return fault;
}

static bool launch_is_ready(void *argument)
{
    const GraphLaunch *launch = argument;
    return !launch->graph->may_block && has_turn(launch);
}

typedef void VisitExternal(GraphLaunch *launch, Step *step, uint64_t number);

/* Every external step, with `number`. With the graph's lock held. */
static void each_external(GraphLaunch *launch, VisitExternal *visit, uint64_t number)
{
    for (size_t b = 0; b < launch->graph->branch_count && launch->graph->external_count > 0; b++) {
        for (size_t s = 0; s < launch->graph->branches[b].count; s++) {
            Step *step = &launch->graph->branches[b].steps[s];
            if (step->kind == STEP_EXTERNAL_RECORD || step->kind == STEP_EXTERNAL_WAIT) {
                visit(launch, step, number);
            }
        }
    }
}

/* First the records, then the waits, which may wait for them. */
static void issue(GraphLaunch *launch, Step *step, uint64_t kind)
{
    if (step->kind == kind) {
        launch->records[step->external] = kind == STEP_EXTERNAL_RECORD ? us_event_issue_record(step->event)
                                                                       : us_event_awaited(step->event, step->when_run);
    }
}

static void tell_origin(GraphLaunch *launch, Step *step, uint64_t ticket)
{
    if (step->kind == STEP_EXTERNAL_RECORD) {
        us_event_record_comes_from(step->event, launch->records[step->external], launch->stream, ticket,
                                   us_order_hold(launch->moment));
    }
}

/* A record that was dropped must not keep anybody waiting. */
static void give_up_record(GraphLaunch *launch, Step *step, uint64_t time)
{
    if (step->kind == STEP_EXTERNAL_RECORD) {
        us_event_reach(step->event, launch->records[step->external], time);
    }
}

static void release_launch(void *argument)
{
    GraphLaunch *launch = argument;
    pthread_mutex_lock(&launch->graph->lock);
    each_external(launch, give_up_record, 0);
    pthread_mutex_unlock(&launch->graph->lock);
    if (launch->is_in_line) {
        leave_line(launch);
    }
    us_graph_let_go(launch->graph);
    free(launch);
}

/* For the checks: a launch comes after the records that it waits for, and uses what its tasks use, in any order. */
static void order_after(GraphLaunch *launch, Step *step, uint64_t number)
{
    (void)number;
    if (step->kind == STEP_EXTERNAL_WAIT) {
        launch->moment = us_order_join(launch->moment, us_event_moment(step->event, launch->records[step->external]));
    }
}

static size_t count_uses(const GraphState *graph)
{
    size_t count = 0;
    for (size_t b = 0; b < graph->branch_count; b++) {
        for (size_t s = 0; s < graph->branches[b].count; s++) {
            const Step *step = &graph->branches[b].steps[s];
            count += step->body != NULL && !step->disabled ? step->body->task.use_count : 0;
        }
    }
    return count;
}

/* For numbers in memory, or notifies. */
static bool waits_for_the_unknown(const GraphState *graph)
{
    bool waits = false;
    for (size_t b = 0; b < graph->branch_count; b++) {
        for (size_t s = 0; s < graph->branches[b].count; s++) {
            const Step *step = &graph->branches[b].steps[s];
            waits |= step->body != NULL && !step->disabled && step->body->task.ready != NULL;
        }
    }
    return waits;
}

/* With the graph's lock held. Nothing when no check wants them; allocated. */
static Use *collect_uses(const GraphState *graph, size_t *count)
{
    const size_t room = us_checks() != 0 ? count_uses(graph) : 0;
    Use *uses = room > 0 ? malloc(room * sizeof *uses) : NULL;
    *count = 0;
    for (size_t b = 0; b < graph->branch_count && uses != NULL; b++) {
        for (size_t s = 0; s < graph->branches[b].count; s++) {
            const Step *step = &graph->branches[b].steps[s];
            for (size_t u = 0; step->body != NULL && !step->disabled && u < step->body->task.use_count; u++) {
                uses[(*count)++] = step->body->task.uses[u];
            }
        }
    }
    return uses;
}

/* Takes the moment over. */
static void keep_moment(GraphState *graph, Moment *over)
{
    if (over != NULL) {
        pthread_mutex_lock(&graph->lock);
        Moment *before = graph->over;
        graph->over = over;
        pthread_mutex_unlock(&graph->lock);
        us_order_let_go(before);
    }
}

bool us_graph_launch(Graph *public, Stream *stream, const char *name)
{
    GraphState *graph = graph_state(public);
    GraphLaunch *launch = malloc(sizeof *launch + graph->external_count * sizeof *launch->records);
    if (launch == NULL || !us_graph_hold(graph)) {
        free(launch);
        return false;
    }
    *launch = (GraphLaunch){.graph = graph, .stream = stream_state(stream)};
    pthread_mutex_lock(&graph->lock);
    launch->moment = us_order_hold(graph->over);
    if ((us_checks() & CHECK_RACE) != 0 && !graph->compared) {
        graph->compared = true;
        us_graph_compare_branches(graph);
    }
    each_external(launch, issue, STEP_EXTERNAL_RECORD);
    each_external(launch, issue, STEP_EXTERNAL_WAIT);
    each_external(launch, order_after, 0);
    if (graph->may_block && waits_for_the_unknown(graph)) {
        launch->moment = us_order_join(launch->moment, us_order_unknown());
    }
    size_t use_count = 0;
    Use *uses = collect_uses(graph, &use_count);
    pthread_mutex_unlock(&graph->lock);
    Task task = {.work = {name, "graph", 0}, .run = run_launch, .ready = launch_is_ready, .release = release_launch,
                 .takes_place = enter_line, .argument = launch, .anywhere = !graph->runs_program, .uses = uses,
                 .use_count = use_count};
    Moment *after = launch->moment, *over = NULL;
    task.after = after;
    task.over = &over;
    bool external = graph->external_count > 0;
    (void)us_graph_hold(graph); /* as the launch does, which may be over before its ticket is told */
    GraphLaunch *told = external ? malloc(sizeof *told + graph->external_count * sizeof *told->records) : NULL;
    if (told != NULL) {
        __builtin_memcpy(told, launch, sizeof *told + graph->external_count * sizeof *told->records);
    }
    uint64_t ticket = 0;
    bool queued = us_stream_queue(stream_state(stream), task, &ticket);
    free(uses);
    us_order_let_go(after);
    if (!queued) {
        release_launch(launch);
    } else if (told != NULL) {
        told->moment = over;
        pthread_mutex_lock(&graph->lock);
        each_external(told, tell_origin, ticket);
        pthread_mutex_unlock(&graph->lock);
    }
    free(told);
    keep_moment(graph, over);
    us_graph_let_go(graph);
    return queued;
}
