/* Tasks that each launch of a graph has for itself, since they take turns with others in the order of what is queued. They are
 * not looked for in launches that are steps of other graphs: the platform that has such tasks has no such steps. */
#include "device/graph_launch.h"

#include <stdlib.h>

/* Whether a graph that may be chosen has such tasks, or chooses between others that have. */
static bool child_takes_turns(const GraphState *graph)
{
    bool found = false;
    for (size_t c = 0; c < graph->child_count && !found; c++) {
        found = graph->children[c]->copies || child_takes_turns(graph->children[c]);
    }
    return found;
}

/* Whether the run decides how often something runs that takes turns: nobody can draw them at the launch. */
static bool step_decides(const GraphState *graph, const Branch *branch, const Step *step)
{
    switch (step->kind) {
    case STEP_SWITCH:
    case STEP_JUMP:
        return true;
    case STEP_END:
        return graph->branch_count > 1 || step != &branch->steps[branch->count - 1];
    default:
        return false;
    }
}

static bool decides(const GraphState *graph)
{
    bool found = child_takes_turns(graph);
    for (size_t b = 0; b < graph->branch_count && !found; b++) {
        const Branch *branch = &graph->branches[b];
        found = branch->dormant;
        for (size_t s = 0; s < branch->count && !found; s++) {
            found = step_decides(graph, branch, &branch->steps[s]);
        }
    }
    return found;
}

/* With the graph's lock held: the tasks that are to be copied. */
static void hold_originals(GraphLaunch *launch)
{
    const GraphState *graph = launch->graph;
    for (size_t b = 0; b < graph->branch_count; b++) {
        for (size_t s = 0; s < graph->branches[b].count; s++) {
            const Step *step = &graph->branches[b].steps[s];
            if (step->body != NULL && step->body->task.copying != NULL && !step->disabled) {
                us_reference_take(&step->body->references);
                launch->own[step->id].original = step->body;
            }
        }
    }
}

/* NULL: no memory. */
static Body *copy_body(const Body *original)
{
    Task task = original->task;
    task.uses = NULL;
    task.use_count = 0;
    task.argument = task.copying->copy(task.argument);
    Body *copy = task.argument != NULL ? us_body_create(&task) : NULL;
    if (copy == NULL && task.argument != NULL) {
        task.release(task.argument);
    }
    return copy;
}

static bool copy_originals(GraphLaunch *launch)
{
    bool copied = true;
    for (size_t i = 0; i < launch->own_count && copied; i++) {
        OwnTask *own = &launch->own[i];
        own->copy = own->original != NULL ? copy_body(own->original) : NULL;
        copied = own->original == NULL || own->copy != NULL;
    }
    return copied;
}

bool us_graph_copy_own(GraphLaunch *launch)
{
    GraphState *graph = launch->graph;
    pthread_mutex_lock(&graph->lock);
    const bool copies = graph->copies && !decides(graph);
    launch->own = copies ? calloc(graph->step_count, sizeof *launch->own) : NULL;
    if (launch->own != NULL) {
        launch->own_count = graph->step_count;
        hold_originals(launch);
    }
    pthread_mutex_unlock(&graph->lock);
    return !copies || (launch->own != NULL && copy_originals(launch));
}

bool us_graph_has_own(const GraphLaunch *launch, const Step *step)
{
    return launch != NULL && step->id < launch->own_count && launch->own[step->id].copy != NULL;
}

static void let_go(OwnTask *own)
{
    if (own->copy != NULL) {
        us_body_let_go(own->copy);
    }
    if (own->original != NULL) {
        us_body_let_go(own->original);
    }
}

/* Without memory the new task runs without a turn, and others are told that the old one has not. */
Body *us_graph_own_body(const GraphLaunch *launch, const Step *step)
{
    OwnTask *own = &launch->own[step->id];
    if (step->body == own->original) {
        return own->copy;
    }
    Body *copy = step->body->task.copying != NULL ? copy_body(step->body) : NULL;
    if (copy == NULL) {
        return step->body;
    }
    copy->task.copying->inherit(copy->task.argument, own->copy->task.argument);
    let_go(own);
    us_reference_take(&step->body->references);
    *own = (OwnTask){step->body, copy};
    return copy;
}

void us_graph_draw_own(const GraphLaunch *launch)
{
    for (size_t i = 0; i < launch->own_count; i++) {
        const Body *copy = launch->own[i].copy;
        if (copy != NULL) {
            copy->task.copying->draw(copy->task.argument);
        }
    }
}

bool us_graph_own_is_awaited(const GraphLaunch *launch)
{
    bool awaited = false;
    for (size_t i = 0; i < launch->own_count && !awaited; i++) {
        const Body *copy = launch->own[i].copy;
        awaited = copy != NULL && copy->task.copying->awaited(copy->task.argument);
    }
    return awaited;
}

void us_graph_end_own(GraphLaunch *launch)
{
    for (size_t i = 0; i < launch->own_count; i++) {
        let_go(&launch->own[i]);
    }
    free(launch->own);
    launch->own = NULL;
    launch->own_count = 0;
}
