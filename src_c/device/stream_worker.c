/* What works on a stream's queue: the stream's worker, or a thread that waits for it and takes part. */
#include "device/check.h"
#include "device/order.h"

#include "report/caller.h"
#include "report/thread.h"
#include "report/trace.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <time.h>

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
    const bool is_told = (us_checks() & (CHECK_MEMORY | CHECK_REFUSALS)) != 0;
    us_log(is_told ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "device fault on stream %d: %s: %s%s%s", (int)stream->public.id,
           task->work.name, why->text, place.text[0] != '\0' ? "; queued" : "", place.text);
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
        us_worker_drop_rest(stream);
    }
    us_stream_let_go(stream);
    return NULL;
}

bool us_worker_rouse(StreamState *stream)
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
        us_worker_rouse(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}

void us_worker_drop_rest(StreamState *stream)
{
    us_stream_allow(stream, us_stream_drop(stream));
    us_stream_drain(stream, UINT64_MAX, false);
}

/* ---- the end ---- */

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

void us_worker_ask_to_stop(StreamState *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->stopping = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    us_stream_rouse(stream);
}

void us_worker_stop(StreamState *stream, const struct timespec *deadline)
{
    us_worker_ask_to_stop(stream);
    pthread_mutex_lock(&stream->lock);
    bool exists = stream->worker_exists;
    stream->worker_exists = false;
    pthread_mutex_unlock(&stream->lock);
    if (!exists) {
        return;
    }
    if (!pthread_equal(stream->worker, pthread_self()) && worker_leaves(stream, deadline)) {
        pthread_join(stream->worker, NULL);
    } else {
        pthread_detach(stream->worker);
    }
}
