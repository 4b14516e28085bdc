/* Graphs built by hand: streams bound to them, and steps that decide how a run goes on. */
#include "device/graph_internal.h"

#include <stdlib.h>

CaptureFault us_graph_bind(Graph *public, Stream *stream, bool starts)
{
    GraphState *graph = graph_state(public);
    us_recorder_lock();
    CaptureFault fault = us_recorder_obstacle(stream_state(stream));
    if (fault == CAPTURE_OK && us_graph_hold(graph)) {
        pthread_mutex_lock(&graph->lock);
        graph->recording = true;
        uint32_t branch = us_graph_add_branch(graph, !starts);
        pthread_mutex_unlock(&graph->lock);
        Recorder recorder = {.kind = RECORDER_BUILD, .graph = graph, .branch = branch};
        fault = branch == UINT32_MAX ? CAPTURE_FAULT_NO_MEMORY : us_recorder_attach(stream_state(stream), &recorder);
        if (fault != CAPTURE_OK) {
            us_graph_let_go(graph);
        }
    }
    us_recorder_unlock();
    return fault;
}

/* With the recorder lock held: the stream's place in a graph that is built; NULL: none. */
static const Recorder *building(const Stream *stream)
{
    const Recorder *recorder = us_recorder_of(stream_state(stream));
    return recorder != NULL && recorder->kind == RECORDER_BUILD ? recorder : NULL;
}

CaptureFault us_graph_unbind(Graph *public, Stream *stream)
{
    GraphState *graph = graph_state(public);
    us_recorder_lock();
    const Recorder *recorder = building(stream);
    bool bound = recorder != NULL && recorder->graph == graph;
    if (bound) {
        us_recorder_detach(stream_state(stream));
        us_graph_let_go(graph);
    }
    us_recorder_unlock();
    return bound ? CAPTURE_OK : CAPTURE_FAULT_IDLE;
}

void us_graph_close(Graph *public)
{
    us_recorder_lock();
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    graph->recording = false;
    pthread_mutex_unlock(&graph->lock);
    us_recorder_unlock();
}

Graph *us_graph_of_bound(const Stream *stream)
{
    us_recorder_lock();
    const Recorder *recorder = building(stream);
    Graph *graph = recorder != NULL ? &recorder->graph->public : NULL;
    us_recorder_unlock();
    return graph;
}

void us_graph_clear_stream(Stream *stream)
{
    us_recorder_lock();
    const Recorder *recorder = building(stream);
    GraphState *graph = recorder != NULL ? recorder->graph : NULL;
    if (graph != NULL) {
        pthread_mutex_lock(&graph->lock);
        us_graph_empty_branch(&graph->branches[recorder->branch]);
        graph->recording = true;
        pthread_mutex_unlock(&graph->lock);
    }
    us_recorder_unlock();
}

bool us_graph_has_bound(const Graph *public, const Stream *stream)
{
    if (!us_stream_is_recorded(stream)) {
        return false;
    }
    us_recorder_lock();
    const Recorder *recorder = building(stream);
    bool bound = recorder != NULL && (public == NULL || recorder->graph == graph_state(public));
    us_recorder_unlock();
    return bound;
}

bool us_stream_is_closed(const Stream *stream)
{
    if (!us_stream_is_recorded(stream)) {
        return false;
    }
    us_recorder_lock();
    const Recorder *recorder = building(stream);
    bool closed = recorder != NULL && !us_recorder_takes_steps(recorder);
    us_recorder_unlock();
    return closed;
}

/* ---- steps that decide ---- */

/* A step at the end of a bound stream's branch. `control` becomes the graph's when the step is there. */
static CaptureFault add_control(const Recorder *recorder, StepKind kind, Place target, void *control)
{
    if (recorder == NULL) {
        return CAPTURE_FAULT_IDLE;
    }
    GraphState *graph = recorder->graph;
    pthread_mutex_lock(&graph->lock);
    bool open = us_recorder_takes_steps(recorder);
    Step *step = open ? us_graph_add_step(graph, recorder->branch, kind) : NULL;
    if (step != NULL) {
        step->target = target;
        step->control = control;
    }
    pthread_mutex_unlock(&graph->lock);
    return step != NULL ? CAPTURE_OK : open ? CAPTURE_FAULT_NO_MEMORY : CAPTURE_FAULT_INVALID;
}

static CaptureFault add_branching(Stream *stream, Stream *started, StepKind kind, void *control)
{
    us_recorder_lock();
    const Recorder *from = building(stream);
    const Recorder *to = building(started);
    bool together = from != NULL && to != NULL && from->graph == to->graph;
    CaptureFault fault = together ? add_control(from, kind, (Place){to->branch, 0}, control) : CAPTURE_FAULT_IDLE;
    us_recorder_unlock();
    if (fault != CAPTURE_OK) {
        free(control);
    }
    return fault;
}

CaptureFault us_graph_add_start(Stream *stream, Stream *started)
{
    return add_branching(stream, started, STEP_START, NULL);
}

CaptureFault us_graph_add_switch(Stream *stream, Stream *started, Comparison comparison, const void *left,
                                 const void *right, bool wide)
{
    Switch *control = malloc(sizeof *control);
    if (control == NULL) {
        return CAPTURE_FAULT_NO_MEMORY;
    }
    *control = (Switch){comparison, left, right, wide};
    return add_branching(stream, started, STEP_SWITCH, control);
}

