/* Waiting for events, and what can be asked of them. */
#include "device/event_state.h"
#include "device/process_end.h"

#include "tensor/parallel.h"

#include <unistd.h>

/* With the lock held. */
static bool is_reached(const EventState *event, uint64_t record)
{
    const Late *late = event->late;
    while (late != NULL && (record < late->first || record > late->last)) {
        late = late->next;
    }
    return late == NULL && atomic_load(&event->words->completed) >= record;
}

bool us_event_is_reached(EventState *event, uint64_t record)
{
    if (atomic_load(&event->words->completed) < record) {
        return false;
    }
    pthread_mutex_lock(&event->lock);
    bool reached = is_reached(event, record);
    pthread_mutex_unlock(&event->lock);
    return reached;
}

static bool wait_is_ready(void *argument)
{
    EventTask *task = argument;
    return us_event_is_reached(task->event, task->record);
}

/* The stream, held; NULL when there is none. */
static StreamState *hold_stream(StreamState *stream)
{
    return stream != NULL && us_stream_hold(stream) ? stream : NULL;
}

/* Lets the stream that will make the latest record run up to it (deferred mode). Gives what `sources` was. */
static uint64_t allow_record(EventState *event)
{
    pthread_mutex_lock(&event->lock);
    StreamState *stream = hold_stream(event->stream);
    uint64_t ticket = event->stream_ticket;
    uint64_t sources = event->sources;
    pthread_mutex_unlock(&event->lock);
    if (stream != NULL) {
        us_stream_allow(stream, ticket);
        us_stream_let_go(stream);
    }
    return sources;
}

/* Wakes those who wait: there may be something new to see. */
static void wake_waiters(void *argument)
{
    EventState *event = argument;
    pthread_mutex_lock(&event->lock);
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
    if (us_event_is_shared(event)) {
        us_signal_tell(event->words);
    }
}

/* Where the process of the latest record cannot be watched: how often to look whether it is still there. */
static const int64_t LOOK_AGAIN_NS = 100 * 1000000;

static void wake_processes(void *argument)
{
    us_signal_tell(argument);
}

/* Sleeps until the record has run, its process has ended, or somebody wakes those who wait; `left` is negative without a
 * limit. */
static void wait_for_other_process(EventState *event, uint64_t record, int64_t left)
{
    SignalWords *words = event->words;
    int32_t recorder = atomic_load(&words->recorder);
    bool foreign = recorder > 0 && recorder != (int32_t)getpid();
    ProcessWatch *watch = foreign ? us_process_watch(recorder, wake_processes, words) : NULL;
    if (foreign && watch == NULL && (left < 0 || left > LOOK_AGAIN_NS)) {
        left = LOOK_AGAIN_NS;
    }
    uint32_t changes = atomic_load(&words->changes);
    bool orphan = us_signal_is_orphan(words);
    if (!orphan && !us_event_is_reached(event, record) && !us_task_gives_up() &&
        atomic_load(&words->recorder) == recorder) {
        us_signal_wait(words, changes, left);
    }
    us_process_unwatch(watch);
    if (orphan) {
        us_event_reach(event, record, 0); /* dropped with its process */
    }
}

/* The same for an event of this process; `sources` is what allow_record gave. */
static void wait_for_own_record(EventState *event, uint64_t record, uint64_t sources, int64_t left)
{
    struct timespec deadline = us_deadline(left < 0 ? 0 : (uint64_t)left);
    pthread_mutex_lock(&event->lock);
    if (!is_reached(event, record) && !us_task_gives_up() && event->sources == sources) {
        if (left < 0) {
            pthread_cond_wait(&event->changed, &event->lock);
        } else {
            pthread_cond_timedwait(&event->changed, &event->lock, &deadline);
        }
    }
    pthread_mutex_unlock(&event->lock);
}

/* The latter part of wait_for_record. */
static bool sleep_until_recorded(EventState *event, uint64_t record, int64_t timeout_us)
{
    uint64_t start = us_now();
    while (!us_event_is_reached(event, record)) {
        int64_t left = timeout_us < 0 ? -1 : timeout_us * 1000 - (int64_t)(us_now() - start);
        if ((timeout_us >= 0 && left <= 0) || us_task_gives_up()) {
            return false;
        }
        uint64_t sources = allow_record(event);
        if (us_event_is_shared(event)) {
            wait_for_other_process(event, record, left);
        } else {
            wait_for_own_record(event, record, sources, left);
        }
    }
    return true;
}

/* True when the record has run; false when the time is over or the task that waits is dropped. */
static bool wait_for_record(EventState *event, uint64_t record, int64_t timeout_us)
{
    allow_record(event);
    EventTask wanted = {.event = event, .record = record};
    us_parallel_wait(wait_is_ready, &wanted, AWAKE_NANOSECONDS);
    if (us_event_is_reached(event, record)) {
        return true;
    }
    us_task_sleeps(wake_waiters, event);
    bool reached = sleep_until_recorded(event, record, timeout_us);
    us_task_sleeps(NULL, NULL);
    return reached;
}

static DeviceFault run_wait(void *argument, Explanation *why)
{
    EventTask *task = argument;
    EventState *event = task->event;
    bool done = wait_for_record(event, task->record, task->timeout_us);
    if (!done && !us_task_gives_up()) {
        us_explain(why, "event %d was not reached within %lld us", (int)event->public.id, (long long)task->timeout_us);
        return DEVICE_FAULT_TIMEOUT;
    }
    return DEVICE_FAULT_NONE;
}

