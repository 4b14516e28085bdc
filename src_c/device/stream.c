/* Streams: a queue of tasks and the thread that works on it.
 *
 * async    the stream's worker runs tasks as they come; a thread that waits for the stream takes part.
 * inline   the submitting thread runs them, unless the next task has to wait for something; then the worker goes on.
 * deferred the worker runs tasks only up to what somebody waits for. */
#include "device/order.h"

#include "report/caller.h"
#include "report/grace.h"
#include "report/thread.h"
#include "report/trace.h"
#include "tensor/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const mode_choices[] = {"async", "inline", "deferred", NULL};
static int stream_mode = STREAM_MODE_ASYNC;

static void read_mode(void)
{
    stream_mode = us_environment_choice("UNDERSTUDY_STREAM", mode_choices, STREAM_MODE_ASYNC);
}

StreamMode us_stream_mode(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_mode);
    return (StreamMode)stream_mode;
}

/* ---- life ---- */

bool us_stream_hold(StreamState *stream)
{
    return us_reference_take(&stream->references);
}

static void end_stream(void *argument)
{
    StreamState *stream = argument;
    us_order_end(stream);
    us_context_let_go(stream->public.context);
    pthread_cond_destroy(&stream->work);
    pthread_cond_destroy(&stream->done);
    pthread_mutex_destroy(&stream->lock);
    pthread_mutex_destroy(&stream->sleep_lock);
    free(stream);
}

void us_stream_let_go(StreamState *stream)
{
    if (us_reference_drop(&stream->references)) {
        us_grace_bury(end_stream, stream);
    }
}

/* A lock that is looked at for a while before a thread sleeps on it: who queues, who runs and who waits meet here within
 * a fraction of a microsecond, and a sleep takes several. */
