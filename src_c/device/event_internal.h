/* Events as the files about graphs see them. */
#ifndef UNDERSTUDY_EVENT_INTERNAL_H
#define UNDERSTUDY_EVENT_INTERNAL_H

#include "device/moment.h"
#include "device/stream_internal.h"

typedef struct EventState EventState;

/* Where a recording has recorded the event last. Guarded by the recorder lock (graph_internal.h). */
typedef struct EventCapture {
    struct Capture *capture; /* held; NULL: it was not recorded in a recording, or that is over */
    uint32_t branch, step;
} EventCapture;

Event *us_event_public(EventState *event);
bool us_event_hold(EventState *event); /* false: the event has ended */
void us_event_let_go(EventState *event);
EventCapture *us_event_capture(Event *event);
/* Forgets that; whether the recording goes on still. Both take the recorder lock. */
void us_event_release_capture(Event *event);
bool us_event_has_open_capture(Event *event);
void us_event_end_capture(Event *event); /* the event ends */
/* Sets whether us_event_is_captured is true, which costs no lock. */
void us_event_mark_captured(Event *event, bool captured);

/* The number of a record that will be made; who will make it (in deferred mode that stream must be let run) and, for the
 * checks, what will be over then (takes the moment over); that it has been made, at a time, or dropped (0). */
uint64_t us_event_issue_record(EventState *event);
void us_event_record_comes_from(EventState *event, uint64_t record, StreamState *stream, uint64_t ticket, Moment *moment);
void us_event_reach(EventState *event, uint64_t record, uint64_t time);

/* The record that a wait waits for now. Not recorded: the next one, with `block`, else 0, which is always over. */
uint64_t us_event_awaited(EventState *event, bool block);
bool us_event_is_reached(EventState *event, uint64_t record);
/* For the checks: when that record is made. Ended by us_order_let_go. */
Moment *us_event_moment(EventState *event, uint64_t record);
/* Waits inside a task until the record has run or the task is to give up. */
void us_event_await(EventState *event, uint64_t record);
void us_event_forget(EventState *event); /* now it is as never recorded */

#endif