static void release_wait(void *argument)
{
    EventTask *task = argument;
    pthread_mutex_lock(&task->event->lock);
    task->event->waits_passed++;
    pthread_mutex_unlock(&task->event->lock);
    us_event_task_release(task);
}

uint64_t us_event_awaited(EventState *event, bool block)
{
    pthread_mutex_lock(&event->lock);
    const uint64_t recorded = event->words->recorded, forgotten = event->forgotten;
    /* A record that has run and is forgotten may not be published yet: the one awaited comes after it. */
    const uint64_t next = (recorded > forgotten ? recorded : forgotten) + 1;
    uint64_t record = recorded > forgotten ? recorded : block ? next : 0;
    pthread_mutex_unlock(&event->lock);
    return record;
}

/* When the latest record is made, if that is the awaited one: held; NULL otherwise. */
static Moment *moment_of(EventState *event, uint64_t record)
{
    pthread_mutex_lock(&event->lock);
    Moment *moment = record > 0 && record == event->moment_record ? us_order_hold(event->moment) : NULL;
    pthread_mutex_unlock(&event->lock);
    return moment;
}

Moment *us_event_moment(EventState *event, uint64_t record)
{
    Moment *moment = moment_of(event, record);
    return moment != NULL || record == 0 ? moment : us_order_unknown();
}

/* For the host: what another process has recorded may be the end of anything. */
static Moment *host_moment(EventState *event, uint64_t record)
{
    return us_event_is_shared(event) ? us_event_moment(event, record) : moment_of(event, record);
}

void us_event_await(EventState *event, uint64_t record)
{
    wait_for_record(event, record, -1);
}

bool us_event_wait(Stream *stream, Event *public, bool block_until_recorded, int64_t timeout_us)
{
    EventState *event = event_state(public);
    uint64_t record = us_event_awaited(event, block_until_recorded);
    if (record == 0) {
        return true;
    }
    EventTask *task = us_event_task_create(event);
    if (task == NULL) {
        return false;
    }
    pthread_mutex_lock(&event->lock);
    event->waits_queued++;
    event->wait_stream = stream->id;
    event->wait_record = record;
    pthread_mutex_unlock(&event->lock);
    task->record = record;
    task->timeout_us = timeout_us;
    Moment *moment = us_event_moment(event, record);
    uint64_t ticket = 0;
    const bool queued =
        us_event_task_queue(stream, (Task){.work = {"event wait", "event", 0}, .run = run_wait, .ready = wait_is_ready,
                                           .release = release_wait, .argument = task, .anywhere = true, .after = moment,
                                           .unrecorded = true},
                            &ticket);
    us_order_let_go(moment);
    return queued;
}

bool us_event_recorded(const Event *public)
{
    EventState *event = event_state(public);
    pthread_mutex_lock(&event->lock);
    bool recorded = event->words->recorded > event->forgotten;
    pthread_mutex_unlock(&event->lock);
    return recorded;
}

bool us_event_complete(Event *public)
{
    EventState *event = event_state(public);
    allow_record(event);
    pthread_mutex_lock(&event->lock);
    uint64_t record = event->words->recorded;
    bool complete = record > event->forgotten && is_reached(event, record);
    pthread_mutex_unlock(&event->lock);
    if (complete) {
        us_order_seen(NULL, host_moment(event, record));
    }
    return complete;
}

bool us_event_waited(Event *public)
{
    EventState *event = event_state(public);
    pthread_mutex_lock(&event->lock);
    bool waited = event->waits_passed >= event->waits_queued;
    pthread_mutex_unlock(&event->lock);
    return waited;
}

DeviceFault us_event_fault(Event *public, Explanation *why)
{
    EventState *event = event_state(public);
    pthread_mutex_lock(&event->lock);
    StreamState *stream = event->words->recorded > event->forgotten ? hold_stream(event->stream) : NULL;
    pthread_mutex_unlock(&event->lock);
    if (stream == NULL) {
        return DEVICE_FAULT_NONE;
    }
    DeviceFault fault = us_stream_fault(&stream->public, why);
    us_stream_let_go(stream);
    return fault;
}

WaitStatus us_event_synchronize(Event *public, int64_t timeout_us)
{
    EventState *event = event_state(public);
    pthread_mutex_lock(&event->lock);
    uint64_t record = event->words->recorded > event->forgotten ? event->words->recorded : 0;
    pthread_mutex_unlock(&event->lock);
    Moment *moment = host_moment(event, record);
    if (!wait_for_record(event, record, timeout_us)) {
        us_order_let_go(moment);
        return WAIT_TIMEOUT;
    }
    us_order_seen(NULL, moment);
    return us_event_fault(public, NULL) == DEVICE_FAULT_NONE ? WAIT_DONE : WAIT_FAULT;
}

bool us_event_time(Event *public, uint64_t *nanoseconds)
{
    EventState *event = event_state(public);
    if (!us_event_complete(public)) {
        return false;
    }
    pthread_mutex_lock(&event->lock);
    *nanoseconds = event->time;
    pthread_mutex_unlock(&event->lock);
    return *nanoseconds != 0;
}
