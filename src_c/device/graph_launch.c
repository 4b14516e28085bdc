/* Launches of graphs: one task of one stream each. */
#include "device/check.h"
#include "device/graph_launch.h"
#include "device/order.h"

#include <stdlib.h>

static DeviceFault run_launch(void *argument, Explanation *why)
{
    const GraphLaunch *launch = argument;
    if (!launch->is_in_line) {
        return us_graph_run(launch->graph, launch, why);
    }
    us_task_gives_up_with(&launch->aborted);
    const bool may_run = us_graph_has_turn(launch) || us_graph_wait_for_turn(launch);
    DeviceFault fault = may_run ? us_graph_run(launch->graph, launch, why) : DEVICE_FAULT_NONE;
    us_task_gives_up_with(NULL);
    return fault;
}

static bool launch_is_ready(void *argument)
{
    const GraphLaunch *launch = argument;
    return !launch->graph->may_block && us_graph_has_turn(launch);
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

static void let_go(GraphLaunch *launch)
{
    if (us_reference_drop(&launch->references)) {
        us_graph_end_own(launch);
        us_replaced_let_go(launch->replaced);
        us_graph_let_go(launch->graph);
        free(launch);
    }
}

/* Of the task. */
static void release_launch(void *argument)
{
    GraphLaunch *launch = argument;
    pthread_mutex_lock(&launch->graph->lock);
    each_external(launch, give_up_record, 0);
    pthread_mutex_unlock(&launch->graph->lock);
    us_graph_end_own(launch); /* before the launch is over: it tells others of tasks that have not run */
    if (launch->is_in_line) {
        us_graph_leave_line(launch);
    }
    let_go(launch);
}

/* NULL: no memory. */
static GraphLaunch *create_launch(GraphState *graph, StreamState *stream)
{
    GraphLaunch *launch = malloc(sizeof *launch + graph->external_count * sizeof *launch->records);
    if (launch == NULL || !us_graph_hold(graph)) {
        free(launch);
        return NULL;
    }
    *launch = (GraphLaunch){.references = 1, .graph = graph, .stream = stream};
    if (!us_graph_copy_own(launch)) {
        let_go(launch);
        return NULL;
    }
    return launch;
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

/* What a launch needs before it is queued: numbers for its records, and what it comes after. The uses of its tasks, allocated. */
static Use *prepare(GraphLaunch *launch, size_t *use_count)
{
    GraphState *graph = launch->graph;
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
    Use *uses = collect_uses(graph, use_count);
    pthread_mutex_unlock(&graph->lock);
    return uses;
}

bool us_graph_launch(Graph *public, Stream *stream, const char *name, bool unrecorded)
{
    GraphState *graph = graph_state(public);
    GraphLaunch *launch = create_launch(graph, stream_state(stream));
    if (launch == NULL) {
        return false;
    }
    us_reference_take(&launch->references);
    const bool awaited = us_stream_mode() == STREAM_MODE_DEFERRED && us_graph_own_is_awaited(launch);
    size_t use_count = 0;
    Use *uses = prepare(launch, &use_count);
    Moment *after = launch->moment;
    Task task = {.work = {name, "graph", 0}, .run = run_launch, .ready = launch_is_ready, .release = release_launch,
                 .takes_place = us_graph_enter_line, .argument = launch, .anywhere = !graph->runs_program, .uses = uses,
                 .use_count = use_count, .after = after, .over = &launch->moment, .unrecorded = unrecorded};
    launch->moment = NULL;
    uint64_t ticket = 0;
    bool queued = us_stream_queue(stream_state(stream), task, &ticket);
    free(uses);
    us_order_let_go(after);
    if (!queued) {
        release_launch(launch);
    } else if (graph->external_count > 0) {
        pthread_mutex_lock(&graph->lock);
        each_external(launch, tell_origin, ticket);
        pthread_mutex_unlock(&graph->lock);
    }
    keep_moment(graph, launch->moment);
    let_go(launch);
    if (queued && awaited) {
        us_stream_allow(stream_state(stream), ticket);
    }
    return queued;
}
