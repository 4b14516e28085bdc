/* Recording: a stream's work, and that of the streams that join it, becomes a graph. */
#include "device/capture_state.h"

#include <stdlib.h>
#include <unistd.h>

static Capture *captures;
static _Atomic int capture_count;
static _Thread_local CaptureMode mode_of_thread = CAPTURE_GLOBAL;

/* ---- with the lock held ---- */

void us_capture_let_go(Capture *capture)
{
    if (us_reference_drop(&capture->references)) {
        if (capture->graph != NULL) {
            us_graph_let_go(capture->graph);
        }
        free(capture->streams);
        free(capture);
    }
}

Capture *us_capture_of(const StreamState *stream)
{
    const Recorder *recorder = us_recorder_of(stream);
    return recorder != NULL && recorder->kind == RECORDER_CAPTURE ? recorder->capture : NULL;
}

CaptureFault us_capture_join(Capture *capture, StreamState *stream)
{
    const CaptureFault obstacle = us_recorder_obstacle(stream);
    if (obstacle != CAPTURE_OK) {
        return obstacle;
    }
    StreamState **streams = realloc(capture->streams, (capture->stream_count + 1) * sizeof *streams);
    if (streams == NULL) {
        return CAPTURE_FAULT_NO_MEMORY;
    }
    capture->streams = streams;
    pthread_mutex_lock(&capture->graph->lock);
    uint32_t branch = us_graph_add_branch(capture->graph, false);
    pthread_mutex_unlock(&capture->graph->lock);
    if (branch == UINT32_MAX || !us_stream_hold(stream)) {
        return CAPTURE_FAULT_NO_MEMORY;
    }
    Recorder recorder = {.kind = RECORDER_CAPTURE, .capture = capture, .graph = capture->graph, .branch = branch};
    CaptureFault fault = us_recorder_attach(stream, &recorder);
    if (fault != CAPTURE_OK) {
        us_stream_let_go(stream);
        return fault;
    }
    streams[capture->stream_count++] = stream;
    us_reference_take(&capture->references);
    return CAPTURE_OK;
}

static void unlist(Capture *capture)
{
    for (Capture **link = &captures; *link != NULL; link = &(*link)->next) {
        if (*link == capture) {
            *link = capture->next;
            atomic_fetch_sub(&capture_count, 1);
            return;
        }
    }
}

/* No stream records any longer. Drops the reference of the list. Events may hold the capture until they end, and the graph
 * holds the events that it records: hence the graph is let go of here. */
static void close_capture(Capture *capture)
{
    GraphState *graph = capture->graph;
    capture->over = true;
    unlist(capture);
    for (size_t i = 0; i < capture->stream_count; i++) {
        us_recorder_detach(capture->streams[i]);
        us_stream_let_go(capture->streams[i]);
        us_reference_drop(&capture->references); /* never the last: the list's is left */
    }
    capture->stream_count = 0;
    pthread_mutex_lock(&graph->lock);
    graph->recording = false;
    pthread_mutex_unlock(&graph->lock);
    capture->graph = NULL;
    us_graph_let_go(graph);
    us_capture_let_go(capture);
}

/* ---- begin and end ---- */

CaptureFault us_capture_begin(Stream *public, Graph *into, CaptureMode mode)
{
    StreamState *stream = stream_state(public);
    Graph *graph = into != NULL ? into : us_graph_create(stream->device, true);
    Capture *capture = calloc(1, sizeof *capture);
    if (graph == NULL || capture == NULL || !us_graph_hold(graph_state(graph))) {
        free(capture);
        if (into == NULL && graph != NULL) {
            us_graph_destroy(graph);
        }
        return CAPTURE_FAULT_NO_MEMORY;
    }
    atomic_init(&capture->references, 1);
    capture->mode = mode;
    capture->thread = gettid();
    capture->platform = stream->device->platform;
    capture->origin = stream;
    capture->graph = graph_state(graph);
    capture->child = into != NULL;
    us_recorder_lock();
    bool busy = into != NULL && us_graph_is_recording(into);
    CaptureFault fault = busy ? CAPTURE_FAULT_BUSY : us_capture_join(capture, stream);
    if (fault == CAPTURE_OK) {
        capture->graph->recording = true;
        capture->next = captures;
        captures = capture;
        atomic_fetch_add(&capture_count, 1);
    } else {
        us_capture_let_go(capture);
    }
    us_recorder_unlock();
    if (fault != CAPTURE_OK && into == NULL) {
        us_graph_destroy(graph);
    }
    return fault;
}

/* Raises what the origin's end covers by what the covered part of a branch waits for. True: something was raised. */
static bool cover(const GraphState *graph, size_t *covered, size_t branch)
{
    bool raised = false;
    for (size_t s = 0; s < covered[branch]; s++) {
        const Step *step = &graph->branches[branch].steps[s];
        size_t *target = step->kind == STEP_WAIT ? &covered[step->target.branch] : NULL;
        if (target != NULL && *target <= step->target.step) {
            *target = step->target.step + 1;
            raised = true;
        }
    }
    return raised;
}

/* Whether all steps of all branches are waited for when the first branch has ended. */
static bool is_joined(const GraphState *graph)
{
    size_t *covered = calloc(graph->branch_count, sizeof *covered);
    if (covered == NULL) {
        return false;
    }
    covered[0] = graph->branches[0].count;
    for (bool raised = true; raised;) {
        raised = false;
        for (size_t b = 0; b < graph->branch_count; b++) {
            raised |= cover(graph, covered, b);
        }
    }
    bool joined = true;
    for (size_t b = 0; b < graph->branch_count; b++) {
        joined &= covered[b] == graph->branches[b].count && (b == 0 || covered[b] > 0);
    }
    free(covered);
    return joined;
}

