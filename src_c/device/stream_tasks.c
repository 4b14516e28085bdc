/* Tasks that streams know themselves: copies, fills, having memory first, waiting for another stream. */
#include "device/check.h"
#include "device/order.h"

#include <stdlib.h>

typedef struct CopyTask {
    Platform *platform;
    Copy copy;
} CopyTask;

static DeviceFault run_copy(void *argument, Explanation *why)
{
    CopyTask *task = argument;
    return us_copy_perform(task->platform, &task->copy, why) == COPY_OK ? DEVICE_FAULT_NONE : DEVICE_FAULT_COPY;
}

Use us_use_of_rows(const void *address, size_t pitch, const Copy *copy, bool writes)
{
    size_t before_last = copy->height > 1 ? pitch * (copy->height - 1) : 0;
    size_t size = copy->height > 0 ? before_last + copy->width : 0;
    Use use = {.address = (uintptr_t)address, .size = size, .writes = writes};
    if (copy->height > 1 && pitch != copy->width) {
        use.level_count = 1;
        use.run = copy->width;
        use.levels[0].count = copy->height;
        use.levels[0].distance = pitch;
    }
    return use;
}

typedef bool Submit(Stream *stream, Work work, Uses uses, TaskRun *run, void (*release)(void *argument), void *argument);

static bool queue_copy(Stream *stream, const Copy *copy, const char *name, Submit *submit)
{
    CopyTask *task = malloc(sizeof *task);
    if (task == NULL) {
        return false;
    }
    *task = (CopyTask){stream->context->device->platform, *copy};
    Work work = {name, "copy", (uint64_t)copy->width * copy->height};
    Use uses[] = {us_use_of_rows(copy->source, copy->source_pitch, copy, false),
                  us_use_of_rows(copy->destination, copy->destination_pitch, copy, true)};
    if (!submit(stream, work, (Uses){uses, 2}, run_copy, free, task)) {
        free(task);
        return false;
    }
    return true;
}

bool us_stream_copy(Stream *stream, const Copy *copy, const char *name)
{
    return queue_copy(stream, copy, name, us_stream_submit_using);
}

bool us_stream_copy_unrecorded(Stream *stream, const Copy *copy, const char *name)
{
    return queue_copy(stream, copy, name, us_stream_submit_unrecorded);
}

typedef struct FillTask {
    Platform *platform;
    Fill fill;
} FillTask;

static DeviceFault run_fill(void *argument, Explanation *why)
{
    FillTask *task = argument;
    return us_fill_perform(task->platform, &task->fill, why) == COPY_OK ? DEVICE_FAULT_NONE : DEVICE_FAULT_COPY;
}

bool us_stream_fill(Stream *stream, const Fill *fill, const char *name)
{
    FillTask *task = malloc(sizeof *task);
    if (task == NULL) {
        return false;
    }
    *task = (FillTask){stream->context->device->platform, *fill};
    Work work = {name, "copy", (uint64_t)fill->count * fill->element_size};
    Use use = {.address = (uintptr_t)fill->destination, .size = fill->count * fill->element_size, .writes = true};
    if (!us_stream_submit_using(stream, work, (Uses){&use, 1}, run_fill, free, task)) {
        free(task);
        return false;
    }
    return true;
}

/* ---- memory that is allocated in a stream's order ---- */

static DeviceFault run_nothing(void *argument, Explanation *why)
{
    (void)argument;
    (void)why;
    return DEVICE_FAULT_NONE;
}

void us_stream_has_first(Stream *stream, void *address, size_t size, const char *name)
{
    if ((us_checks() & (CHECK_RACE | CHECK_SYNC)) != 0) {
        const Use all = {.address = (uintptr_t)address, .size = size, .writes = true};
        us_stream_submit_unrecorded(stream, (Work){name, "memory", size}, (Uses){&all, 1}, run_nothing, NULL, NULL);
    }
}

/* ---- one stream waits for another ---- */

typedef struct StreamWait {
    StreamState *awaited;
    uint64_t ticket;
} StreamWait;

static bool awaited_is_done(void *argument)
{
    StreamWait *wait = argument;
    return atomic_load(&wait->awaited->completed) >= wait->ticket;
}

static void wake_waiters(void *argument)
{
    StreamState *awaited = argument;
    pthread_mutex_lock(&awaited->lock);
    pthread_cond_broadcast(&awaited->done);
    pthread_mutex_unlock(&awaited->lock);
}

static void sleep_until_done(StreamWait *wait)
{
    StreamState *awaited = wait->awaited;
    us_task_sleeps(wake_waiters, awaited);
    pthread_mutex_lock(&awaited->lock);
    atomic_fetch_add(&awaited->waiters, 1);
    while (!awaited_is_done(wait) && !us_task_gives_up()) {
        pthread_cond_wait(&awaited->done, &awaited->lock);
    }
    atomic_fetch_sub(&awaited->waiters, 1);
    pthread_mutex_unlock(&awaited->lock);
    us_task_sleeps(NULL, NULL);
}

static DeviceFault run_stream_wait(void *argument, Explanation *why)
{
    (void)why;
    StreamWait *wait = argument;
    if (!us_stream_wait_ticket(wait->awaited, wait->ticket, 0)) {
        sleep_until_done(wait);
    }
    return DEVICE_FAULT_NONE;
}

static void release_stream_wait(void *argument)
{
    StreamWait *wait = argument;
    us_stream_let_go(wait->awaited);
    free(wait);
}

static bool queue_wait(StreamState *stream, StreamWait wanted, Moment *moment)
{
    StreamWait *wait = malloc(sizeof *wait);
    if (wait == NULL) {
        return false;
    }
    *wait = wanted;
    if (!us_stream_hold(wanted.awaited)) {
        free(wait);
        return true; /* it has ended, so all its work has */
    }
    Task task = {.work = {"stream wait", "wait", 0}, .run = run_stream_wait, .ready = awaited_is_done,
                 .release = release_stream_wait, .argument = wait, .anywhere = true, .after = moment,
                 .unrecorded = true};
    uint64_t ticket = 0;
    if (!us_stream_queue(stream, task, &ticket)) {
        release_stream_wait(wait);
        return false;
    }
    return true;
}

bool us_stream_wait_stream(Stream *stream, Stream *other)
{
    StreamState *awaited = stream_state(other);
    uint64_t ticket = 0;
    if (stream == other) {
        return true;
    }
    Moment *moment = us_order_moment(awaited, &ticket);
    /* The wait is queued for the checks even if it is over. */
    const bool queued = (moment == NULL && atomic_load(&awaited->completed) >= ticket) ||
                        queue_wait(stream_state(stream), (StreamWait){awaited, ticket}, moment);
    us_order_let_go(moment);
    return queued;
}
