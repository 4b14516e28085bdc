/* The task that a thread runs: what it asks about itself, and how it sleeps. */
#include "device/snapshot.h"
#include "device/stream_internal.h"

#include "report/trace.h"

#include <stdio.h>
#include <unistd.h>

static _Thread_local RunningTask running;

RunningTask us_task_begin(StreamState *stream, const Task *task)
{
    RunningTask outer = running;
    running = (RunningTask){.stream = stream, .ticket = task->ticket};
    return outer;
}

void us_task_end(RunningTask outer)
{
    running = outer;
}

bool us_stream_runs_here(const StreamState *stream)
{
    return running.stream == stream;
}

bool us_thread_runs_task(void)
{
    return running.stream != NULL;
}

void us_stream_trace(const StreamState *stream, Work work, uint64_t start, DeviceFault fault)
{
    char arguments[160];
    snprintf(arguments, sizeof arguments, "\"stream\":%d,\"device\":%d,\"bytes\":%llu,\"fault\":%d",
             (int)stream->public.id, (int)stream->device->ordinal, (unsigned long long)work.bytes, (int)fault);
    us_trace_event(work.category, work.name, 1 + (int64_t)stream->public.id, start, us_now(), arguments);
}

void us_task_trace(Work work, uint64_t start, DeviceFault fault)
{
    us_stream_trace(running.stream, work, start, fault);
}

/* ---- giving up ---- */

bool us_task_gives_up(void)
{
    const StreamState *stream = running.stream;
    return stream != NULL &&
           (atomic_load(&stream->stopping) || atomic_load(&stream->dropped) >= running.ticket ||
            atomic_load(&stream->interrupted) == running.ticket ||
            (running.aborted != NULL && atomic_load(running.aborted)));
}

void us_task_gives_up_with(const _Atomic bool *aborted)
{
    running.aborted = aborted;
}

void us_task_sleeps(void (*wake)(void *sleeper), void *sleeper)
{
    StreamState *stream = running.stream;
    if (stream != NULL) {
        pthread_mutex_lock(&stream->sleep_lock);
        stream->wake = wake;
        stream->sleeper = sleeper;
        pthread_mutex_unlock(&stream->sleep_lock);
    }
}

void us_task_allows_others(void)
{
    if (running.stream != NULL && us_stream_mode() == STREAM_MODE_DEFERRED) {
        us_platform_allow(running.stream->device->platform);
    }
}

void us_stream_rouse(StreamState *stream)
{
    pthread_mutex_lock(&stream->sleep_lock);
    if (stream->wake != NULL) {
        stream->wake(stream->sleeper);
    }
    pthread_mutex_unlock(&stream->sleep_lock);
}

void us_stream_interrupt(Stream *public)
{
    StreamState *stream = stream_state(public);
    const uint64_t ticket = atomic_load(&stream->completed) + 1;
    if (ticket <= atomic_load(&stream->submitted)) {
        atomic_store(&stream->interrupted, ticket);
        us_stream_rouse(stream);
    }
}

/* ---- what the thread queued ---- */

static _Thread_local uint64_t last_task;
static _Thread_local int32_t thread_number;

int32_t us_thread_number(void)
{
    if (thread_number == 0) {
        thread_number = (int32_t)gettid();
    }
    return thread_number;
}

void us_note_last_task(const StreamState *stream, uint64_t ticket)
{
    if (&stream->public != stream->public.context->default_stream) {
        last_task = ticket;
    }
}

uint64_t us_last_task_of_thread(void)
{
    return last_task;
}