static void init_spinning(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

Stream *us_stream_create(Context *context, uint32_t internal_flags)
{
    static _Atomic int32_t next_id = 0;
    StreamState *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    if (!us_context_hold(context)) {
        free(stream);
        return NULL;
    }
    stream->public.context = context;
    stream->device = context->device;
    stream->public.internal_flags = internal_flags;
    stream->public.id = atomic_fetch_add(&next_id, 1);
    atomic_init(&stream->references, 1);
    init_spinning(&stream->lock);
    pthread_mutex_init(&stream->sleep_lock, NULL);
    us_condition_init(&stream->work);
    us_condition_init(&stream->done);
    stream->public.handle = us_handle_create(HANDLE_STREAM, stream);
    if (stream->public.handle == NULL) {
        us_stream_let_go(stream);
        return NULL;
    }
    if (!us_context_add_stream(context, stream)) {
        us_handle_end(stream->public.handle, HANDLE_STREAM);
        us_stream_let_go(stream);
        return NULL;
    }
    return &stream->public;
}

Stream *us_stream_of_handle(const void *handle)
{
    StreamState *stream = us_handle_object(handle, HANDLE_STREAM);
    return stream == NULL ? NULL : &stream->public;
}

static void drop_rest(StreamState *stream);

/* Waits until the worker has run its last task; false when that takes longer than the deadline, if there is one. */
static bool worker_leaves(StreamState *stream, const struct timespec *deadline)
{
    bool expired = false;
    pthread_mutex_lock(&stream->lock);
    while (!stream->worker_left && !expired) {
        if (deadline == NULL) {
            pthread_cond_wait(&stream->done, &stream->lock);
        } else {
            expired = pthread_cond_timedwait(&stream->done, &stream->lock, deadline) != 0;
        }
    }
    bool left = stream->worker_left;
    pthread_mutex_unlock(&stream->lock);
    return left;
}

/* Ends the worker; a worker that ends its own stream (from a host callback) cannot wait for itself. */
static void stop_worker(StreamState *stream, const struct timespec *deadline)
{
    pthread_mutex_lock(&stream->lock);
    bool exists = stream->worker_exists;
    stream->stopping = true;
    stream->worker_exists = false;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    us_stream_rouse(stream);
    if (!exists) {
        return;
    }
    if (!pthread_equal(stream->worker, pthread_self()) && worker_leaves(stream, deadline)) {
        pthread_join(stream->worker, NULL);
    } else {
        pthread_detach(stream->worker);
    }
}

static bool is_own_worker(StreamState *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool own = stream->worker_exists && pthread_equal(stream->worker, pthread_self());
    pthread_mutex_unlock(&stream->lock);
    return own;
}

enum { LOOK_AGAIN_US = 5000 };

/* Code of the program may never return: nobody waits long for it. */
static bool is_worth_waiting(const StreamState *stream, uint64_t start)
{
    static const uint64_t PATIENCE = 500 * 1000000u;
    return us_now() - start < PATIENCE || !atomic_load(&stream->runs_program);
}

static void abort_patiently(StreamState *stream)
{
    uint64_t ticket = us_stream_drop(stream);
    uint64_t start = us_now();
    while (!us_stream_wait_ticket(stream, ticket, LOOK_AGAIN_US) && is_worth_waiting(stream, start)) {
    }
}

/* Until the thread that destroys the stream has done so: memory that its tasks use may be freed after that. */
static void wait_for_end(StreamState *stream)
{
    uint64_t start = us_now();
    pthread_mutex_lock(&stream->lock);
    while (!stream->gone && is_worth_waiting(stream, start)) {
        struct timespec deadline = us_deadline(LOOK_AGAIN_US * 1000);
        pthread_cond_timedwait(&stream->done, &stream->lock, &deadline);
    }
    pthread_mutex_unlock(&stream->lock);
}

static void tell_end(StreamState *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->gone = true;
    pthread_cond_broadcast(&stream->done);
    pthread_mutex_unlock(&stream->lock);
}

void us_stream_destroy(Stream *public, bool drain)
{
    StreamState *stream = stream_state(public);
    if (us_handle_end(public->handle, HANDLE_STREAM) == NULL) {
        wait_for_end(stream); /* another thread was faster */
        return;
    }
    us_recorder_stream_ends(stream);
    if (!is_own_worker(stream)) {
        if (drain) {
            us_stream_synchronize(public, -1);
        } else {
            abort_patiently(stream);
        }
    }
    atomic_store(&stream->ended, true);
    struct timespec now = us_deadline(0);
    stop_worker(stream, atomic_load(&stream->runs_program) ? &now : NULL);
    drop_rest(stream);
    us_order_end(stream);
    tell_end(stream);
    us_context_remove_stream(public->context, stream);
    us_stream_let_go(stream);
}

/* ---- running tasks ---- */

void us_stream_keep_fault(StreamState *stream, DeviceFault fault, const Explanation *why, TaskIdentity task)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->fault == DEVICE_FAULT_NONE) {
        stream->fault = fault;
        stream->why = *why;
        stream->faulty = task;
    }
    pthread_mutex_unlock(&stream->lock);
}

static void keep_fault(StreamState *stream, const Task *task, DeviceFault fault, const Explanation *why)
{
    Explanation told;
    us_explain(&told, "%s: %s", task->work.name, why->text);
    us_stream_keep_fault(stream, fault, &told, (TaskIdentity){task->ticket, task->thread});
    DeviceState *device = device_state(stream->device);
    pthread_mutex_lock(&device->fault_lock);
    if (device->fault == DEVICE_FAULT_NONE) {
        device->fault = fault;
        device->fault_why = told;
    }
    pthread_mutex_unlock(&device->fault_lock);
    if (atomic_load(&stream->public.context->stops_on_failure)) {
        us_context_stop(stream->public.context, fault, &told);
    }
    Place place = us_place(task->caller);
    us_log(LOG_LEVEL_WARN, "device fault on stream %d: %s: %s%s%s", (int)stream->public.id, task->work.name, why->text,
           place.text[0] != '\0' ? "; queued" : "", place.text);
}

/* Whether an earlier failure keeps the stream's tasks from running. */
static bool is_stopped(const StreamState *stream)
{
    Device *device = stream->device;
    if (device->platform->profile.faults_are_sticky_on_device) {
        return us_device_fault(device, NULL) != DEVICE_FAULT_NONE;
    }
    return atomic_load(&stream->stopped);
}