static bool has_open_child(const Capture *capture)
{
    for (const Capture *other = captures; other != NULL; other = other->next) {
        if (other->graph->parent == capture->graph) {
            return true;
        }
    }
    return false;
}

static CaptureFault fault_of_end(const StreamState *stream, const Capture *capture)
{
    if (capture == NULL) {
        return CAPTURE_FAULT_IDLE;
    }
    if (capture->origin != stream) {
        return CAPTURE_FAULT_ORIGIN;
    }
    if (capture->mode != CAPTURE_RELAXED && capture->thread != gettid()) {
        return CAPTURE_FAULT_THREAD;
    }
    if (has_open_child(capture)) {
        return CAPTURE_FAULT_CHILD;
    }
    if (capture->invalid) {
        return CAPTURE_FAULT_INVALID;
    }
    if (capture->group_open) {
        return CAPTURE_FAULT_GROUP;
    }
    return is_joined(capture->graph) ? CAPTURE_OK : CAPTURE_FAULT_UNJOINED;
}

CaptureFault us_capture_end(Stream *public, Graph **graph)
{
    StreamState *stream = stream_state(public);
    us_recorder_lock();
    Capture *capture = us_capture_of(stream);
    CaptureFault fault = fault_of_end(stream, capture);
    bool over = fault == CAPTURE_OK || fault == CAPTURE_FAULT_INVALID || fault == CAPTURE_FAULT_GROUP ||
                fault == CAPTURE_FAULT_UNJOINED;
    GraphState *made = over ? capture->graph : NULL;
    bool child = over && capture->child;
    if (over) {
        close_capture(capture);
    }
    us_recorder_unlock();
    if (fault == CAPTURE_OK) {
        *graph = &made->public;
    } else if (over && !child) {
        us_graph_destroy(&made->public);
    }
    return fault;
}

void us_recorder_stream_ends(StreamState *stream)
{
    us_recorder_lock();
    stream->takes_no_recorder = true; /* a recording that another thread begins from now on would never end */
    us_recorder_unlock();
    us_group_update_forget(stream);
    us_recorder_lock();
    Recorder *recorder = us_recorder_of(stream);
    Capture *capture = us_capture_of(stream);
    GraphState *orphan = NULL;
    if (capture != NULL && capture->origin == stream) { /* nobody can end it any more */
        orphan = capture->child ? NULL : capture->graph;
        close_capture(capture);
    } else if (capture != NULL) {
        capture->invalid = true;
    } else if (recorder != NULL && recorder->kind == RECORDER_BUILD) {
        GraphState *graph = recorder->graph;
        us_recorder_detach(stream);
        us_graph_let_go(graph);
    }
    us_recorder_unlock();
    if (orphan != NULL) {
        us_graph_destroy(&orphan->public);
    }
}

/* ---- questions ---- */

CaptureStatus us_capture_status(const Stream *public, Graph **graph)
{
    const StreamState *stream = stream_state(public);
    if (us_recorder_of(stream) == NULL) {
        return CAPTURE_NONE;
    }
    us_recorder_lock();
    const Capture *capture = us_capture_of(stream);
    CaptureStatus status = capture == NULL ? CAPTURE_NONE : capture->invalid ? CAPTURE_INVALIDATED : CAPTURE_ACTIVE;
    if (capture != NULL && graph != NULL) {
        *graph = &capture->graph->public;
    }
    us_recorder_unlock();
    return status;
}

bool us_stream_is_recorded(const Stream *stream)
{
    return us_recorder_of(stream_state(stream)) != NULL;
}

void us_capture_invalidate(const Stream *stream)
{
    us_recorder_lock();
    Capture *capture = us_capture_of(stream_state(stream));
    if (capture != NULL) {
        capture->invalid = true;
    }
    us_recorder_unlock();
}

CaptureMode us_capture_exchange_mode(CaptureMode mode)
{
    CaptureMode old = mode_of_thread;
    mode_of_thread = mode;
    return old;
}

/* Whether the recording forbids the calling thread what is unsafe. */
static bool forbids(const Capture *capture)
{
    bool own = capture->thread == gettid();
    return mode_of_thread != CAPTURE_RELAXED && capture->mode != CAPTURE_RELAXED &&
           (own || (capture->mode == CAPTURE_GLOBAL && mode_of_thread == CAPTURE_GLOBAL));
}

bool us_capture_exists(void)
{
    return atomic_load(&capture_count) > 0;
}

bool us_capture_forbids_unsafe(const Platform *platform, bool spoil)
{
    bool forbidden = false;
    if (!us_capture_exists()) {
        return false;
    }
    us_recorder_lock();
    for (Capture *capture = captures; capture != NULL; capture = capture->next) {
        bool meant = capture->platform == platform && forbids(capture);
        forbidden |= meant;
        capture->invalid |= meant && spoil;
    }
    us_recorder_unlock();
    return forbidden;
}

static bool in_context(const Context *context, uint32_t exempt, bool spoil)
{
    bool found = false;
    if (!us_capture_exists()) {
        return false;
    }
    us_recorder_lock();
    for (Capture *capture = captures; capture != NULL; capture = capture->next) {
        bool meant = capture->origin->public.context == context && (capture->origin->public.internal_flags & exempt) == 0;
        found |= meant;
        capture->invalid |= meant && spoil;
    }
    us_recorder_unlock();
    return found;
}

bool us_capture_in_context(const Context *context, bool spoil)
{
    return in_context(context, STREAM_NON_BLOCKING, spoil);
}

bool us_capture_anywhere_in_context(const Context *context, bool spoil)
{
    return in_context(context, 0, spoil);
}