CaptureFault us_graph_add_end(Graph *graph, Stream *stream)
{
    us_recorder_lock();
    const Recorder *recorder = building(stream);
    bool bound = recorder != NULL && recorder->graph == graph_state(graph);
    CaptureFault fault = bound ? add_control(recorder, STEP_END, (Place){0}, NULL) : CAPTURE_FAULT_IDLE;
    us_recorder_unlock();
    return fault;
}

/* ---- labels ---- */

struct Label {
    void *handle;
    Device *device;
    GraphState *graph; /* where it was set; compared only. NULL: nowhere yet */
    Place place;
};

Label *us_label_create(Device *device)
{
    Label *label = calloc(1, sizeof *label);
    if (label == NULL) {
        return NULL;
    }
    label->device = device;
    label->handle = us_handle_create(HANDLE_LABEL, label);
    if (label->handle == NULL) {
        free(label);
        return NULL;
    }
    return label;
}

bool us_label_destroy(void *handle)
{
    return us_handle_release(handle, HANDLE_LABEL);
}

Label *us_label_of_handle(const void *handle)
{
    return us_handle_object(handle, HANDLE_LABEL);
}

void *us_label_handle(const Label *label)
{
    return label->handle;
}

/* A jump may come before its labels: its targets are found by the labels' handles when the label is set. */
static void point_jumps(GraphState *graph, const Label *label)
{
    for (size_t b = 0; b < graph->branch_count; b++) {
        for (size_t s = 0; s < graph->branches[b].count; s++) {
            Step *step = &graph->branches[b].steps[s];
            Jump *jump = step->kind == STEP_JUMP ? step->control : NULL;
            for (size_t t = 0; jump != NULL && t < jump->count; t++) {
                if (jump->labels[t] == label->handle) {
                    jump->targets[t] = label->place;
                }
            }
        }
    }
}

CaptureFault us_label_set(Label *label, Stream *stream)
{
    us_recorder_lock();
    const Recorder *recorder = building(stream);
    CaptureFault fault = label->graph != NULL ? CAPTURE_FAULT_BUSY : add_control(recorder, STEP_LABEL, (Place){0},
                                                                                 NULL);
    if (fault == CAPTURE_OK) {
        label->graph = recorder->graph;
        pthread_mutex_lock(&recorder->graph->lock);
        label->place = (Place){recorder->branch, (uint32_t)recorder->graph->branches[recorder->branch].count - 1};
        point_jumps(recorder->graph, label);
        pthread_mutex_unlock(&recorder->graph->lock);
    }
    us_recorder_unlock();
    return fault;
}

CaptureFault us_graph_add_jump(Stream *stream, const void *index, Label *const *labels, size_t count)
{
    static const Place NOWHERE = {UINT32_MAX, 0};
    Jump *jump = malloc(sizeof *jump + count * (sizeof *jump->targets));
    void **handles = malloc(count * sizeof *handles);
    if (jump == NULL || handles == NULL) {
        free(jump);
        free(handles);
        return CAPTURE_FAULT_NO_MEMORY;
    }
    us_recorder_lock();
    const Recorder *recorder = building(stream);
    *jump = (Jump){.index = index, .labels = handles, .count = count};
    for (size_t i = 0; i < count; i++) {
        handles[i] = labels[i]->handle;
        jump->targets[i] = recorder != NULL && labels[i]->graph == recorder->graph ? labels[i]->place : NOWHERE;
    }
    CaptureFault fault = add_control(recorder, STEP_JUMP, (Place){0}, jump);
    us_recorder_unlock();
    if (fault != CAPTURE_OK) {
        free(jump);
        free(handles);
    }
    return fault;
}

/* ---- choices between graphs ---- */

CaptureFault us_graph_add_choice(Stream *stream, Choosing choosing, const void *number, Graph *const *graphs,
                                 size_t count)
{
    Choice *choice = malloc(sizeof *choice + count * sizeof(GraphState *));
    if (choice == NULL) {
        return CAPTURE_FAULT_NO_MEMORY;
    }
    *choice = (Choice){.choosing = choosing, .number = number, .count = count};
    us_recorder_lock();
    const Recorder *recorder = us_recorder_of(stream_state(stream));
    GraphState *graph = recorder != NULL && recorder->kind == RECORDER_CAPTURE ? recorder->graph : NULL;
    GraphState **children = graph != NULL ? realloc(graph->children, (graph->child_count + count) * sizeof *children)
        : NULL;
    CaptureFault fault = graph == NULL ? CAPTURE_FAULT_IDLE : children == NULL ? CAPTURE_FAULT_NO_MEMORY : CAPTURE_OK;
    if (children != NULL) {
        graph->children = children;
        fault = add_control(recorder, STEP_CHOICE, (Place){0}, choice);
    }
    for (size_t i = 0; fault == CAPTURE_OK && i < count; i++) {
        choice->graphs[i] = children[graph->child_count++] = graph_state(graphs[i]);
        graph_state(graphs[i])->parent = graph;
    }
    us_recorder_unlock();
    if (fault != CAPTURE_OK) {
        free(choice);
    }
    return fault;
}

bool us_graph_initialise(Graph *public, void *number, uint64_t value)
{
    GraphState *graph = graph_state(public);
    pthread_mutex_lock(&graph->lock);
    Initial *initials = realloc(graph->initials, (graph->initial_count + 1) * sizeof *initials);
    if (initials != NULL) {
        graph->initials = initials;
        initials[graph->initial_count++] = (Initial){number, value};
    }
    pthread_mutex_unlock(&graph->lock);
    return initials != NULL;
}
