/* Graphs: their steps and what can be told of them. Copies are in graph_copy.c, runs in graph_run.c, recording in
 * capture.c. */
#include "device/graph_internal.h"
#include "device/order.h"

#include "report/grace.h"
#include "report/grow.h"

#include <stdlib.h>
#include <string.h>

/* ---- life -------------------------------------------------------------------------------------------------------- */

Body *us_body_create(const Task *task)
{
    Body *body = malloc(sizeof *body + task->use_count * sizeof *body->uses);
    if (body != NULL) {
        atomic_init(&body->references, 1);
        body->task = *task;
        body->task.uses = body->uses;
        if (task->use_count > 0) {
            memcpy(body->uses, task->uses, task->use_count * sizeof *body->uses);
        }
    }
    return body;
}

void us_body_let_go(Body *body)
{
    if (us_reference_drop(&body->references)) {
        if (body->task.release != NULL) {
            body->task.release(body->task.argument);
        }
        free(body);
    }
}

bool us_graph_hold(GraphState *graph)
{
    return us_reference_take(&graph->references);
}

static void end_step(Step *step)
{
    if (step->body != NULL) {
        us_body_let_go(step->body);
    }
    if (step->event != NULL) {
        us_event_let_go(step->event);
    }
    us_handle_release(step->handle, HANDLE_GRAPH_STEP);
    if (step->kind == STEP_JUMP) {
        free(((Jump *)step->control)->labels);
    }
    free(step->control);
    for (int n = 0; n < STEP_NOTE_COUNT; n++) {
        free(step->notes[n]);
    }
}

void us_graph_empty_branch(Branch *branch)
{
    for (size_t s = 0; s < branch->count; s++) {
        end_step(&branch->steps[s]);
    }
    branch->count = 0;
}

static void end_graph(void *argument)
{
    GraphState *graph = argument;
    for (size_t b = 0; b < graph->branch_count; b++) {
        us_graph_empty_branch(&graph->branches[b]);
        us_handle_release(graph->branches[b].handle, HANDLE_GRAPH_BRANCH);
        free(graph->branches[b].steps);
    }
    for (size_t c = 0; c < graph->child_count; c++) {
        us_graph_destroy(&graph->children[c]->public);
    }
    us_order_let_go(graph->over);
    free(graph->owned);
    free(graph->children);
    free(graph->initials);
    free(graph->branches);
    free(graph->public.vendor);
    pthread_mutex_destroy(&graph->lock);
    pthread_mutex_destroy(&graph->line_lock);
    pthread_cond_destroy(&graph->line_moved);
    free(graph);
}

/* The objects behind the handles stay: an update that has begun uses its group. */
static void end_owned_handles(GraphState *graph)
{
    pthread_mutex_lock(&graph->lock);
    for (size_t o = 0; o < graph->owned_count; o++) {
        Owned *owned = &graph->owned[o];
        owned->object = owned->object != NULL ? owned->object : us_handle_end(owned->handle, owned->kind);
    }
    pthread_mutex_unlock(&graph->lock);
}

static void end_owned(const GraphState *graph)
{
    for (size_t o = 0; o < graph->owned_count; o++) {
        if (graph->owned[o].object != NULL) {
            us_grace_bury(free, graph->owned[o].object);
        }
        if (graph->owned[o].memory != NULL) {
            us_memory_free(graph->public.device->platform, MEMORY_DEVICE, graph->owned[o].memory, NULL);
        }
    }
}

/* What the program can see of it ends at once; a burial may take until the next one. */
void us_graph_let_go(GraphState *graph)
{
    if (us_reference_drop(&graph->references)) {
        end_owned_handles(graph);
        end_owned(graph);
        us_grace_bury(end_graph, graph);
    }
}

Graph *us_graph_create(Device *device, bool from_capture)
{
    static _Atomic uint32_t next_id = 0;
    GraphState *graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        return NULL;
    }
    graph->public.device = device;
    graph->public.from_capture = from_capture;
    graph->public.id = atomic_fetch_add(&next_id, 1);
    atomic_init(&graph->references, 1);
    pthread_mutex_init(&graph->lock, NULL);
    pthread_mutex_init(&graph->line_lock, NULL);
    us_condition_init(&graph->line_moved);
    graph->public.handle = us_handle_create(HANDLE_GRAPH, graph);
    if (graph->public.handle == NULL) {
        end_graph(graph);
        return NULL;
    }
    return &graph->public;
}

