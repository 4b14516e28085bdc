/* Groups of recorded steps, whose tasks can be replaced later. */
#include "device/capture_state.h"

#include <stdlib.h>
#include <string.h>

/* Steps of one branch whose tasks can be replaced. */
typedef struct StepGroup {
    GraphState *graph; /* held by the handle */
    uint32_t branch;
    size_t first, count;
    bool updating;
    void *handle;
} StepGroup;

CaptureFault us_capture_group_begin(Stream *stream)
{
    us_recorder_lock();
    Capture *capture = us_capture_of(stream_state(stream));
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
    Capture *capture = us_capture_of(stream_state(stream));
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

GroupPlace us_capture_open_group(const Stream *public)
{
    const StreamState *stream = stream_state(public);
    if (us_recorder_of(stream) == NULL) {
        return GROUP_NONE;
    }
    us_recorder_lock();
    const Recorder *recorder = us_recorder_of(stream);
    const Capture *capture = us_capture_of(stream);
    bool open = capture != NULL && capture->group_open;
    bool here = recorder != NULL && (recorder->kind == RECORDER_UPDATE || (open && capture->group_branch == recorder->branch));
    GroupPlace place = here ? GROUP_HERE : open ? GROUP_ELSEWHERE : GROUP_NONE;
    us_recorder_unlock();
    return place;
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
    if (fault == CAPTURE_OK && !us_graph_hold(group->graph)) { /* another thread has just destroyed it */
        fault = CAPTURE_FAULT_UNRECORDED;
    }
    if (fault == CAPTURE_OK) {
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

static void end_replacement(const Replacement *replacement)
{
    for (size_t i = 0; i < replacement->count; i++) {
        us_body_let_go(replacement->bodies[i]);
    }
    us_graph_let_go(replacement->graph);
    free(replacement->bodies);
}

static void release_replacement(void *argument)
{
    end_replacement(argument);
    free(argument);
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

/* Ends the update that the stream collects: its tasks become the caller's. GROUP: there is none. */
static CaptureFault take_update(StreamState *stream, Replacement *taken)
{
    us_recorder_lock();
    const Recorder *recorder = us_recorder_of(stream);
    CaptureFault fault = CAPTURE_FAULT_GROUP;
    if (recorder != NULL && recorder->kind == RECORDER_UPDATE) {
        StepGroup *group = recorder->group;
        fault = fits(recorder) ? CAPTURE_OK : CAPTURE_FAULT_UNJOINED;
        *taken = (Replacement){group->graph, group->branch, group->first, recorder->collected_count, recorder->collected};
        group->updating = false;
        us_recorder_detach(stream);
    }
    us_recorder_unlock();
    return fault;
}

void us_group_update_forget(StreamState *stream)
{
    Replacement taken;
    if (take_update(stream, &taken) != CAPTURE_FAULT_GROUP) {
        end_replacement(&taken);
    }
}

CaptureFault us_group_update_end(Stream *public)
{
    StreamState *stream = stream_state(public);
    Replacement taken;
    CaptureFault fault = take_update(stream, &taken);
    if (fault == CAPTURE_FAULT_GROUP) {
        return fault;
    }
    Replacement *replacement = malloc(sizeof *replacement);
    if (replacement == NULL) {
        end_replacement(&taken);
        return CAPTURE_FAULT_NO_MEMORY;
    }
    *replacement = taken;
    Task task = {.work = {"task group update", "graph", 0}, .run = run_replacement, .release = release_replacement,
                 .argument = replacement, .anywhere = true, .unrecorded = true};
    uint64_t ticket = 0;
    if (fault != CAPTURE_OK || !us_stream_queue(stream, task, &ticket)) {
        release_replacement(replacement);
        return fault != CAPTURE_OK ? fault : CAPTURE_FAULT_NO_MEMORY;
    }
    return CAPTURE_OK;
}
