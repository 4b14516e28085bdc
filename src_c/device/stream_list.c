/* What concerns several streams at once: those of a context, or of a device. */
#include "device/stream_internal.h"

#include <stdlib.h>

static void append_streams(StreamList *list, ContextState *context)
{
    for (StreamState *stream = context->streams; stream != NULL; stream = stream->next) {
        if (list->streams == NULL) {
            list->count++;
        } else if (us_stream_hold(stream)) {
            list->streams[list->count++] = stream;
        }
    }
}

bool us_stream_list_hold(Device *device, const ContextState *only, StreamList *list)
{
    PlatformState *platform = platform_state(device->platform);
    *list = (StreamList){NULL, 0};
    bool complete = true;
    pthread_mutex_lock(&platform->device_lock);
    for (int pass = 0; pass < 2 && complete; pass++) {
        list->count = 0;
        for (ContextState *c = device_state(device)->contexts; c != NULL; c = c->next) {
            if (only == NULL || c == only) {
                append_streams(list, c);
            }
        }
        if (pass == 0) {
            list->streams = calloc(list->count + 1, sizeof *list->streams);
            complete = list->streams != NULL;
        }
    }
    pthread_mutex_unlock(&platform->device_lock);
    return complete;
}

void us_stream_list_let_go(StreamList *list)
{
    for (size_t i = 0; i < list->count; i++) {
        us_stream_let_go(list->streams[i]);
    }
    free(list->streams);
}

static void allow_all(const StreamList *list)
{
    for (size_t i = 0; i < list->count; i++) {
        us_stream_allow(list->streams[i], atomic_load(&list->streams[i]->submitted));
    }
}

void us_platform_allow(Platform *platform)
{
    for (int32_t i = 0; i < platform->device_count; i++) {
        Device *device = __atomic_load_n(&platform->devices[i], __ATOMIC_ACQUIRE);
        StreamList list;
        if (device != NULL && us_stream_list_hold(device, NULL, &list)) {
            allow_all(&list);
            us_stream_list_let_go(&list);
        }
    }
}

/* Microseconds; negative: no limit. */
static int64_t time_left(uint64_t start, int64_t timeout_us)
{
    int64_t used = (int64_t)((us_now() - start) / 1000);
    return timeout_us < 0 ? timeout_us : used < timeout_us ? timeout_us - used : 0;
}

static WaitStatus synchronize(Device *device, ContextState *only, int64_t timeout_us)
{
    StreamList list;
    if (!us_stream_list_hold(device, only, &list)) {
        return WAIT_FAULT;
    }
    uint64_t start = us_now();
    WaitStatus worst = WAIT_DONE;
    /* First let all of them run, so that deferred streams do not wait for each other. */
    allow_all(&list);
    for (size_t i = 0; i < list.count && worst != WAIT_TIMEOUT; i++) {
        WaitStatus status = us_stream_synchronize(&list.streams[i]->public, time_left(start, timeout_us));
        worst = status == WAIT_TIMEOUT || worst == WAIT_DONE ? status : worst;
    }
    us_stream_list_let_go(&list);
    return worst;
}

WaitStatus us_context_synchronize(Context *context, int64_t timeout_us)
{
    return synchronize(context->device, context_state(context), timeout_us);
}

WaitStatus us_device_synchronize(Device *device, int64_t timeout_us)
{
    return synchronize(device, NULL, timeout_us);
}

bool us_device_abort(Device *device, int64_t timeout_us)
{
    StreamList list;
    if (!us_stream_list_hold(device, NULL, &list)) {
        return false;
    }
    uint64_t start = us_now();
    for (size_t i = 0; i < list.count; i++) {
        us_stream_drop(list.streams[i]);
    }
    bool over = true;
    for (size_t i = 0; i < list.count && over; i++) {
        StreamState *stream = list.streams[i];
        over = us_stream_runs_here(stream) ||
               us_stream_wait_ticket(stream, atomic_load(&stream->dropped), time_left(start, timeout_us));
    }
    us_stream_list_let_go(&list);
    return over;
}

void us_device_each_stream(Device *device, const Context *only, void (*visit)(Stream *stream))
{
    StreamList list;
    if (us_stream_list_hold(device, only != NULL ? context_state(only) : NULL, &list)) {
        for (size_t i = 0; i < list.count; i++) {
            visit(&list.streams[i]->public);
        }
        us_stream_list_let_go(&list);
    }
}