bool us_graph_destroy(Graph *graph)
{
    bool alive = us_handle_end(graph->handle, HANDLE_GRAPH) != NULL;
    if (alive) {
        end_owned_handles(graph_state(graph));
        us_graph_let_go(graph_state(graph));
    }
    return alive;
}

Graph *us_graph_of_handle(const void *handle)
{
    GraphState *graph = us_handle_object(handle, HANDLE_GRAPH);
    return graph == NULL ? NULL : &graph->public;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

uint32_t us_graph_add_branch(GraphState *graph, bool dormant)
{
    Branch *branches = realloc(graph->branches, (graph->branch_count + 1) * sizeof *branches);
    if (branches == NULL) {
        return UINT32_MAX;
    }
    graph->branches = branches;
    branches[graph->branch_count] = (Branch){.dormant = dormant};
    return (uint32_t)graph->branch_count++;
}

Step *us_graph_add_step(GraphState *graph, uint32_t number, StepKind kind)
{
    Branch *branch = &graph->branches[number];
    Step *steps = us_grown(branch->steps, branch->count, &branch->capacity, sizeof *steps);
    if (steps == NULL) {
        return NULL;
    }
    branch->steps = steps;
    Step *step = &branch->steps[branch->count++];
    *step = (Step){.kind = kind, .id = graph->step_count++};
    if (kind == STEP_EXTERNAL_RECORD || kind == STEP_EXTERNAL_WAIT) {
        step->external = graph->external_count++;
        graph->may_block |= kind == STEP_EXTERNAL_WAIT;
    }
    return step;
}

void us_graph_put_body(GraphState *graph, Step *step, Body *body)
{
    step->body = body;
    graph->runs_program |= !body->task.anywhere;
    graph->may_block |= body->task.ready != NULL;
    graph->copies |= body->task.copying != NULL;
}

bool us_graph_owns(Graph *public, void *memory, void *handle, HandleKind kind)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    Owned *owned = realloc(graph->owned, (graph->owned_count + 1) * sizeof *owned);
    if (owned != NULL) {
        graph->owned = owned;
        owned[graph->owned_count++] = (Owned){memory, handle, kind, NULL};
    }
    pthread_mutex_unlock(&graph->lock);
    return owned != NULL;
}

/* With the lock held. */
static Step *step_at(const GraphState *graph, uint32_t branch, size_t index)
{
    return branch < graph->branch_count && index < graph->branches[branch].count ? &graph->branches[branch].steps[index]
                                                                                 : NULL;
}

size_t us_graph_branches(const Graph *public)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    size_t count = graph->branch_count;
    pthread_mutex_unlock(&graph->lock);
    return count;
}

size_t us_graph_steps(const Graph *public)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    size_t count = graph->step_count;
    pthread_mutex_unlock(&graph->lock);
    return count;
}

size_t us_graph_branch_steps(const Graph *public, uint32_t branch)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    size_t count = branch < graph->branch_count ? graph->branches[branch].count : 0;
    pthread_mutex_unlock(&graph->lock);
    return count;
}

/* With the lock held. */
static StepInfo info_of(const GraphState *graph, uint32_t branch, const Step *step)
{
    StepInfo info = {.id = step->id, .branch = branch, .kind = step->kind, .disabled = step->disabled,
                     .group = step->group};
    if (step->body != NULL) {
        info.work = step->body->task.work;
        info.run = step->body->task.run;
        info.argument = step->body->task.argument;
    }
    if (step->event != NULL) {
        info.event = us_event_public(step->event)->handle;
    }
    const Step *target = step->kind == STEP_WAIT ? step_at(graph, step->target.branch, step->target.step) : NULL;
    info.target = target != NULL ? target->id : 0;
    for (int n = 0; n < STEP_NOTE_COUNT; n++) {
        info.notes[n] = step->notes[n];
        info.note_sizes[n] = step->note_sizes[n];
    }
    return info;
}

bool us_graph_step(const Graph *public, uint32_t branch, size_t index, StepInfo *info)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    const Step *step = step_at(graph, branch, index);
    if (step != NULL) {
        *info = info_of(graph, branch, step);
    }
    pthread_mutex_unlock(&graph->lock);
    return step != NULL;
}

