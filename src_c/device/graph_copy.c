/* Copies of graphs, and updates by a copy. */
#include "device/graph_launch.h"

#include <stdlib.h>
#include <string.h>

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* Events are held, bodies shared; graphs that somebody copies have no steps with other things of their own. */
static bool copy_branch(GraphState *graph, const Branch *from)
{
    uint32_t number = us_graph_add_branch(graph, from->dormant);
    if (number == UINT32_MAX) {
        return false;
    }
    for (size_t i = 0; i < from->count; i++) {
        const Step *source = &from->steps[i];
        Step *step = us_graph_add_step(graph, number, source->kind);
        if (step == NULL) {
            return false;
        }
        step->id = source->id;
        step->disabled = source->disabled;
        step->when_run = source->when_run;
        step->target = source->target;
        if (source->body != NULL) {
            us_reference_take(&source->body->references);
            us_graph_put_body(graph, step, source->body);
        }
        if (source->event != NULL && us_event_hold(source->event)) {
            step->event = source->event;
        }
    }
    return true;
}

Graph *us_graph_copy(const Graph *public)
{
    GraphState *from = graph_state(public);
    Graph *made = us_graph_create(public->device, public->from_capture);
    if (made == NULL) {
        return NULL;
    }
    bool copied = true;
    pthread_mutex_lock(&from->lock);
    for (size_t b = 0; b < from->branch_count && copied; b++) {
        copied = copy_branch(graph_state(made), &from->branches[b]);
    }
    graph_state(made)->step_count = from->step_count; /* the ids are the source's */
    pthread_mutex_unlock(&from->lock);
    if (!copied) {
        us_graph_destroy(made);
        return NULL;
    }
    return made;
}

static bool steps_match(const Step *a, const Step *b)
{
    bool tasks = a->body != NULL && b->body != NULL;
    return a->kind == b->kind && a->target.branch == b->target.branch && a->target.step == b->target.step &&
           (tasks ? a->body->task.run == b->body->task.run && strcmp(a->body->task.work.name,
                                                                     b->body->task.work.name) == 0
                  : a->body == b->body);
}

static bool branches_match(const GraphState *a, const GraphState *b)
{
    bool same = a->branch_count == b->branch_count;
    for (size_t i = 0; i < a->branch_count && same; i++) {
        same = a->branches[i].count == b->branches[i].count;
        for (size_t s = 0; s < a->branches[i].count && same; s++) {
            same = steps_match(&a->branches[i].steps[s], &b->branches[i].steps[s]);
        }
    }
    return same;
}

/* ---- updates: launches that are queued or go on keep the tasks that they were launched with ------------------------ */

void us_replaced_let_go(Replaced *replaced)
{
    if (replaced != NULL && us_reference_drop(&replaced->references)) {
        for (size_t i = 0; i < replaced->count; i++) {
            if (replaced->bodies[i] != NULL) {
                us_body_let_go(replaced->bodies[i]);
            }
        }
        free(replaced);
    }
}

Body *us_graph_body_at_launch(const GraphLaunch *launch, const Step *step)
{
    if (us_graph_has_own(launch, step)) {
        return us_graph_own_body(launch, step);
    }
    return launch == NULL || launch->replaced == NULL ? step->body : launch->replaced->bodies[step->id];
}

/* Launches that an earlier update has given something keep that. */
static void keep_replaced(GraphLaunch *launch, void *context)
{
    Replaced *replaced = context;
    if (launch->replaced == NULL) {
        us_reference_take(&replaced->references);
        launch->replaced = replaced;
    }
}

/* With the graph's lock held. The bodies that the steps had go to `replaced`. */
static void take_bodies(GraphState *graph, const GraphState *copy, Replaced *replaced)
{
    for (size_t b = 0; b < graph->branch_count; b++) {
        for (size_t s = 0; s < graph->branches[b].count; s++) {
            Step *step = &graph->branches[b].steps[s];
            Step *other = &copy->branches[b].steps[s];
            replaced->bodies[step->id] = step->body;
            step->body = other->body;
            other->body = NULL;
        }
    }
}

GraphUpdate us_graph_update(Graph *public, const Graph *source)
{
    GraphState *graph = graph_state(public), *copy = graph_state(us_graph_copy(source));
    Replaced *replaced = calloc(1, sizeof *replaced + us_graph_steps(public) * sizeof *replaced->bodies);
    GraphUpdate update = GRAPH_NO_MEMORY;
    if (copy != NULL && replaced != NULL) {
        atomic_init(&replaced->references, 1);
        pthread_mutex_lock(&graph->lock);
        update = branches_match(graph, copy) ? GRAPH_UPDATED : GRAPH_UNLIKE;
        if (update == GRAPH_UPDATED) {
            replaced->count = graph->step_count;
            take_bodies(graph, copy, replaced);
            graph->compared = false; /* other tasks may use other bytes */
            us_graph_each_launch(graph, keep_replaced, replaced);
        }
        pthread_mutex_unlock(&graph->lock);
        us_replaced_let_go(replaced);
    } else {
        free(replaced);
    }
    if (copy != NULL) {
        us_graph_destroy(&copy->public);
    }
    return update;
}
