/* Recording: while a stream has a recorder, its work becomes steps of a graph instead of waiting in its queue. */
#include "device/graph_internal.h"

#include "report/grace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct Capture {
    Capture *next;         /* of those that are not over */
    References references; /* the list, recorders, events */
    uint64_t id;
    CaptureMode mode;
    pid_t thread; /* that began it */
    const Platform *platform;
    const StreamState *origin;
    GraphState *graph; /* held */
    bool invalid, over;
    bool child; /* of a graph that another capture records */
    StreamState **streams; /* all of them, held, each with a recorder */
    size_t stream_count;
    bool group_open; /* steps of `group_branch` from `group_first` on */
    uint32_t group_branch;
    size_t group_first;
};

/* Steps of one branch whose tasks can be replaced. */
typedef struct StepGroup {
    GraphState *graph; /* held by the handle */
    uint32_t branch;
    size_t first, count;
    bool updating;
    void *handle;
} StepGroup;

static pthread_mutex_t recorder_lock = PTHREAD_MUTEX_INITIALIZER;
static Capture *captures;
static _Atomic int capture_count;
static uint64_t next_capture = 1;
static _Thread_local CaptureMode mode_of_thread = CAPTURE_GLOBAL;

/* The task that the thread recorded last; handles, because both may end. */
static _Thread_local struct {
    const void *graph, *stream;
    Place place;
} last_recorded;

void us_recorder_lock(void)
{
    pthread_mutex_lock(&recorder_lock);
}

void us_recorder_unlock(void)
{
    pthread_mutex_unlock(&recorder_lock);
}

Recorder *us_recorder_of(const StreamState *stream)
{
    return atomic_load(&((StreamState *)stream)->recorder);
}

CaptureFault us_recorder_attach(StreamState *stream, const Recorder *recorder)
{
    if (us_recorder_of(stream) != NULL) {
        return CAPTURE_FAULT_BUSY;
    }
    Recorder *made = malloc(sizeof *made);
    if (made == NULL) {
        return CAPTURE_FAULT_NO_MEMORY;
    }
    *made = *recorder;
    atomic_store(&stream->recorder, made);
    return CAPTURE_OK;
}

void us_recorder_detach(StreamState *stream)
{
    Recorder *recorder = us_recorder_of(stream);
    atomic_store(&stream->recorder, NULL);
    free(recorder);
}

/* ---- with the lock held ---- */

static void let_go(Capture *capture)
{
    if (us_reference_drop(&capture->references)) {
        us_graph_let_go(capture->graph);
        free(capture->streams);
        free(capture);
    }
}

static Capture *capture_of(const StreamState *stream)
{
    const Recorder *recorder = us_recorder_of(stream);
    return recorder != NULL && recorder->kind == RECORDER_CAPTURE ? recorder->capture : NULL;
}

