/* A thread subscribes for streams; a function of such a stream is put in the thread's queue when the stream reaches it, and
 * runs when the thread asks. A stream that has to stand still until then waits for an event that is recorded after the
 * function has returned. In a model all this happens in every run. */
#include "ascend/ascendcl/report_queue.h"
#include "device/event_internal.h"
#include "device/graph.h"
#include "report/grow.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* What a stream waits for: each delivery issues a record, which is over when the function has returned. Its users are the
 * task that delivers, and reports that have not run yet. */
typedef struct Finish {
    Event *event;
    _Atomic int users;
} Finish;

typedef struct Report {
    struct Report *next;
    aclrtCallback function;
    void *user_data;
    Finish *finish; /* NULL: the stream does not wait */
    uint64_t record; /* that the stream waits for: an earlier run of a model had another one */
} Report;

/* All fields are guarded by Runtime.report_lock. */
struct ReportQueue {
    ReportQueue *next;
    QueueKind kind;
    uint64_t thread_id;
    Device *device; /* of its streams */
    void **streams; /* handles of the streams this thread serves */
    size_t stream_count, stream_capacity;
    bool awaited; /* its thread waits for reports */
    Report *first, *last;
    pthread_cond_t arrived;
};

/* ---- queues, with the lock held ---- */

static ReportQueue *find_queue(const Runtime *runtime, QueueKind kind, uint64_t thread_id)
{
    ReportQueue *queue = runtime->report_queues;
    while (queue != NULL && (queue->kind != kind || queue->thread_id != thread_id)) {
        queue = queue->next;
    }
    return queue;
}

static ReportQueue *new_queue(Runtime *runtime, QueueKind kind, uint64_t thread_id)
{
    ReportQueue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return NULL;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    queue->kind = kind;
    queue->thread_id = thread_id;
    queue->next = runtime->report_queues;
    runtime->report_queues = queue;
    return queue;
}

/* Ends a queue that has neither streams nor reports, nor a thread that looks at it. */
static void end_if_over(Runtime *runtime, ReportQueue *queue)
{
    if (queue->stream_count > 0 || queue->first != NULL || queue->awaited) {
        return;
    }
    ReportQueue **link = &runtime->report_queues;
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    pthread_cond_destroy(&queue->arrived);
    free(queue->streams);
    free(queue);
}

static bool add_stream(ReportQueue *queue, Stream *stream)
{
    void **streams = us_grown(queue->streams, queue->stream_count, &queue->stream_capacity, sizeof *streams);
    if (streams == NULL) {
        return false;
    }
    queue->streams = streams;
    queue->streams[queue->stream_count++] = stream->handle;
    queue->device = stream->context->device;
    __atomic_store_n(&stream->vendor_state[queue->kind], (int64_t)(intptr_t)queue, __ATOMIC_RELEASE);
    return true;
}

static void remove_stream(ReportQueue *queue, Stream *stream)
{
    __atomic_store_n(&stream->vendor_state[queue->kind], 0, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&queue->arrived); /* it may have been the last */
    for (size_t i = 0; i < queue->stream_count; i++) {
        if (queue->streams[i] == stream->handle) {
            queue->streams[i] = queue->streams[--queue->stream_count];
            return;
        }
    }
}

static ReportQueue *queue_of_stream(QueueKind kind, const Stream *stream)
{
    return (ReportQueue *)(intptr_t)__atomic_load_n(&stream->vendor_state[kind], __ATOMIC_ACQUIRE);
}

bool queue_serves(QueueKind kind, const Stream *stream)
{
    return queue_of_stream(kind, stream) != NULL;
}

static Report *take_all(ReportQueue *queue)
{
    Report *reports = queue->first;
    queue->first = queue->last = NULL;
    return reports;
}

/* ---- reports, without the lock ---- */