static void finish(StreamState *stream, Task *task)
{
    uint64_t ticket = task->ticket;
    us_order_let_go(task->moment);
    free(task);
    atomic_store(&stream->completed, ticket);
    us_value_look_again();
    if (atomic_load(&stream->waiters) > 0) {
        pthread_mutex_lock(&stream->lock);
        pthread_cond_broadcast(&stream->done);
        pthread_mutex_unlock(&stream->lock);
    }
}

static void run(StreamState *stream, Task *task)
{
    if (task->ticket > atomic_load(&stream->dropped) && !is_stopped(stream)) {
        Explanation why = {{0}};
        uint64_t start = us_tracing ? us_now() : 0;
        Origin before = us_set_origin((Origin){task->work.name, task->caller, true});
        atomic_store_explicit(&stream->runs_program, !task->anywhere, memory_order_relaxed);
        RunningTask outer = us_task_begin(stream, task); /* it may wait for a stream, and so run its tasks */
        us_order_host_function(stream, task);
        DeviceFault fault = task->run(task->argument, &why);
        us_order_host_function_over(task);
        us_task_end(outer);
        atomic_store_explicit(&stream->runs_program, false, memory_order_relaxed);
        us_set_origin(before);
        if (us_tracing) {
            us_stream_trace(stream, task->work, start, fault);
        }
        if (fault != DEVICE_FAULT_NONE) {
            keep_fault(stream, task, fault, &why);
        }
    }
    if (task->release != NULL) {
        task->release(task->argument);
    }
    finish(stream, task);
}

/* With the lock held: the next task that may run now, taken from the queue. */
static Task *take(StreamState *stream)
{
    Task *task = stream->first;
    if (task == NULL || task->ticket > atomic_load(&stream->allowed)) {
        return NULL;
    }
    stream->first = task->next;
    if (stream->first == NULL) {
        stream->last = NULL;
    }
    return task;
}

static bool has_work(void *argument)
{
    StreamState *stream = argument;
    /* Another thread may be working on the queue. */
    return atomic_load(&stream->stopping) ||
           (!atomic_load(&stream->draining) && atomic_load(&stream->completed) < atomic_load(&stream->allowed));
}

/* With the lock held, which is released while waiting: the worker's next task; NULL when the stream ends. */
static Task *wait_for_task(StreamState *stream)
{
    bool may_park = false;
    while (!stream->stopping) {
        Task *task = stream->draining ? NULL : take(stream);
        if (task != NULL) {
            return task;
        }
        if (may_park) {
            stream->worker_parked = true;
            pthread_cond_wait(&stream->work, &stream->lock);
            stream->worker_parked = false;
            may_park = false;
            continue;
        }
        pthread_mutex_unlock(&stream->lock);
        may_park = !us_parallel_wait(has_work, stream, AWAKE_NANOSECONDS);
        pthread_mutex_lock(&stream->lock);
    }
    return NULL;
}

static void *work(void *argument)
{
    StreamState *stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (Task *task = wait_for_task(stream); task != NULL; task = wait_for_task(stream)) {
        stream->draining = true;
        pthread_mutex_unlock(&stream->lock);
        run(stream, task);
        pthread_mutex_lock(&stream->lock);
        stream->draining = false;
    }
    stream->worker_left = true;
    pthread_cond_broadcast(&stream->done);
    pthread_mutex_unlock(&stream->lock);
    if (atomic_load(&stream->ended)) {
        drop_rest(stream);
    }
    us_stream_let_go(stream);
    return NULL;
}

/* With the lock held: makes sure that a worker looks at the queue. */
static bool rouse_worker(StreamState *stream)
{
    if (stream->stopping) {
        return false;
    }
    if (!stream->worker_exists) {
        if (!us_stream_hold(stream)) {
            return false;
        }
        if (!us_thread_start(&stream->worker, work, stream)) {
            us_stream_let_go(stream);
            return false;
        }
        stream->worker_exists = true;
    } else if (stream->worker_parked) {
        pthread_cond_signal(&stream->work);
    }
    return true;
}

