/* Host functions in streams, and the threads that run them (cann-runtime 9, doc 12).
 *
 * A thread subscribes for streams; a callback of such a stream is put in the thread's queue when the stream reaches it,
 * and runs when the thread calls aclrtProcessReport. A stream that has to stand still until then waits for an event
 * that is recorded after the callback has returned. */
#include "ascend/ascendcl/runtime.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

typedef struct Report {
    struct Report *next;
    ReportQueue *queue;
    aclrtCallback function;
    void *user_data;
    Event *finished; /* NULL: the stream does not wait */
} Report;

/* All fields are guarded by Runtime.report_lock. */
struct ReportQueue {
    ReportQueue *next;
    uint64_t thread_id;
    Device *device;
    void **streams; /* handles of the streams this thread serves */
    size_t stream_count, stream_capacity;
    size_t references; /* the list, reports, threads that wait */
    Report *first, *last;
    pthread_cond_t arrived;
};

/* ---- queues, with the lock held ---- */

static ReportQueue *find_queue(const Runtime *runtime, uint64_t thread_id)
{
    ReportQueue *queue = runtime->report_queues;
    while (queue != NULL && queue->thread_id != thread_id) {
        queue = queue->next;
    }
    return queue;
}

static ReportQueue *new_queue(Runtime *runtime, uint64_t thread_id, Device *device)
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
    queue->thread_id = thread_id;
    queue->device = device;
    queue->references = 1;
    queue->next = runtime->report_queues;
    runtime->report_queues = queue;
    return queue;
}

static void let_go(ReportQueue *queue)
{
    if (--queue->references == 0) {
        pthread_cond_destroy(&queue->arrived);
        free(queue->streams);
        free(queue);
    }
}

static bool add_stream(ReportQueue *queue, Stream *stream)
{
    if (queue->stream_count == queue->stream_capacity) {
        size_t capacity = queue->stream_capacity == 0 ? 4 : 2 * queue->stream_capacity;
        void **streams = realloc(queue->streams, capacity * sizeof *streams);
        if (streams == NULL) {
            return false;
        }
        queue->streams = streams;
        queue->stream_capacity = capacity;
    }
    queue->streams[queue->stream_count++] = stream->handle;
    __atomic_store_n(&stream->vendor_state[STREAM_REPORT_QUEUE], (int64_t)(intptr_t)queue, __ATOMIC_RELEASE);
    return true;
}

static void remove_stream(ReportQueue *queue, Stream *stream)
{
    __atomic_store_n(&stream->vendor_state[STREAM_REPORT_QUEUE], 0, __ATOMIC_RELEASE);
    for (size_t i = 0; i < queue->stream_count; i++) {
        if (queue->streams[i] == stream->handle) {
            queue->streams[i] = queue->streams[--queue->stream_count];
            return;
        }
    }
}

static ReportQueue *queue_of_stream(const Stream *stream)
{
    return (ReportQueue *)(intptr_t)__atomic_load_n(&stream->vendor_state[STREAM_REPORT_QUEUE], __ATOMIC_ACQUIRE);
}

/* Takes a queue without streams out of the list; the reports still in it. */
static Report *close_queue(Runtime *runtime, ReportQueue *queue)
{
    ReportQueue **link = &runtime->report_queues;
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    Report *reports = queue->first;
    queue->first = queue->last = NULL;
    pthread_cond_broadcast(&queue->arrived);
    let_go(queue);
    return reports;
}

/* ---- reports, without the lock ---- */

/* Lets the stream that waits for the callback go on. A stream of its own, because any other may stand still. */
static void signal_finished(const Report *report, Device *device)
{
    Context *context = report->finished != NULL ? us_context_primary(device) : NULL;
    Stream *signals = context != NULL ? us_stream_create(context, 0) : NULL;
    if (signals != NULL) {
        us_event_record(report->finished, signals);
        us_stream_destroy(signals, true);
    }
    if (report->finished != NULL) {
        us_event_destroy(report->finished);
    }
}

static void end_report(Runtime *runtime, Report *report)
{
    signal_finished(report, report->queue->device);
    pthread_mutex_lock(&runtime->report_lock);
    let_go(report->queue);
    pthread_mutex_unlock(&runtime->report_lock);
    free(report);
}

/* What a stream carries: `report` is NULL once it has been delivered. */
typedef struct Delivery {
    Runtime *runtime;
    Report *report;
} Delivery;

static DeviceFault deliver(void *argument, Explanation *why)
{
    (void)why;
    Delivery *delivery = argument;
    Report *report = delivery->report;
    ReportQueue *queue = report->queue;
    pthread_mutex_lock(&delivery->runtime->report_lock);
    if (queue->stream_count > 0) { /* else the thread has unsubscribed, and nobody will run it */
        if (queue->last != NULL) {
            queue->last->next = report;
        } else {
            queue->first = report;
        }
        queue->last = report;
        delivery->report = NULL;
        pthread_cond_broadcast(&queue->arrived);
    }
    pthread_mutex_unlock(&delivery->runtime->report_lock);
    return DEVICE_FAULT_NONE;
}

