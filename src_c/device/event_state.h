/* What the files about events share. */
#ifndef UNDERSTUDY_EVENT_STATE_H
#define UNDERSTUDY_EVENT_STATE_H

#include "device/event_internal.h"
#include "device/order.h"
#include "device/signal.h"

/* Records that have not run although a later one has: that of another stream. */
typedef struct Late {
    struct Late *next;
    uint64_t first, last;
} Late;

struct EventState {
    Event public;
    References references; /* the handle, queued records, resets and waits */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    SignalWords own;        /* of an event of this process */
    SignalWords *words;     /* `own`, or memory of several processes */
    int file;               /* of that memory; -1: the event is this process's */
    uint64_t issued;        /* the last number of a record; not of a shared event */
    uint64_t forgotten;     /* records up to here were undone by a reset */
    Late *late;             /* below `completed`; not of a shared event, of which others make records */
    uint64_t time;          /* nanoseconds at which `completed` ran; 0: it was dropped */
    uint64_t waits_queued, waits_passed;
    int32_t wait_stream;    /* the latest wait: the id of its stream, and the record that it is for */
    uint64_t wait_record;
    StreamState *stream;    /* of the latest record: held */
    uint64_t stream_ticket;
    uint64_t sources;       /* grows when those two change */
    Moment *moment;         /* of a record: held; NULL: nobody watches */
    uint64_t moment_record; /* the latest of this process */
    EventCapture capture;
    _Atomic bool captured; /* `capture` may say something */
};

static inline EventState *event_state(const Event *event)
{
    return (EventState *)event;
}

static inline bool us_event_is_shared(const EventState *event)
{
    return event->words != &event->own;
}

typedef struct EventTask {
    EventState *event;
    uint64_t record; /* the record that is made, undone or waited for */
    int64_t timeout_us;
} EventTask;

EventTask *us_event_task_create(EventState *event); /* NULL: no memory, or the event has ended */
void us_event_task_release(void *task);
bool us_event_task_queue(Stream *stream, Task task, uint64_t *ticket); /* false: no memory, and the task is released */

#endif