static Finish *new_finish(Context *context)
{
    Finish *finish = malloc(sizeof *finish);
    Event *event = finish != NULL ? us_event_create(context) : NULL;
    if (event == NULL) {
        free(finish);
        return NULL;
    }
    finish->event = event;
    atomic_init(&finish->users, 1);
    return finish;
}

static void let_go_finish(Finish *finish)
{
    if (finish != NULL && atomic_fetch_sub(&finish->users, 1) == 1) {
        us_event_destroy(finish->event);
        free(finish);
    }
}

static uint64_t issue_record(const Finish *finish)
{
    return finish != NULL ? us_event_issue_record((EventState *)finish->event) : 0;
}

/* Lets the stream that waits for the record go on. No stream makes it: any may stand still, or its context may end. */
static void signal_finished(const Finish *finish, uint64_t record)
{
    if (finish != NULL) {
        us_event_reach((EventState *)finish->event, record, us_now());
    }
}

static void end_report(Report *report)
{
    signal_finished(report->finish, report->record);
    let_go_finish(report->finish);
    free(report);
}

/* What a stream carries, once or, in a model, as often as it runs. */
typedef struct Delivery {
    Runtime *runtime;
    QueueKind kind;
    Stream *stream; /* the one that is served; held: its handle ends before its tasks do, and models outlive it */
    bool delivered;
    Report report; /* as it is put in the queue */
} Delivery;

static DeviceFault deliver(void *argument, Explanation *why)
{
    Delivery *delivery = argument;
    Report *report = malloc(sizeof *report);
    if (report == NULL) {
        us_explain(why, "no host memory for a report");
        return DEVICE_FAULT_NO_MEMORY;
    }
    *report = delivery->report;
    report->record = issue_record(report->finish);
    if (report->finish != NULL) {
        atomic_fetch_add(&report->finish->users, 1);
    }
    pthread_mutex_lock(&delivery->runtime->report_lock);
    ReportQueue *queue = queue_of_stream(delivery->kind, delivery->stream);
    if (queue != NULL) {
        *(queue->last != NULL ? &queue->last->next : &queue->first) = report;
        queue->last = report;
        pthread_cond_broadcast(&queue->arrived);
    }
    pthread_mutex_unlock(&delivery->runtime->report_lock);
    delivery->delivered = true;
    if (queue == NULL) { /* the thread has unsubscribed, or the stream has ended: nobody will run it */
        end_report(report);
    }
    return DEVICE_FAULT_NONE;
}

static void release_delivery(void *argument)
{
    Delivery *delivery = argument;
    Finish *finish = delivery->report.finish;
    if (!delivery->delivered) {
        signal_finished(finish, issue_record(finish));
    }
    let_go_finish(finish);
    us_stream_let_go(stream_state(delivery->stream));
    free(delivery);
}

/* The stream's wait for its report. */
static bool wait_for_report(Stream *stream, Event *event, bool recorded)
{
    if (!recorded) {
        return us_event_wait(stream, event, true, -1);
    }
    /* What an invalid capture gets is dropped, as tasks are; so is what comes when it is over. */
    return us_capture_external_wait(stream, event, true) != CAPTURE_FAULT_NO_MEMORY;
}

/* Queues a report on its stream, and the stream's wait for it. False: no memory. */
static bool send_report(Runtime *runtime, const char *name, QueueKind kind, Report report, bool blocks, Stream *stream)
{
    Finish *finish = blocks ? new_finish(stream->context) : NULL;
    Delivery *delivery = malloc(sizeof *delivery);
    if (delivery == NULL || (blocks && finish == NULL) || !us_stream_hold(stream_state(stream))) {
        let_go_finish(finish);
        free(delivery);
        return false;
    }
    report.finish = finish;
    *delivery = (Delivery){runtime, kind, stream, false, report};
    if (finish != NULL) {
        atomic_fetch_add(&finish->users, 1); /* the task may be over before this function is */
    }
    const Task task = {.work = {name, "task", 0}, .run = deliver, .release = release_delivery, .argument = delivery};
    uint64_t ticket = 0;
    bool sent = us_stream_queue(stream_state(stream), task, &ticket);
    if (!sent) {
        release_delivery(delivery);
    } else if (blocks) {
        sent = wait_for_report(stream, finish->event, ticket == 0);
    }
    let_go_finish(finish);
    return sent;
}