/* Runs queued tasks up to `ticket` on the calling thread, until one has to wait or is the worker's alone. */
void us_stream_drain(StreamState *stream, uint64_t ticket, bool only_anywhere)
{
    pthread_mutex_lock(&stream->lock);
    while (!stream->draining && stream->first != NULL && stream->first->ticket <= ticket) {
        Task *next = stream->first;
        bool dropped = next->ticket <= atomic_load(&stream->dropped);
        bool waits = !dropped && next->ready != NULL && !next->ready(next->argument);
        Task *task = waits || (only_anywhere && !dropped && !next->anywhere) ? NULL : take(stream);
        if (task == NULL) {
            break;
        }
        stream->draining = true;
        pthread_mutex_unlock(&stream->lock);
        run(stream, task);
        pthread_mutex_lock(&stream->lock);
        stream->draining = false;
    }
    if (!stream->draining && stream->first != NULL && stream->first->ticket <= atomic_load(&stream->allowed)) {
        rouse_worker(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* Releases what other threads queued while the stream was ending, so that nobody waits for it. */
static void drop_rest(StreamState *stream)
{
    us_stream_allow(stream, us_stream_drop(stream));
    us_stream_drain(stream, UINT64_MAX, false);
}

bool us_stream_queue(StreamState *stream, Task task, uint64_t *ticket)
{
    task.caller = us_callers_are_wanted() ? us_current_caller() : NULL;
    task.thread = us_thread_number();
    if (atomic_load(&stream->recorder) != NULL) {
        bool recorded = false;
        uint64_t step = 0;
        bool taken = us_recorder_take(stream, &task, &recorded, &step);
        if (recorded) {
            us_note_last_task(stream, step);
            *ticket = 0; /* nothing to wait for */
            return taken;
        }
    }
    Task *queued = malloc(sizeof *queued);
    if (queued == NULL) {
        return false;
    }
    *queued = task;
    queued->next = NULL;
    Conflict conflict = {.found = false};
    StreamMode mode = us_stream_mode();
    pthread_mutex_lock(&stream->lock);
    if (stream->stopping || (mode == STREAM_MODE_ASYNC && !rouse_worker(stream))) {
        pthread_mutex_unlock(&stream->lock);
        free(queued);
        return false;
    }
    queued->ticket = atomic_load(&stream->submitted) + 1;
    *ticket = queued->ticket;
    us_note_last_task(stream, queued->ticket);
    us_order_queue(stream, queued, &conflict);
    if (stream->last == NULL) {
        stream->first = queued;
    } else {
        stream->last->next = queued;
    }
    stream->last = queued;
    atomic_store(&stream->submitted, queued->ticket);
    if (mode != STREAM_MODE_DEFERRED) {
        atomic_store(&stream->allowed, queued->ticket);
    }
    pthread_mutex_unlock(&stream->lock);
    us_order_tell(stream, &conflict);
    if (mode == STREAM_MODE_INLINE) {
        us_stream_drain(stream, UINT64_MAX, false);
    }
    return true;
}

bool us_stream_submit(Stream *stream, const char *name, TaskRun *run_task, void (*release)(void *argument),
                      void *argument)
{
    uint64_t ticket = 0;
    Task task = {.work = {name, "task", 0}, .run = run_task, .release = release, .argument = argument};
    return us_stream_queue(stream_state(stream), task, &ticket);
}

bool us_stream_submit_using(Stream *stream, Work work, Uses uses, TaskRun *run_task, void (*release)(void *argument),
                            void *argument)
{
    uint64_t ticket = 0;
    Task task = {.work = work, .run = run_task, .release = release, .argument = argument, .anywhere = true,
                 .uses = uses.first, .use_count = uses.count};
    return us_stream_queue(stream_state(stream), task, &ticket);
}

bool us_stream_submit_work(Stream *stream, Work work, TaskRun *run_task, void (*release)(void *argument),
                           void *argument)
{
    return us_stream_submit_using(stream, work, (Uses){NULL, 0}, run_task, release, argument);
}

void us_stream_allow(StreamState *stream, uint64_t ticket)
{
    if (atomic_load(&stream->allowed) >= ticket) {
        return;
    }
    pthread_mutex_lock(&stream->lock);
    if (atomic_load(&stream->allowed) < ticket) {
        atomic_store(&stream->allowed, ticket);
        rouse_worker(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}

void us_stream_stop(StreamState *stream, uint64_t patience_ns)
{
    struct timespec deadline = us_deadline(patience_ns);
    stop_worker(stream, &deadline);
}