bool us_graph_annotate(GraphState *graph, Place place, StepNote note, const void *bytes, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    pthread_mutex_lock(&graph->lock);
    Step *step = step_at(graph, place.branch, place.step);
    char *old = copy;
    if (step != NULL) {
        old = step->notes[note];
        step->notes[note] = copy;
        step->note_sizes[note] = size;
    }
    pthread_mutex_unlock(&graph->lock);
    if (old != NULL) {
        us_grace_bury(free, old); /* other calls may show it now */
    }
    return true;
}

/* ---- handles of branches and steps: they end with the graph ------------------------------------------------------ */

typedef struct Position {
    GraphState *graph;
    Place place;
} Position;

/* The handle in the cell, made when there is none yet. */
static void *position_handle(void **cell, HandleKind kind, GraphState *graph, uint32_t branch, uint32_t step)
{
    Position *position = *cell == NULL ? malloc(sizeof *position) : NULL;
    if (position != NULL) {
        *position = (Position){graph, {branch, step}};
        *cell = us_handle_create(kind, position);
        if (*cell == NULL) {
            free(position);
        }
    }
    return *cell;
}

void *us_graph_branch_handle(Graph *public, uint32_t branch)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    void *handle = branch < graph->branch_count
                       ? position_handle(&graph->branches[branch].handle, HANDLE_GRAPH_BRANCH, graph, branch, 0)
                       : NULL;
    pthread_mutex_unlock(&graph->lock);
    return handle;
}

void *us_graph_step_handle(Graph *public, uint32_t branch, size_t index)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    Step *step = step_at(graph, branch, index);
    void *handle = step != NULL ? position_handle(&step->handle, HANDLE_GRAPH_STEP, graph, branch, (uint32_t)index)
        : NULL;
    pthread_mutex_unlock(&graph->lock);
    return handle;
}

Graph *us_graph_of_branch_handle(const void *handle, uint32_t *branch)
{
    const Position *position = us_handle_object(handle, HANDLE_GRAPH_BRANCH);
    if (position == NULL) {
        return NULL;
    }
    *branch = position->place.branch;
    return &position->graph->public;
}

Graph *us_graph_of_step_handle(const void *handle, StepInfo *info)
{
    const Position *position = us_handle_object(handle, HANDLE_GRAPH_STEP);
    bool found = position != NULL &&
                 us_graph_step(&position->graph->public, position->place.branch, position->place.step, info);
    return found ? &position->graph->public : NULL;
}

bool us_graph_step_disable(const void *handle)
{
    const Position *position = us_handle_object(handle, HANDLE_GRAPH_STEP);
    if (position == NULL) {
        return false;
    }
    pthread_mutex_lock(&position->graph->lock);
    Step *step = step_at(position->graph, position->place.branch, position->place.step);
    if (step != NULL) { /* another thread may just have cleared the branch */
        step->disabled = true;
    }
    pthread_mutex_unlock(&position->graph->lock);
    return step != NULL;
}

bool us_graph_step_replace(const void *handle, void (*release)(void *argument), void *argument)
{
    const Position *position = us_handle_object(handle, HANDLE_GRAPH_STEP);
    GraphState *graph = position != NULL ? position->graph : NULL;
    if (graph == NULL) {
        return false;
    }
    pthread_mutex_lock(&graph->lock);
    Step *step = step_at(graph, position->place.branch, position->place.step);
    Body *old = step != NULL ? step->body : NULL;
    Body *body = NULL;
    if (old != NULL) {
        Task task = old->task;
        task.release = release;
        task.argument = argument;
        body = us_body_create(&task);
        step->body = body != NULL ? body : old;
    }
    pthread_mutex_unlock(&graph->lock);
    if (body != NULL) {
        us_body_let_go(old);
    }
    return body != NULL;
}

/* ---- its state -------------------------------------------------------------------------------------------------- */

bool us_graph_is_recording(const Graph *public)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    bool recording = graph->recording;
    pthread_mutex_unlock(&graph->lock);
    return recording;
}

bool us_graph_is_running(const Graph *public)
{
    return atomic_load(&graph_state(public)->launches) != NULL;
}

Graph *us_graph_parent(const Graph *public)
{
    GraphState *parent = graph_state(public)->parent;
    return parent == NULL ? NULL : &parent->public;
}