static void release_delivery(void *argument)
{
    Delivery *delivery = argument;
    if (delivery->report != NULL) {
        end_report(delivery->runtime, delivery->report);
    }
    free(delivery);
}

/* Queues a report on its stream, and the stream's wait for it. False: no memory; the report is gone then. */
static bool send_report(Runtime *runtime, Report *report, bool blocks, Stream *stream)
{
    Event *finished = blocks ? us_event_create(stream->context) : NULL;
    Delivery *delivery = malloc(sizeof *delivery);
    report->finished = finished;
    if (delivery != NULL && (finished != NULL || !blocks)) {
        *delivery = (Delivery){runtime, report};
        if (us_stream_submit(stream, "aclrtLaunchCallback", deliver, release_delivery, delivery)) {
            /* The report may have run and be gone already; the event lives until it is signalled. */
            return !blocks || us_event_wait(stream, finished, true, -1);
        }
    }
    free(delivery);
    end_report(runtime, report);
    return false;
}

/* ---- subscriptions ---- */

static Runtime *require_runtime(Call *call)
{
    Runtime *runtime = acl_require_platform(call) != NULL ? acl_runtime() : NULL;
    us_require(call, runtime != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the runtime");
    return runtime;
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    Call call = us_call_begin("aclrtSubscribeReport");
    acl_require_context(&call, "context", "none");
    Stream *found = acl_require_stream(&call, "stream", "dead", stream);
    Runtime *runtime = require_runtime(&call);
    if (call.status != 0) {
        return acl_end(&call);
    }
    Device *device = found->context->device;
    pthread_mutex_lock(&runtime->report_lock);
    us_require(&call, queue_of_stream(found) == NULL, "stream", "subscribed", ACL_ERROR_RT_STREAM_SUBSCRIBE,
               "stream %d is served by a thread already", (int)found->id);
    ReportQueue *queue = find_queue(runtime, threadId);
    us_require(&call, queue == NULL || queue->device == device, "threadId", "device", ACL_ERROR_RT_THREAD_SUBSCRIBE,
               "thread %llu serves streams of device %d, not of device %d", (unsigned long long)threadId,
               (int)queue->device->ordinal, (int)device->ordinal);
    if (call.status == 0 && queue == NULL) {
        queue = new_queue(runtime, threadId, device);
    }
    us_require(&call, queue != NULL && add_stream(queue, found), "threadId", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory for the subscription");
    pthread_mutex_unlock(&runtime->report_lock);
    return acl_end(&call);
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    Call call = us_call_begin("aclrtUnSubscribeReport");
    acl_require_context(&call, "context", "none");
    Stream *found = acl_require_stream(&call, "stream", "dead", stream);
    Runtime *runtime = require_runtime(&call);
    if (call.status != 0) {
        return acl_end(&call);
    }
    Report *dropped = NULL;
    pthread_mutex_lock(&runtime->report_lock);
    ReportQueue *queue = find_queue(runtime, threadId);
    us_require(&call, queue_of_stream(found) != NULL, "stream", "unsubscribed", ACL_ERROR_RT_STREAM_SUBSCRIBE,
               "stream %d is not served by any thread", (int)found->id);
    us_require(&call, queue_of_stream(found) == queue, "threadId", "unsubscribed", ACL_ERROR_RT_THREAD_SUBSCRIBE,
               "thread %llu does not serve stream %d", (unsigned long long)threadId, (int)found->id);
    if (call.status == 0) {
        remove_stream(queue, found);
        dropped = queue->stream_count == 0 ? close_queue(runtime, queue) : NULL;
    }
    pthread_mutex_unlock(&runtime->report_lock);
    while (dropped != NULL) {
        Report *next = dropped->next;
        end_report(runtime, dropped);
        dropped = next;
    }
    return acl_end(&call);
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream)
{
    Call call = us_call_begin("aclrtLaunchCallback");
    us_require(&call, blockType == ACL_CALLBACK_NO_BLOCK || blockType == ACL_CALLBACK_BLOCK, "blockType", "range",
               ACL_ERROR_INVALID_PARAM, "blockType is %d; it must be 0 or 1", (int)blockType);
    us_require(&call, fn != NULL, "fn", "null", ACL_ERROR_RT_PARAM_INVALID, "fn is NULL; it is what shall run");
    acl_require_context(&call, "context", "none");
    Stream *found = acl_require_stream(&call, "stream", "dead", stream);
    Runtime *runtime = require_runtime(&call);
    if (call.status != 0) {
        return acl_end(&call);
    }
    int64_t settings = __atomic_load_n(&found->vendor_state[STREAM_SETTINGS], __ATOMIC_RELAXED);
    Report *report = calloc(1, sizeof *report);
    pthread_mutex_lock(&runtime->report_lock);
    ReportQueue *queue = queue_of_stream(found);
    us_require(&call, queue != NULL, "stream", "unsubscribed", ACL_ERROR_RT_STREAM_NO_CB_REG,
               "stream %d is not served by any thread: call aclrtSubscribeReport first", (int)found->id);
    us_require(&call, (settings & STREAM_RUNS_HOST_FUNCTIONS) == 0, "stream", "host-function",
               ACL_ERROR_RT_STREAM_SUBSCRIBE, "stream %d has been used with aclrtLaunchHostFunc",
               (int)found->id);
    us_require(&call, report != NULL, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory to queue the callback");
    if (call.status == 0) {
        queue->references++;
    }
    pthread_mutex_unlock(&runtime->report_lock);
    if (call.status != 0) {
        free(report);
        return acl_end(&call);
    }
    *report = (Report){.queue = queue, .function = fn, .user_data = userData};
    us_require(&call, send_report(runtime, report, blockType == ACL_CALLBACK_BLOCK, found), "stream", "resources",
               ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the callback");
    return acl_end(&call);
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

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* With the lock held: waits until there are reports, the queue is closed, or the time is over. */
static void wait_for_reports(Runtime *runtime, ReportQueue *queue, int32_t timeout_ms)
{
    enum { LOOK_AGAIN_NS = 5000000 };
    int64_t end = now_ms() + timeout_ms;
    while (queue->first == NULL && queue->stream_count > 0 && (timeout_ms < 0 || now_ms() < end)) {
        let_streams_run(queue);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_AGAIN_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&queue->arrived, &runtime->report_lock, &until);
    }
}

static Report *take_reports(Runtime *runtime, Call *call, int32_t timeout_ms)
{
    pthread_mutex_lock(&runtime->report_lock);
    ReportQueue *queue = find_queue(runtime, (uint64_t)pthread_self());
    us_require(call, queue != NULL, "thread", "unsubscribed", ACL_ERROR_RT_THREAD_SUBSCRIBE,
               "this thread (%llu) serves no stream: call aclrtSubscribeReport with its id first",
               (unsigned long long)pthread_self());
    Report *reports = NULL;
    if (call->status == 0) {
        queue->references++;
        wait_for_reports(runtime, queue, timeout_ms);
        reports = queue->first;
        queue->first = queue->last = NULL;
        let_go(queue);
    }
    pthread_mutex_unlock(&runtime->report_lock);
    return reports;
}

aclError aclrtProcessReport(int32_t timeout)
{
    Call call = us_call_begin("aclrtProcessReport");
    us_require(&call, timeout == -1 || timeout > 0, "timeout", "range", ACL_ERROR_INVALID_PARAM,
               "timeout is %d; it must be -1 (no limit) or a positive number of milliseconds", (int)timeout);
    Runtime *runtime = require_runtime(&call);
    Report *reports = runtime != NULL ? take_reports(runtime, &call, timeout) : NULL;
    us_require(&call, reports != NULL, "timeout", "expired", ACL_ERROR_RT_REPORT_TIMEOUT,
               "no callback arrived within %d ms", (int)timeout);
    while (reports != NULL) {
        Report *next = reports->next;
        reports->function(reports->user_data);
        end_report(runtime, reports);
        reports = next;
    }
    return acl_end(&call);
}

/* ---- functions on the runtime's own threads ---- */

typedef struct HostFunction {
    aclrtHostFunc function;
    void *arguments;
} HostFunction;

static DeviceFault run_host_function(void *argument, Explanation *why)
{
    (void)why;
    const HostFunction *call = argument;
    call->function(call->arguments);
    return DEVICE_FAULT_NONE;
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
    Call call = us_call_begin("aclrtLaunchHostFunc");
    us_require(&call, fn != NULL, "fn", "null", ACL_ERROR_RT_PARAM_INVALID, "fn is NULL; it is what shall run");
    Stream *found = acl_require_work_stream(&call, stream);
    us_require(&call, queue_of_stream(found) == NULL, "stream", "subscribed", ACL_ERROR_RT_STREAM_SUBSCRIBE,
               "stream %d is served by a thread (aclrtSubscribeReport)", (int)found->id);
    if (call.status != 0) {
        return acl_end(&call);
    }
    HostFunction *task = malloc(sizeof *task);
    bool queued = false;
    if (task != NULL) {
        *task = (HostFunction){fn, args};
        __atomic_fetch_or(&found->vendor_state[STREAM_SETTINGS], STREAM_RUNS_HOST_FUNCTIONS, __ATOMIC_RELAXED);
        queued = us_stream_submit(found, "aclrtLaunchHostFunc", run_host_function, free, task);
        if (!queued) {
            free(task);
        }
    }
    us_require(&call, queued, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "no host memory to queue the function");
    return acl_end(&call);
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)
{
    Call call = us_call_begin("aclrtSetExceptionInfoCallback");
    Runtime *runtime = require_runtime(&call);
    if (call.status == 0) {
        atomic_store(&runtime->exception_callback, callback);
    }
    return acl_end(&call);
}
