/* Waiting for streams, what they found, and dropping their work. */
#include "device/order.h"

#include "report/thread.h"
#include "tensor/parallel.h"

typedef struct Wanted {
    StreamState *stream;
    uint64_t ticket;
} Wanted;

static bool is_done(void *argument)
{
    const Wanted *wanted = argument;
    return atomic_load(&wanted->stream->completed) >= wanted->ticket;
}

bool us_stream_wait_ticket(StreamState *stream, uint64_t ticket, int64_t timeout_us)
{
    us_stream_allow(stream, ticket);
    if (timeout_us < 0 && atomic_load(&stream->completed) < ticket && us_thread_has_room()) {
        us_stream_drain(stream, ticket, true); /* faster than waking the worker, when that has parked */
    }
    Wanted wanted = {stream, ticket};
    if (us_parallel_wait(is_done, &wanted, AWAKE_NANOSECONDS)) {
        return true;
    }
    struct timespec deadline = us_deadline(timeout_us < 0 ? 0 : (uint64_t)timeout_us * 1000);
    bool expired = false;
    pthread_mutex_lock(&stream->lock);
    atomic_fetch_add(&stream->waiters, 1);
    while (atomic_load(&stream->completed) < ticket && !expired) {
        if (timeout_us < 0) {
            pthread_cond_wait(&stream->done, &stream->lock);
        } else {
            expired = pthread_cond_timedwait(&stream->done, &stream->lock, &deadline) != 0;
        }
    }
    atomic_fetch_sub(&stream->waiters, 1);
    pthread_mutex_unlock(&stream->lock);
    return atomic_load(&stream->completed) >= ticket;
}

WaitStatus us_stream_synchronize(Stream *public, int64_t timeout_us)
{
    StreamState *stream = stream_state(public);
    uint64_t ticket = 0;
    Moment *moment = us_order_moment(stream, &ticket);
    if (!us_stream_wait_ticket(stream, ticket, timeout_us)) {
        us_order_let_go(moment);
        return WAIT_TIMEOUT;
    }
    us_order_seen(stream, moment);
    return us_stream_fault(public, NULL) == DEVICE_FAULT_NONE ? WAIT_DONE : WAIT_FAULT;
}

bool us_stream_idle(Stream *public)
{
    StreamState *stream = stream_state(public);
    uint64_t ticket = 0;
    Moment *moment = us_order_moment(stream, &ticket);
    us_stream_allow(stream, ticket);
    bool idle = atomic_load(&stream->completed) >= ticket;
    if (idle) {
        us_order_seen(stream, moment);
    } else {
        us_order_let_go(moment);
    }
    return idle;
}

bool us_stream_looks_idle(Stream *public)
{
    StreamState *stream = stream_state(public);
    uint64_t ticket = atomic_load(&stream->submitted);
    us_stream_allow(stream, ticket);
    return atomic_load(&stream->completed) >= ticket;
}

DeviceFault us_stream_fault(Stream *public, Explanation *why)
{
    StreamState *stream = stream_state(public);
    Device *device = stream->device;
    if (device->platform->profile.faults_are_sticky_on_device) {
        return us_device_fault(device, why);
    }
    pthread_mutex_lock(&stream->lock);
    DeviceFault fault = stream->fault;
    if (fault != DEVICE_FAULT_NONE && why != NULL) {
        *why = stream->why;
    }
    pthread_mutex_unlock(&stream->lock);
    return fault;
}

uint64_t us_stream_drop(StreamState *stream)
{
    uint64_t ticket = atomic_load(&stream->submitted);
    uint64_t dropped = atomic_load(&stream->dropped);
    while (dropped < ticket && !atomic_compare_exchange_weak(&stream->dropped, &dropped, ticket)) {
    }
    us_stream_rouse(stream);
    return ticket;
}

void us_stream_abort(Stream *public)
{
    StreamState *stream = stream_state(public);
    uint64_t ticket = 0;
    Moment *moment = us_order_moment(stream, &ticket);
    ticket = us_stream_drop(stream);
    if (us_stream_runs_here(stream)) { /* a task does not wait for itself */
        us_order_let_go(moment);
        return;
    }
    us_stream_wait_ticket(stream, ticket, -1);
    us_order_seen(stream, moment);
}

TaskIdentity us_stream_faulty_task(Stream *public)
{
    StreamState *stream = stream_state(public);
    pthread_mutex_lock(&stream->lock);
    TaskIdentity faulty = stream->faulty;
    pthread_mutex_unlock(&stream->lock);
    return faulty;
}
