/* Events. Each record has a number; an event is complete when the latest record has run. */
#include "device/event_internal.h"
#include "device/graph.h"
#include "device/order.h"
#include "device/process_end.h"
#include "device/signal.h"

#include "report/grace.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <unistd.h>

struct EventState {
    Event public;
    References references; /* the handle, queued records, resets and waits */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    SignalWords own;        /* of an event of this process */
    SignalWords *words;     /* `own`, or memory of several processes */
    int file;               /* of that memory; -1: the event is this process's */
    uint64_t forgotten;     /* records up to here were undone by a reset */
    uint64_t time;          /* nanoseconds at which `completed` ran; 0: it was dropped */
    uint64_t waits_queued, waits_passed;
    StreamState *stream;    /* of the latest record: held */
    uint64_t stream_ticket;
    uint64_t sources;       /* grows when those two change */
    Moment *moment;         /* of a record: held; NULL: nobody watches */
    uint64_t moment_record; /* the latest of this process */
    EventCapture capture;
    _Atomic bool captured; /* `capture` may say something */
};

static EventState *event_state(const Event *event)
{
    return (EventState *)event;
}

static bool is_shared(const EventState *event)
{
    return event->words != &event->own;
}

static void end_event(void *argument)
{
    EventState *event = argument;
    us_order_let_go(event->moment);
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    if (is_shared(event)) {
        us_signal_close(event->words);
        close(event->file);
    }
    free(event);
}

static void let_go(EventState *event)
{
    if (us_reference_drop(&event->references)) {
        us_event_end_capture(&event->public);
        if (event->stream != NULL) {
            us_stream_let_go(event->stream);
        }
        us_grace_bury(end_event, event);
    }
}

/* `words` (may be NULL) and `file` become the event's, also when it cannot be made. */
static Event *new_event(Context *context, SignalWords *words, int file)
{
    static _Atomic int32_t next_id = 0;
    EventState *event = calloc(1, sizeof *event);
    if (event == NULL) {
        if (words != NULL) {
            us_signal_close(words);
            close(file);
        }
        return NULL;
    }
    event->public.context = context;
    event->public.id = atomic_fetch_add(&next_id, 1);
    event->words = words != NULL ? words : &event->own;
    event->file = file;
    atomic_init(&event->references, 1);
    pthread_mutex_init(&event->lock, NULL);
    us_condition_init(&event->changed);
    event->public.handle = us_handle_create(HANDLE_EVENT, event);
    if (event->public.handle == NULL) {
        let_go(event);
        return NULL;
    }
    return &event->public;
}

Event *us_event_create(Context *context)
{
    return new_event(context, NULL, -1);
}

void us_event_destroy(Event *public)
{
    EventState *event = event_state(public);
    if (us_handle_end(public->handle, HANDLE_EVENT) != NULL) {
        if (is_shared(event)) {
            us_ipc_withdraw_file(event->file);
        }
        let_go(event);
    }
}

/* ---- of several processes ---- */

/* An event whose words are in a file, which it takes over. */
static Event *open_event(Context *context, int file)
{
    SignalWords *words = file >= 0 ? us_signal_open(file) : NULL;
    Event *event = words != NULL ? new_event(context, words, file) : NULL;
    if (words == NULL && file >= 0) {
        close(file);
    }
    return event;
}

Event *us_event_create_shared(Context *context)
{
    return open_event(context, us_signal_create());
}

IpcStatus us_event_share(Event *public, uint64_t *key)
{
    const EventState *event = event_state(public);
    const Device *device = public->context->device;
    IpcNote note = {.kind = IPC_EVENT, .platform = device->platform->id,
                    .device = device->platform->physical_number[device->ordinal]};
    if (!is_shared(event)) {
        return IPC_UNKNOWN;
    }
    return us_ipc_offered(event->file, key) ? IPC_OK : us_ipc_offer(event->file, &note, true, key);
}

IpcStatus us_event_import(Context *context, uint64_t key, Event **event, Explanation *why)
{
    IpcNote note;
    int file = -1;
    IpcStatus status = us_ipc_fetch(key, IPC_EVENT, context->device->platform->id, &note, &file, why);
    Event *opened = status == IPC_OK ? open_event(context, file) : NULL;
    if (status == IPC_OK && opened == NULL) {
        us_explain(why, "no host memory is left for an event");
        return IPC_EXHAUSTED;
    }
    if (opened != NULL) {
        *event = opened;
    }
    return status;
}

Event *us_event_of_handle(const void *handle)
{
    EventState *event = us_handle_object(handle, HANDLE_EVENT);
    return event == NULL ? NULL : &event->public;
}

/* ---- as graphs see it ---- */

Event *us_event_public(EventState *event)
{
    return &event->public;
}

bool us_event_hold(EventState *event)
{
    return us_reference_take(&event->references);
}

void us_event_let_go(EventState *event)
{
    let_go(event);
}

EventCapture *us_event_capture(Event *event)
{
    return &event_state(event)->capture;
}

void us_event_mark_captured(Event *event, bool captured)
{
    atomic_store(&event_state(event)->captured, captured);
}

