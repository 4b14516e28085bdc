/* Events. Each record has a number; an event is complete when the latest record has run. */
#include "device/event_state.h"

#include "report/fork.h"
#include "report/grace.h"

#include <stdlib.h>
#include <unistd.h>

static void end_event(void *argument)
{
    EventState *event = argument;
    us_order_let_go(event->moment);
    for (Late *late = event->late, *next = NULL; late != NULL; late = next) {
        next = late->next;
        free(late);
    }
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    if (us_event_is_shared(event)) {
        us_signal_close(event->words);
        close(event->file);
    }
    free(event);
}

void us_event_let_go(EventState *event)
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
    event->public.device = context->device;
    event->public.id = atomic_fetch_add(&next_id, 1);
    event->words = words != NULL ? words : &event->own;
    event->file = file;
    atomic_init(&event->references, 1);
    pthread_mutex_init(&event->lock, NULL);
    us_condition_init(&event->changed);
    event->public.handle = us_handle_create(HANDLE_EVENT, event);
    if (event->public.handle == NULL) {
        us_event_let_go(event);
        return NULL;
    }
    return &event->public;
}

Event *us_event_create(Context *context)
{
    return new_event(context, NULL, -1);
}

bool us_event_destroy(Event *public)
{
    EventState *event = event_state(public);
    bool alive = us_handle_end(public->handle, HANDLE_EVENT) != NULL;
    if (alive) {
        if (us_event_is_shared(event)) {
            us_ipc_withdraw_file(event->file);
        }
        us_event_let_go(event);
    }
    return alive;
}

/* ---- destroyed, and still waited for ---- */

/* A ring of the latest, held, with the handles that they had. */
enum { RETIRED_EVENTS = 256 };
static EventState *retired[RETIRED_EVENTS];
static uint32_t oldest_retired = 0;
static pthread_mutex_t retired_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void guard_retired(void)
{
    us_fork_waits_for(&retired_lock);
}

/* Takes over a reference; the oldest one is let go. */
static void keep_retired(EventState *event)
{
    pthread_mutex_lock(&retired_lock);
    EventState *former = retired[oldest_retired];
    retired[oldest_retired] = event;
    oldest_retired = (oldest_retired + 1) % RETIRED_EVENTS;
    pthread_mutex_unlock(&retired_lock);
    if (former != NULL) {
        us_event_let_go(former);
    }
}

bool us_event_retire(Event *public)
{
    EventState *event = event_state(public);
    if (!us_event_is_shared(event) && !atomic_load(&event->captured) && us_event_recorded(public) &&
        us_event_hold(event)) {
        keep_retired(event); /* before the handle ends: there is no moment at which neither is found */
    }
    return us_event_destroy(public);
}

Event *us_event_retired(const void *handle)
{
    Event *found = NULL;
    pthread_mutex_lock(&retired_lock);
    for (int i = 0; i < RETIRED_EVENTS && found == NULL; i++) {
        found = retired[i] != NULL && retired[i]->public.handle == handle ? &retired[i]->public : NULL;
    }
    pthread_mutex_unlock(&retired_lock);
    return found;
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
    const Device *device = public->device;
    IpcNote note = {.kind = IPC_EVENT, .platform = device->platform->id,
                    .device = device->platform->physical_number[device->ordinal]};
    if (!us_event_is_shared(event)) {
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
