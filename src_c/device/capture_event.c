/* Events that are recorded: they join streams to a recording, or belong to the world outside. */
#include "device/capture_state.h"

/* With the lock held: forgets a recording that is over. */
static Capture *capture_of_event(Event *event)
{
    EventCapture *known = us_event_capture(event);
    if (known->capture != NULL && known->capture->over) {
        us_capture_let_go(known->capture);
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
        us_capture_let_go(known->capture);
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
    Step *step = us_event_hold(state) ? us_recorder_add_step(recorder, kind) : NULL;
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
    if (us_recorder_of(stream) == NULL) {
        return CAPTURE_FAULT_IDLE;
    }
    us_recorder_lock();
    Place place = {0};
    Step *step = NULL;
    Capture *capture = us_capture_of(stream);
    CaptureFault fault = capture == NULL ? CAPTURE_FAULT_IDLE : add_event_step(stream, event, STEP_RECORD, &place,
                                                                               &step);
    if (fault == CAPTURE_OK) {
        EventCapture *known = us_event_capture(event);
        us_reference_take(&capture->references);
        if (known->capture != NULL) {
            us_capture_let_go(known->capture);
        }
        *known = (EventCapture){capture, place.branch, place.step};
        us_event_mark_captured(event, true);
    }
    us_recorder_unlock();
    return fault;
}

static CaptureFault wait_for_captured(StreamState *stream, Event *event, Capture *of_event)
{
    Capture *capture = us_capture_of(stream);
    if (of_event == NULL && us_recorder_of(stream) == NULL) {
        return CAPTURE_FAULT_IDLE;
    }
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
    CaptureFault fault = capture == NULL ? us_capture_join(of_event, stream) : CAPTURE_OK;
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
    if (us_recorder_of(stream_state(stream)) == NULL && !us_event_is_captured(event)) {
        return CAPTURE_FAULT_IDLE;
    }
    us_recorder_lock();
    CaptureFault fault = wait_for_captured(stream_state(stream), event, capture_of_event(event));
    us_recorder_unlock();
    return fault;
}

static CaptureFault add_external(Stream *stream, Event *event, StepKind kind, bool when_run)
{
    Place place = {0};
    Step *step = NULL;
    if (us_recorder_of(stream_state(stream)) == NULL) {
        return CAPTURE_FAULT_IDLE;
    }
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
