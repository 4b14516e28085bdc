/* Tasks that streams know themselves: copies, fills, waiting for another stream. */
#include "device/check.h"
#include "device/stream_internal.h"

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

bool us_stream_copy(Stream *stream, const Copy *copy, const char *name)
{
    CopyTask *task = malloc(sizeof *task);
    if (task == NULL) {
        return false;
    }
    *task = (CopyTask){stream->context->device->platform, *copy};
    Work work = {name, "copy", (uint64_t)copy->width * copy->height};
    size_t source_pitch = copy->height > 1 ? copy->source_pitch : copy->width;
    size_t destination_pitch = copy->height > 1 ? copy->destination_pitch : copy->width;
    Use uses[] = {{(uintptr_t)copy->source, source_pitch * copy->height, false},
                  {(uintptr_t)copy->destination, destination_pitch * copy->height, true}};
    if (!us_stream_submit_work(stream, work, run_copy, free, task)) {
        free(task);
        return false;
    }
    us_check_queued(stream, name, uses, 2);
    return true;
}

typedef struct FillTask {
    Platform *platform;
    Fill fill;
} FillTask;

static DeviceFault run_fill(void *argument, Explanation *why)
{
    FillTask *task = argument;
    return us_fill_run(task->platform, &task->fill, why) == COPY_OK ? DEVICE_FAULT_NONE : DEVICE_FAULT_COPY;
}

bool us_stream_fill(Stream *stream, const Fill *fill, const char *name)
{
    FillTask *task = malloc(sizeof *task);
    if (task == NULL) {
        return false;
    }
    *task = (FillTask){stream->context->device->platform, *fill};
    Work work = {name, "copy", (uint64_t)fill->count * fill->element_size};
    Use use = {(uintptr_t)fill->destination, fill->count * fill->element_size, true};
    if (!us_stream_submit_work(stream, work, run_fill, free, task)) {
        free(task);
        return false;
    }
    us_check_queued(stream, name, &use, 1);
    return true;
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

static DeviceFault run_stream_wait(void *argument, Explanation *why)
{
    (void)why;
    enum { LOOK_AGAIN_US = 5000 };
    StreamWait *wait = argument;
    while (!us_stream_wait_ticket(wait->awaited, wait->ticket, LOOK_AGAIN_US) && !us_task_gives_up()) {
    }
    return DEVICE_FAULT_NONE;
}

static void release_stream_wait(void *argument)
{
    StreamWait *wait = argument;
    us_stream_let_go(wait->awaited);
    free(wait);
}

bool us_stream_wait_stream(Stream *stream, Stream *other)
{
    StreamState *awaited = stream_state(other);
    uint64_t ticket = atomic_load(&awaited->submitted);
    if (stream == other || atomic_load(&awaited->completed) >= ticket) {
        return true;
    }
    StreamWait *wait = malloc(sizeof *wait);
    if (wait == NULL) {
        return false;
    }
    *wait = (StreamWait){awaited, ticket};
    if (!us_stream_hold(awaited)) {
        free(wait);
        return true; /* it has ended, so all its work has */
    }
    Task task = {.work = {"stream wait", "wait", 0}, .run = run_stream_wait, .ready = awaited_is_done,
                 .release = release_stream_wait, .argument = wait};
    uint64_t own_ticket = 0;
    if (!us_stream_queue(stream_state(stream), task, &own_ticket)) {
        release_stream_wait(wait);
        return false;
    }
    return true;
}