bool us_event_is_captured(const Event *event)
{
    return atomic_load(&event_state(event)->captured) && us_event_has_open_capture((Event *)event);
}

/* ---- tasks ---- */

typedef struct EventTask {
    EventState *event;
    uint64_t record; /* the record that is made, undone or waited for */
    int64_t timeout_us;
} EventTask;

/* NULL: no memory, or the event has ended. */
static EventTask *new_task(EventState *event)
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

static void release_task(void *argument)
{
    EventTask *task = argument;
    let_go(task->event);
    free(task);
}

static bool queue_task(Stream *stream, Task task, uint64_t *ticket)
{
    if (!us_stream_queue(stream_state(stream), task, ticket)) {
        task.release(task.argument);
        return false;
    }
    return true;
}

void us_event_reach(EventState *event, uint64_t record, uint64_t time)
{
    pthread_mutex_lock(&event->lock);
    uint64_t before = atomic_load(&event->words->completed);
    while (record > before && !atomic_compare_exchange_weak(&event->words->completed, &before, record)) {
    }
    if (record > before) {
        event->time = time;
        pthread_cond_broadcast(&event->changed);
    }
    pthread_mutex_unlock(&event->lock);
    if (record > before && is_shared(event)) {
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
    release_task(task);
}

uint64_t us_event_issue_record(EventState *event)
{
    pthread_mutex_lock(&event->lock);
    uint64_t number = atomic_fetch_add(&event->words->recorded, 1) + 1;
    atomic_store(&event->words->recorder, (int32_t)getpid());
    pthread_mutex_unlock(&event->lock);
    return number;
}

void us_event_record_comes_from(EventState *event, uint64_t record, StreamState *stream, uint64_t ticket)
{
    StreamState *previous = us_stream_hold(stream) ? stream : NULL;
    Moment *moment = us_order_moment(stream, ticket);
    pthread_mutex_lock(&event->lock);
    if (previous != NULL && record == event->words->recorded) {
        previous = event->stream;
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
    if (is_shared(event)) {
        us_stream_allow(stream, ticket); /* whoever waits elsewhere cannot */
    }
    if (previous != NULL) {
        us_stream_let_go(previous);
    }
}

/* The caller holds the event and the stream. */
static bool record(EventState *event, Stream *stream)
{
    EventTask *task = new_task(event);
    if (task == NULL) {
        return false;
    }
    uint64_t number = task->record = us_event_issue_record(event);
    uint64_t ticket = 0;
    bool queued = queue_task(stream, (Task){.work = {"event record", "event", 0}, .run = run_record,
                                             .release = release_record, .argument = task, .anywhere = true}, &ticket);
    if (queued) {
        us_event_record_comes_from(event, number, stream_state(stream), ticket);
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
    let_go(event);
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

bool us_event_reset(Event *public, Stream *stream)
{
    EventState *event = event_state(public);
    EventTask *task = new_task(event);
    if (task == NULL) {
        return false;
    }
    pthread_mutex_lock(&event->lock);
    task->record = event->words->recorded;
    pthread_mutex_unlock(&event->lock);
    uint64_t ticket = 0;
    return queue_task(stream, (Task){.work = {"event reset", "event", 0}, .run = run_reset,
                                     .release = release_task, .argument = task, .anywhere = true}, &ticket);
}

/* ---- waiting ---- */

bool us_event_is_reached(EventState *event, uint64_t record)
{
    return atomic_load(&event->words->completed) >= record;
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
    if (is_shared(event)) {
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
    if (!us_event_is_reached(event, record) && !us_task_gives_up() && event->sources == sources) {
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
        if (is_shared(event)) {
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
    release_task(task);
}

uint64_t us_event_awaited(EventState *event, bool block)
{
    pthread_mutex_lock(&event->lock);
    bool recorded = event->words->recorded > event->forgotten;
    uint64_t record = recorded ? event->words->recorded : block ? event->words->recorded + 1 : 0;
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

void us_event_order(EventState *event, uint64_t record, StreamState *stream)
{
    if (record > 0) {
        Moment *moment = moment_of(event, record);
        us_order_wait(stream, moment);
        us_order_let_go(moment);
    }
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
    EventTask *task = new_task(event);
    if (task == NULL) {
        return false;
    }
    pthread_mutex_lock(&event->lock);
    event->waits_queued++;
    pthread_mutex_unlock(&event->lock);
    task->record = record;
    task->timeout_us = timeout_us;
    us_event_order(event, record, stream_state(stream));
    uint64_t ticket = 0;
    return queue_task(stream, (Task){.work = {"event wait", "event", 0}, .run = run_wait, .ready = wait_is_ready,
                                     .release = release_wait, .argument = task, .anywhere = true}, &ticket);
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
    bool complete = event->words->recorded > event->forgotten && event->words->completed >= event->words->recorded;
    uint64_t record = event->words->recorded;
    pthread_mutex_unlock(&event->lock);
    if (complete) {
        us_order_seen(NULL, moment_of(event, record));
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
    Moment *moment = moment_of(event, record);
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
