/* What streams do to events: records and resets. */
#include "device/event_state.h"

#include <stdlib.h>
#include <unistd.h>

EventTask *us_event_task_create(EventState *event)
{
    EventTask *task = calloc(1, sizeof *task);
    if (task != NULL && !us_reference_take(&event->references)) {
        free(task);
        return NULL;
    }
    if (task != NULL) {
        task->event = event;
    }
    return task;
}

void us_event_task_release(void *argument)
{
    EventTask *task = argument;
    us_event_let_go(task->event);
    free(task);
}

bool us_event_task_queue(Stream *stream, Task task, uint64_t *ticket)
{
    if (!us_stream_queue(stream_state(stream), task, ticket)) {
        task.release(task.argument);
        return false;
    }
    return true;
}

/* With the lock held, as below. Where there is no memory for them, they count as made. */
static void add_late(EventState *event, uint64_t first, uint64_t last)
{
    Late *late = first <= last ? malloc(sizeof *late) : NULL;
    if (late != NULL) {
        *late = (Late){event->late, first, last};
        event->late = late;
    }
}

/* The record is late no more; false: it was not. */
static bool remove_late(EventState *event, uint64_t record)
{
    Late **link = &event->late;
    while (*link != NULL && (record < (*link)->first || record > (*link)->last)) {
        link = &(*link)->next;
    }
    Late *late = *link;
    if (late != NULL) {
        *link = late->next;
        add_late(event, late->first, record - 1);
        add_late(event, record + 1, late->last);
        free(late);
    }
    return late != NULL;
}

void us_event_reach(EventState *event, uint64_t record, uint64_t time)
{
    pthread_mutex_lock(&event->lock);
    uint64_t before = atomic_load(&event->words->completed);
    while (record > before && !atomic_compare_exchange_weak(&event->words->completed, &before, record)) {
    }
    if (record > before) {
        event->time = time;
    }
    if (record > before && !us_event_is_shared(event)) {
        add_late(event, before + 1, record - 1);
    }
    if (record > before || remove_late(event, record)) {
        pthread_cond_broadcast(&event->changed);
    }
    pthread_mutex_unlock(&event->lock);
    if (record > before && us_event_is_shared(event)) {
        us_signal_tell(event->words);
    }
}

static DeviceFault run_record(void *argument, Explanation *why)
{
    (void)why;
    EventTask *task = argument;
    us_event_reach(task->event, task->record, us_now());
    return DEVICE_FAULT_NONE;
}

/* A record that was dropped must not keep anybody waiting. */
static void release_record(void *argument)
{
    EventTask *task = argument;
    us_event_reach(task->event, task->record, 0);
    us_event_task_release(task);
}

/* The number of a record that is about to be queued, which waits do not see before it is published: else another thread's
 * wait for it could come to stand before it in the same stream. All that processes have in common is the latest number, so
 * theirs are seen at once. The caller has the lock, also below. */
static uint64_t take_number(EventState *event)
{
    atomic_store(&event->words->recorder, (int32_t)getpid());
    return us_event_is_shared(event) ? atomic_fetch_add(&event->words->recorded, 1) + 1 : ++event->issued;
}

static void publish_number(EventState *event, uint64_t record)
{
    if (record > atomic_load(&event->words->recorded)) {
        atomic_store(&event->words->recorded, record);
    }
}

uint64_t us_event_issue_record(EventState *event)
{
    pthread_mutex_lock(&event->lock);
    uint64_t number = take_number(event);
    publish_number(event, number);
    pthread_mutex_unlock(&event->lock);
    return number;
}

void us_event_record_comes_from(EventState *event, uint64_t record, StreamState *stream, uint64_t ticket, Moment *moment)
{
    StreamState *previous = us_stream_hold(stream) ? stream : NULL;
    uint64_t previous_ticket = ticket;
    pthread_mutex_lock(&event->lock);
    publish_number(event, record);
    const bool latest = previous != NULL && record == event->words->recorded;
    if (latest) {
        previous = event->stream;
        previous_ticket = event->stream_ticket;
        event->stream = stream;
        event->stream_ticket = ticket;
        event->sources++;
        Moment *before = event->moment;
        event->moment = moment;
        event->moment_record = record;
        moment = before;
    }
    pthread_cond_broadcast(&event->changed); /* waits for a first record look where it comes from */
    pthread_mutex_unlock(&event->lock);
    us_order_let_go(moment);
    if (us_event_is_shared(event)) {
        us_stream_allow(stream, ticket); /* whoever waits elsewhere cannot */
    }
    if (previous != NULL) {
        if (!latest || previous != stream) {
            us_stream_allow(previous, previous_ticket); /* who waits for that record no longer finds its stream here */
        }
        us_stream_let_go(previous);
    }
}

/* The caller holds the event and the stream. */
static bool record(EventState *event, Stream *stream)
{
    EventTask *task = us_event_task_create(event);
    if (task == NULL) {
        return false;
    }
    pthread_mutex_lock(&event->lock);
    uint64_t number = task->record = take_number(event);
    pthread_mutex_unlock(&event->lock);
    uint64_t ticket = 0;
    Moment *over = NULL;
    bool queued = us_event_task_queue(stream, (Task){.work = {"event record", "event", 0}, .run = run_record,
                                             .release = release_record, .argument = task, .anywhere = true, .over = &over,
                                             .unrecorded = true},
                                      &ticket);
    if (queued) {
        us_event_record_comes_from(event, number, stream_state(stream), ticket, over);
    }
    return queued;
}

bool us_event_record(Event *public, Stream *stream)
{
    EventState *event = event_state(public);
    if (!us_reference_take(&event->references)) {
        return false;
    }
    if (atomic_load(&event->captured)) {
        us_event_release_capture(public); /* from now on it is an ordinary event again */
    }
    bool held = us_stream_hold(stream_state(stream));
    bool queued = held && record(event, stream);
    if (held) {
        us_stream_let_go(stream_state(stream));
    }
    us_event_let_go(event);
    return queued;
}

void us_event_forget(EventState *event)
{
    pthread_mutex_lock(&event->lock);
    if (event->words->completed > event->forgotten) {
        event->forgotten = event->words->completed;
    }
    pthread_mutex_unlock(&event->lock);
}

static DeviceFault run_reset(void *argument, Explanation *why)
{
    (void)why;
    EventTask *task = argument;
    EventState *event = task->event;
    pthread_mutex_lock(&event->lock);
    if (task->record > event->forgotten) {
        event->forgotten = task->record;
    }
    pthread_mutex_unlock(&event->lock);
    return DEVICE_FAULT_NONE;
}

/* What a reset undoes: all records so far; and that for which its stream waits before, which may be made later only. With the
 * lock held. */
static uint64_t undone_by_reset(const EventState *event, const Stream *stream)
{
    const uint64_t recorded = event->words->recorded;
    const bool waits = event->waits_queued > 0 && event->wait_stream == stream->id;
    return waits && event->wait_record > recorded ? event->wait_record : recorded;
}

bool us_event_reset(Event *public, Stream *stream)
{
    EventState *event = event_state(public);
    EventTask *task = us_event_task_create(event);
    if (task == NULL) {
        return false;
    }
    pthread_mutex_lock(&event->lock);
    task->record = undone_by_reset(event, stream);
    pthread_mutex_unlock(&event->lock);
    uint64_t ticket = 0;
    return us_event_task_queue(stream, (Task){.work = {"event reset", "event", 0}, .run = run_reset,
                                     .release = us_event_task_release, .argument = task, .anywhere = true,
                                     .unrecorded = true}, &ticket);
}
