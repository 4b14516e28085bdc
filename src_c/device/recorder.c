/* Recorders: while a stream has one, its tasks become steps of a graph instead of waiting in its queue. */
#include "device/capture_state.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t recorder_lock = PTHREAD_MUTEX_INITIALIZER;

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

CaptureFault us_recorder_obstacle(const StreamState *stream)
{
    return stream->takes_no_recorder       ? CAPTURE_FAULT_ENDED
           : us_recorder_of(stream) != NULL ? CAPTURE_FAULT_BUSY
                                            : CAPTURE_OK;
}

CaptureFault us_recorder_attach(StreamState *stream, const Recorder *recorder)
{
    const CaptureFault obstacle = us_recorder_obstacle(stream);
    if (obstacle != CAPTURE_OK) {
        return obstacle;
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

Step *us_recorder_add_step(Recorder *recorder, StepKind kind)
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
    Step *step = us_recorder_add_step(recorder, STEP_TASK);
    if (step != NULL) {
        us_graph_put_body(graph, step, body);
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