/* ---- subscriptions ---- */

/* The stream has ended, and its tasks are over; the thread still runs what they have put in its queue. */
static void serve_no_more(Stream *stream)
{
    Runtime *runtime = acl_runtime();
    pthread_mutex_lock(&runtime->report_lock);
    for (QueueKind kind = QUEUE_OF_CALLBACKS; kind <= QUEUE_OF_HOST_FUNCTIONS; kind++) {
        ReportQueue *queue = queue_of_stream(kind, stream);
        if (queue != NULL) {
            remove_stream(queue, stream);
            end_if_over(runtime, queue);
        }
    }
    pthread_mutex_unlock(&runtime->report_lock);
}

void queue_subscribe(Call *call, QueueKind kind, uint64_t thread_id, aclrtStream handle)
{
    acl_require_context(call, "context", "none");
    Stream *stream = acl_require_stream(call, "stream", "dead", handle);
    Runtime *runtime = acl_require_runtime(call);
    if (call->status != 0) {
        return;
    }
    Device *device = stream->context->device;
    pthread_mutex_lock(&runtime->report_lock);
    us_require(call, !queue_serves(kind, stream), "stream", "subscribed", ACL_ERROR_RT_STREAM_SUBSCRIBE,
               "stream %d is served by a thread already", (int)stream->id);
    ReportQueue *queue = find_queue(runtime, kind, thread_id);
    us_require(call, queue == NULL || queue->stream_count == 0 || queue->device == device, "threadId", "device",
               ACL_ERROR_RT_THREAD_SUBSCRIBE, "thread %llu serves streams of device %d, not of device %d",
               (unsigned long long)thread_id, (int)queue->device->ordinal, (int)device->ordinal);
    if (call->status == 0 && queue == NULL) {
        queue = new_queue(runtime, kind, thread_id);
    }
    us_require(call, queue != NULL && add_stream(queue, stream), "threadId", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory for the subscription");
    if (call->status == 0) {
        atomic_store(&stream->at_end, serve_no_more);
    }
    pthread_mutex_unlock(&runtime->report_lock);
}

void queue_unsubscribe(Call *call, QueueKind kind, uint64_t thread_id, aclrtStream handle)
{
    acl_require_context(call, "context", "none");
    Stream *stream = acl_require_stream(call, "stream", "dead", handle);
    Runtime *runtime = acl_require_runtime(call);
    if (call->status != 0) {
        return;
    }
    Report *dropped = NULL;
    pthread_mutex_lock(&runtime->report_lock);
    ReportQueue *queue = find_queue(runtime, kind, thread_id);
    us_require(call, queue_serves(kind, stream), "stream", "unsubscribed", ACL_ERROR_RT_STREAM_SUBSCRIBE,
               "stream %d is not served by any thread", (int)stream->id);
    us_require(call, queue_of_stream(kind, stream) == queue, "threadId", "unsubscribed", ACL_ERROR_RT_THREAD_SUBSCRIBE,
               "thread %llu does not serve stream %d", (unsigned long long)thread_id, (int)stream->id);
    if (call->status == 0) {
        remove_stream(queue, stream);
        dropped = queue->stream_count == 0 ? take_all(queue) : NULL;
        end_if_over(runtime, queue);
    }
    pthread_mutex_unlock(&runtime->report_lock);
    while (dropped != NULL) {
        Report *next = dropped->next;
        end_report(dropped);
        dropped = next;
    }
}

/* ---- the streams ---- */

/* Streams that get work while a thread waits for their reports must be let run (deferred mode). */
static void tell_arrival(Runtime *runtime, QueueKind kind, const Stream *stream)
{
    pthread_mutex_lock(&runtime->report_lock);
    ReportQueue *queue = queue_of_stream(kind, stream);
    if (queue != NULL) {
        pthread_cond_broadcast(&queue->arrived);
    }
    pthread_mutex_unlock(&runtime->report_lock);
}

void queue_submit(Call *call, QueueKind kind, Stream *stream, aclrtCallback function, void *user_data, bool blocks)
{
    Runtime *runtime = acl_require_runtime(call);
    us_require(call, queue_serves(kind, stream), "stream", "unsubscribed", ACL_ERROR_RT_STREAM_NO_CB_REG,
               "stream %d is not served by any thread: call aclrtSubscribeReport first", (int)stream->id);
    if (call->status != 0) {
        return;
    }
    const Report report = {.function = function, .user_data = user_data};
    us_require(call, send_report(runtime, call->function, kind, report, blocks, stream), "stream", "resources",
               ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the callback");
    tell_arrival(runtime, kind, stream);
}

/* ---- the serving thread ---- */

/* In deferred mode streams run only when something waits for them. */
static void let_streams_run(const ReportQueue *queue)
{
    for (size_t i = 0; i < queue->stream_count; i++) {
        Stream *stream = us_stream_of_handle(queue->streams[i]);
        if (stream != NULL) {
            us_stream_idle(stream);
        }
    }
}

/* With the lock held: waits until there are reports, the queue is closed, or the time is over. */
static void wait_for_reports(Runtime *runtime, ReportQueue *queue, int32_t timeout_ms)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_ms / 1000;
    end.tv_nsec += timeout_ms % 1000 * 1000000L;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    bool expired = false;
    while (queue->first == NULL && queue->stream_count > 0 && !expired) {
        let_streams_run(queue);
        if (timeout_ms < 0) {
            pthread_cond_wait(&queue->arrived, &runtime->report_lock);
        } else {
            expired = pthread_cond_timedwait(&queue->arrived, &runtime->report_lock, &end) != 0;
        }
    }
}

static Report *take_reports(Runtime *runtime, Call *call, QueueKind kind, int32_t timeout_ms)
{
    pthread_mutex_lock(&runtime->report_lock);
    ReportQueue *queue = find_queue(runtime, kind, (uint64_t)pthread_self());
    us_require(call, queue != NULL, "thread", "unsubscribed", ACL_ERROR_RT_THREAD_SUBSCRIBE,
               "this thread (%llu) serves no stream: subscribe with its id first",
               (unsigned long long)pthread_self());
    Report *reports = NULL;
    if (call->status == 0) {
        queue->awaited = true;
        wait_for_reports(runtime, queue, timeout_ms);
        queue->awaited = false;
        reports = take_all(queue);
        end_if_over(runtime, queue);
    }
    pthread_mutex_unlock(&runtime->report_lock);
    return reports;
}

void queue_process(Call *call, QueueKind kind, int32_t timeout_ms)
{
    us_require(call, timeout_ms == -1 || timeout_ms > 0, "timeout", "range", ACL_ERROR_INVALID_PARAM,
               "timeout is %d; it must be -1 (no limit) or a positive number of milliseconds", (int)timeout_ms);
    Runtime *runtime = acl_require_runtime(call);
    Report *reports = runtime != NULL ? take_reports(runtime, call, kind, timeout_ms) : NULL;
    us_require(call, reports != NULL, "timeout", "expired", ACL_ERROR_RT_REPORT_TIMEOUT,
               "nothing arrived within %d ms, or the thread serves no stream any more", (int)timeout_ms);
    while (reports != NULL) {
        Report *next = reports->next;
        reports->function(reports->user_data);
        end_report(reports);
        reports = next;
    }
}