/* Makes the stream a branch of the recording. */
static CaptureFault join(Capture *capture, StreamState *stream)
{
    StreamState **streams = realloc(capture->streams, (capture->stream_count + 1) * sizeof *streams);
    if (streams == NULL) {
        return CAPTURE_FAULT_NO_MEMORY;
    }
    capture->streams = streams;
    pthread_mutex_lock(&capture->graph->lock);
    uint32_t branch = us_graph_add_branch(capture->graph, stream->public.handle, false);
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

/* No stream records any longer. Drops the reference of the list. */
static void close_capture(Capture *capture)
{
    capture->over = true;
    unlist(capture);
    for (size_t i = 0; i < capture->stream_count; i++) {
        us_recorder_detach(capture->streams[i]);
        us_stream_let_go(capture->streams[i]);
        us_reference_drop(&capture->references); /* never the last: the list's is left */
    }
    capture->stream_count = 0;
    pthread_mutex_lock(&capture->graph->lock);
    capture->graph->recording = false;
    pthread_mutex_unlock(&capture->graph->lock);
    let_go(capture);
}

static Step *add_step(Recorder *recorder, StepKind kind)
{
    Step *step = us_graph_add_step(recorder->graph, recorder->branch, kind);
    if (step == NULL && recorder->capture != NULL) {
        recorder->capture->invalid = true;
    }
    return step;
}

bool us_recorder_takes_steps(const Recorder *recorder)
{
    return recorder->kind == RECORDER_BUILD ? recorder->graph->recording : !recorder->capture->invalid;
}

/* ---- tasks ---- */

/* Only what an operator queues can be in a group. */
static bool fits_group(const Task *task)
{
    return strcmp(task->work.category, "kernel") == 0;
}

static bool collect(Recorder *recorder, Body *body)
{
    Body **bodies = realloc(recorder->collected, (recorder->collected_count + 1) * sizeof *bodies);
    if (bodies == NULL) {
        return false;
    }
    recorder->collected = bodies;
    bodies[recorder->collected_count++] = body;
    recorder->failed |= !fits_group(&body->task);
    return true;
}

static void note_recorded(const StreamState *stream, const Recorder *recorder, const Step *step, uint64_t *ticket)
{
    last_recorded.graph = recorder->graph->public.handle;
    last_recorded.stream = stream->public.handle;
    last_recorded.place = (Place){recorder->branch,
                                  (uint32_t)recorder->graph->branches[recorder->branch].count - 1};
    *ticket = step->id;
}

/* The body becomes a step; false: no memory. A recording that has failed takes it and forgets it. */
static bool record_body(const StreamState *stream, Recorder *recorder, Body *body, uint64_t *ticket)
{
    if (recorder->kind == RECORDER_UPDATE) {
        return collect(recorder, body);
    }
    Capture *capture = recorder->capture;
    if (capture != NULL && capture->group_open) {
        capture->invalid |= capture->group_branch != recorder->branch || !fits_group(&body->task);
    }
    if (!us_recorder_takes_steps(recorder)) {
        us_body_let_go(body);
        return true;
    }
    GraphState *graph = recorder->graph;
    pthread_mutex_lock(&graph->lock);
    Step *step = add_step(recorder, STEP_TASK);
    if (step != NULL) {
        step->body = body;
        graph->runs_program |= !body->task.anywhere;
        graph->may_block |= body->task.ready != NULL;
        note_recorded(stream, recorder, step, ticket);
    }
    pthread_mutex_unlock(&graph->lock);
    return step != NULL;
}

bool us_recorder_take(StreamState *stream, const Task *task, bool *recorded, uint64_t *ticket)
{
    us_recorder_lock();
    Recorder *recorder = us_recorder_of(stream);
    *recorded = recorder != NULL;
    Body *body = recorder != NULL ? us_body_create(task) : NULL;
    bool taken = body != NULL && record_body(stream, recorder, body, ticket);
    if (body != NULL && !taken) {
        free(body);
    }
    us_recorder_unlock();
    return taken;
}

Stream *us_last_recorded_stream(void)
{
    us_recorder_lock();
    Stream *stream = us_stream_of_handle(last_recorded.stream);
    const Recorder *recorder = stream != NULL ? us_recorder_of(stream_state(stream)) : NULL;
    bool goes_on = recorder != NULL && recorder->kind != RECORDER_UPDATE && us_recorder_takes_steps(recorder) &&
                   recorder->graph->public.handle == last_recorded.graph;
    us_recorder_unlock();
    return goes_on ? stream : NULL;
}

bool us_last_recorded_annotate(StepNote note, const void *bytes, size_t size)
{
    us_recorder_lock();
    Graph *graph = us_graph_of_handle(last_recorded.graph);
    bool kept = graph == NULL || us_graph_annotate(graph_state(graph), last_recorded.place, note, bytes, size);
    us_recorder_unlock();
    return kept;
}

/* ---- begin and end ---- */

CaptureFault us_capture_begin(Stream *public, Graph *into, CaptureMode mode)
{
    StreamState *stream = stream_state(public);
    Graph *graph = into != NULL ? into : us_graph_create(stream->device, true);
    Capture *capture = calloc(1, sizeof *capture);
    if (graph == NULL || capture == NULL || !us_graph_hold(graph_state(graph))) {
        free(capture);
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
    capture->id = next_capture++;
    bool busy = us_recorder_of(stream) != NULL || (into != NULL && us_graph_is_recording(into));
    CaptureFault fault = busy ? CAPTURE_FAULT_BUSY : join(capture, stream);
    if (fault == CAPTURE_OK) {
        capture->graph->recording = true;
        capture->next = captures;
        captures = capture;
        atomic_fetch_add(&capture_count, 1);
    } else {
        let_go(capture);
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
    if (capture->invalid || capture->group_open) {
        return CAPTURE_FAULT_INVALID;
    }
    return is_joined(capture->graph) ? CAPTURE_OK : CAPTURE_FAULT_UNJOINED;
}

CaptureFault us_capture_end(Stream *public, Graph **graph)
{
    StreamState *stream = stream_state(public);
    us_recorder_lock();
    Capture *capture = capture_of(stream);
    CaptureFault fault = fault_of_end(stream, capture);
    bool over = fault == CAPTURE_OK || fault == CAPTURE_FAULT_INVALID || fault == CAPTURE_FAULT_UNJOINED;
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
    Recorder *recorder = us_recorder_of(stream);
    Capture *capture = capture_of(stream);
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
    const Capture *capture = capture_of(stream);
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

uint64_t us_capture_id(const Stream *stream)
{
    us_recorder_lock();
    const Capture *capture = capture_of(stream_state(stream));
    uint64_t id = capture == NULL ? 0 : capture->id;
    us_recorder_unlock();
    return id;
}

void us_capture_invalidate(const Stream *stream)
{
    us_recorder_lock();
    Capture *capture = capture_of(stream_state(stream));
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

bool us_capture_in_context(const Context *context, bool spoil)
{
    bool found = false;
    if (!us_capture_exists()) {
        return false;
    }
    us_recorder_lock();
    for (Capture *capture = captures; capture != NULL; capture = capture->next) {
        bool meant = capture->origin->public.context == context &&
                     (capture->origin->public.internal_flags & STREAM_NON_BLOCKING) == 0;
        found |= meant;
        capture->invalid |= meant && spoil;
    }
    us_recorder_unlock();
    return found;
}

/* ---- events ---- */

/* With the lock held: forgets a recording that is over. */
static Capture *capture_of_event(Event *event)
{
    EventCapture *known = us_event_capture(event);
    if (known->capture != NULL && known->capture->over) {
        let_go(known->capture);
        known->capture = NULL;
        us_event_mark_captured(event, false);
    }
    return known->capture;
}

/* Nobody else knows the event. Takes no lock: graphs end, with their events, while the recorder lock is held. */
void us_event_end_capture(Event *event)
{
    EventCapture *known = us_event_capture(event);
    if (known->capture != NULL) {
        let_go(known->capture);
    }
}

void us_event_release_capture(Event *event)
{
    us_recorder_lock();
    us_event_end_capture(event);
    us_event_capture(event)->capture = NULL;
    us_event_mark_captured(event, false);
    us_recorder_unlock();
}

bool us_event_has_open_capture(Event *event)
{
    us_recorder_lock();
    bool captured = capture_of_event(event) != NULL;
    us_recorder_unlock();
    return captured;
}

void us_event_invalidate_capture(const Event *event)
{
    us_recorder_lock();
    Capture *capture = capture_of_event((Event *)event);
    if (capture != NULL) {
        capture->invalid = true;
    }
    us_recorder_unlock();
}

/* A step about the event at the end of the stream's branch; its number in the branch. */
static CaptureFault add_event_step(StreamState *stream, Event *event, StepKind kind, Place *place, Step **added)
{
    Recorder *recorder = us_recorder_of(stream);
    if (recorder == NULL || recorder->kind == RECORDER_UPDATE) {
        return CAPTURE_FAULT_IDLE;
    }
    if (!us_recorder_takes_steps(recorder)) {
        return CAPTURE_FAULT_INVALID;
    }
    EventState *state = (EventState *)event;
    pthread_mutex_lock(&recorder->graph->lock);
    Step *step = us_event_hold(state) ? add_step(recorder, kind) : NULL;
    if (step != NULL) {
        step->event = state;
        *place = (Place){recorder->branch, (uint32_t)recorder->graph->branches[recorder->branch].count - 1};
    }
    pthread_mutex_unlock(&recorder->graph->lock);
    *added = step;
    return step != NULL ? CAPTURE_OK : CAPTURE_FAULT_NO_MEMORY;
}

CaptureFault us_capture_record(Event *event, Stream *public)
{
    StreamState *stream = stream_state(public);
    us_recorder_lock();
    Place place = {0};
    Step *step = NULL;
    Capture *capture = capture_of(stream);
    CaptureFault fault = capture == NULL ? CAPTURE_FAULT_IDLE : add_event_step(stream, event, STEP_RECORD, &place,
                                                                               &step);
    if (fault == CAPTURE_OK) {
        EventCapture *known = us_event_capture(event);
        us_reference_take(&capture->references);
        if (known->capture != NULL) {
            let_go(known->capture);
        }
        *known = (EventCapture){capture, place.branch, place.step};
        us_event_mark_captured(event, true);
    }
    us_recorder_unlock();
    return fault;
}

static CaptureFault wait_for_captured(StreamState *stream, Event *event, Capture *of_event)
{
    Capture *capture = capture_of(stream);
    if (of_event == NULL) {
        if (capture != NULL) {
            capture->invalid = true;
        }
        return CAPTURE_FAULT_UNRECORDED;
    }
    if (capture != NULL && capture != of_event) {
        capture->invalid = of_event->invalid = true;
        return CAPTURE_FAULT_MERGE;
    }
    if (of_event->invalid) {
        return CAPTURE_FAULT_INVALID;
    }
    CaptureFault fault = capture == NULL ? join(of_event, stream) : CAPTURE_OK;
    Place place = {0};
    Step *step = NULL;
    if (fault == CAPTURE_OK) {
        fault = add_event_step(stream, event, STEP_WAIT, &place, &step);
    }
    if (fault == CAPTURE_OK) {
        const EventCapture *known = us_event_capture(event);
        step->target = (Place){known->branch, known->step};
    }
    return fault;
}

CaptureFault us_capture_wait(Stream *stream, Event *event)
{
    us_recorder_lock();
    CaptureFault fault = wait_for_captured(stream_state(stream), event, capture_of_event(event));
    us_recorder_unlock();
    return fault;
}

static CaptureFault add_external(Stream *stream, Event *event, StepKind kind, bool when_run)
{
    Place place = {0};
    Step *step = NULL;
    us_recorder_lock();
    CaptureFault fault = add_event_step(stream_state(stream), event, kind, &place, &step);
    if (fault == CAPTURE_OK) {
        step->when_run = when_run;
    }
    us_recorder_unlock();
    return fault;
}

CaptureFault us_capture_external_record(Event *event, Stream *stream)
{
    return add_external(stream, event, STEP_EXTERNAL_RECORD, false);
}

CaptureFault us_capture_external_wait(Stream *stream, Event *event, bool when_run)
{
    return add_external(stream, event, STEP_EXTERNAL_WAIT, when_run);
}

CaptureFault us_capture_external_reset(Event *event, Stream *stream)
{
    return add_external(stream, event, STEP_EXTERNAL_RESET, true);
}

/* ---- groups ---- */

CaptureFault us_capture_group_begin(Stream *stream)
{
    us_recorder_lock();
    Capture *capture = capture_of(stream_state(stream));
    CaptureFault fault = capture == NULL       ? CAPTURE_FAULT_IDLE
                         : capture->invalid    ? CAPTURE_FAULT_INVALID
                         : capture->group_open ? CAPTURE_FAULT_GROUP
                                               : CAPTURE_OK;
    if (fault == CAPTURE_OK) {
        capture->group_open = true;
        capture->group_branch = us_recorder_of(stream_state(stream))->branch;
        capture->group_first = capture->graph->branches[capture->group_branch].count;
    }
    us_recorder_unlock();
    return fault;
}

/* The steps belong to the graph, whose end ends the group's handle too: the group is one of the graph's own objects. */
static StepGroup *create_group(const Capture *capture)
{
    StepGroup *group = malloc(sizeof *group);
    if (group == NULL) {
        return NULL;
    }
    size_t count = capture->graph->branches[capture->group_branch].count - capture->group_first;
    *group = (StepGroup){capture->graph, capture->group_branch, capture->group_first, count, false, NULL};
    group->handle = us_handle_create(HANDLE_STEP_GROUP, group);
    if (group->handle == NULL || !us_graph_owns(&capture->graph->public, NULL, group->handle, HANDLE_STEP_GROUP)) {
        us_handle_end(group->handle, HANDLE_STEP_GROUP);
        free(group);
        return NULL;
    }
    return group;
}

CaptureFault us_capture_group_end(Stream *stream, void **handle)
{
    us_recorder_lock();
    Capture *capture = capture_of(stream_state(stream));
    const Recorder *recorder = us_recorder_of(stream_state(stream));
    CaptureFault fault = capture == NULL ? CAPTURE_FAULT_IDLE
                         : !capture->group_open || capture->group_branch != recorder->branch ? CAPTURE_FAULT_GROUP
                         : capture->invalid ? CAPTURE_FAULT_INVALID : CAPTURE_OK;
    StepGroup *group = fault == CAPTURE_OK ? create_group(capture) : NULL;
    if (fault == CAPTURE_OK && group == NULL) {
        fault = CAPTURE_FAULT_NO_MEMORY;
    }
    if (group != NULL) {
        capture->group_open = false;
        pthread_mutex_lock(&capture->graph->lock);
        for (size_t i = 0; i < group->count; i++) {
            capture->graph->branches[group->branch].steps[group->first + i].group = group->handle;
        }
        pthread_mutex_unlock(&capture->graph->lock);
        *handle = group->handle;
    }
    us_recorder_unlock();
    return fault;
}

CaptureFault us_group_update_begin(Stream *public, const void *handle)
{
    StreamState *stream = stream_state(public);
    us_recorder_lock();
    StepGroup *group = us_handle_object(handle, HANDLE_STEP_GROUP);
    CaptureFault fault = group == NULL                      ? CAPTURE_FAULT_UNRECORDED
                         : us_recorder_of(stream) != NULL   ? CAPTURE_FAULT_BUSY
                         : group->updating || group->graph->recording ? CAPTURE_FAULT_GROUP
                                                            : CAPTURE_OK;
    if (fault == CAPTURE_OK && us_graph_hold(group->graph)) {
        fault = us_recorder_attach(stream, &(Recorder){.kind = RECORDER_UPDATE, .graph = group->graph, .group = group});
        if (fault == CAPTURE_OK) {
            group->updating = true;
        } else {
            us_graph_let_go(group->graph);
        }
    }
    us_recorder_unlock();
    return fault;
}

/* Queued: gives the group's steps their new tasks. */
typedef struct Replacement {
    GraphState *graph; /* held */
    uint32_t branch;
    size_t first, count;
    Body **bodies;
} Replacement;

static DeviceFault run_replacement(void *argument, Explanation *why)
{
    (void)why;
    Replacement *replacement = argument;
    pthread_mutex_lock(&replacement->graph->lock);
    Step *steps = replacement->graph->branches[replacement->branch].steps + replacement->first;
    for (size_t i = 0; i < replacement->count; i++) {
        Body *old = steps[i].body;
        steps[i].body = replacement->bodies[i];
        replacement->bodies[i] = old;
    }
    pthread_mutex_unlock(&replacement->graph->lock);
    return DEVICE_FAULT_NONE;
}

static void release_replacement(void *argument)
{
    Replacement *replacement = argument;
    for (size_t i = 0; i < replacement->count; i++) {
        us_body_let_go(replacement->bodies[i]);
    }
    us_graph_let_go(replacement->graph);
    free(replacement->bodies);
    free(replacement);
}

/* Same number and type of tasks. */
static bool fits(const Recorder *recorder)
{
    const StepGroup *group = recorder->group;
    bool same = !recorder->failed && recorder->collected_count == group->count;
    pthread_mutex_lock(&group->graph->lock);
    const Step *steps = group->graph->branches[group->branch].steps + group->first;
    for (size_t i = 0; i < group->count && same; i++) {
        same = strcmp(steps[i].body->task.work.name, recorder->collected[i]->task.work.name) == 0;
    }
    pthread_mutex_unlock(&group->graph->lock);
    return same;
}

CaptureFault us_group_update_end(Stream *public)
{
    StreamState *stream = stream_state(public);
    us_recorder_lock();
    const Recorder *recorder = us_recorder_of(stream);
    if (recorder == NULL || recorder->kind != RECORDER_UPDATE) {
        us_recorder_unlock();
        return CAPTURE_FAULT_GROUP;
    }
    const StepGroup *group = recorder->group;
    CaptureFault fault = fits(recorder) ? CAPTURE_OK : CAPTURE_FAULT_UNJOINED;
    Replacement *replacement = malloc(sizeof *replacement);
    Replacement taken = {group->graph, group->branch, group->first, recorder->collected_count, recorder->collected};
    recorder->group->updating = false;
    us_recorder_detach(stream);
    us_recorder_unlock();
    if (replacement == NULL) {
        return CAPTURE_FAULT_NO_MEMORY;
    }
    *replacement = taken;
    Task task = {.work = {"task group update", "graph", 0}, .run = run_replacement, .release = release_replacement,
                 .argument = replacement, .anywhere = true};
    uint64_t ticket = 0;
    if (fault != CAPTURE_OK || !us_stream_queue(stream, task, &ticket)) {
        release_replacement(replacement);
        return fault != CAPTURE_OK ? fault : CAPTURE_FAULT_NO_MEMORY;
    }
    return CAPTURE_OK;
}
