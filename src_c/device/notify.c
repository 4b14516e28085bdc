/* Notifies: a flag that streams set, and wait for. A wait takes the flag away again, so that one record lets one wait
 * pass; a record before the wait is kept. */
#include "device/stream_internal.h"

#include "report/grace.h"

#include <stdlib.h>

/* A stream that will set the flag, but may not run yet (deferred mode). */
typedef struct Promise {
    struct Promise *next;
    StreamState *stream; /* held */
    uint64_t ticket;
} Promise;

typedef struct NotifyState {
    Notify public;
    _Atomic int references; /* the handle, queued records and waits */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool set;
    Promise *promises;
} NotifyState;

typedef struct NotifyTask {
    NotifyState *notify;
    int64_t timeout_us;
    bool taken;
} NotifyTask;

static NotifyState *notify_state(const Notify *notify)
{
    return (NotifyState *)notify;
}

static void keep_promises(NotifyState *notify)
{
    pthread_mutex_lock(&notify->lock);
    Promise *promise = notify->promises;
    notify->promises = NULL;
    pthread_mutex_unlock(&notify->lock);
    while (promise != NULL) {
        Promise *next = promise->next;
        us_stream_allow(promise->stream, promise->ticket);
        us_stream_let_go(promise->stream);
        free(promise);
        promise = next;
    }
}

/* False: another thread has destroyed it meanwhile. */
static bool hold(NotifyState *notify)
{
    int references = atomic_load(&notify->references);
    while (references > 0 && !atomic_compare_exchange_weak(&notify->references, &references, references + 1)) {
    }
    return references > 0;
}

static void end_notify(void *argument)
{
    NotifyState *notify = argument;
    pthread_cond_destroy(&notify->changed);
    pthread_mutex_destroy(&notify->lock);
    free(notify);
}

static void let_go(NotifyState *notify)
{
    if (atomic_fetch_sub(&notify->references, 1) == 1) {
        for (Promise *promise = notify->promises; promise != NULL;) {
            Promise *next = promise->next;
            us_stream_let_go(promise->stream);
            free(promise);
            promise = next;
        }
        us_grace_bury(end_notify, notify);
    }
}

Notify *us_notify_create(Device *device)
{
    static _Atomic uint32_t next_id = 0;
    NotifyState *notify = calloc(1, sizeof *notify);
    if (notify == NULL) {
        return NULL;
    }
    notify->public.device = device;
    notify->public.id = atomic_fetch_add(&next_id, 1);
    atomic_init(&notify->references, 1);
    pthread_mutex_init(&notify->lock, NULL);
    us_condition_init(&notify->changed);
    notify->public.handle = us_handle_create(HANDLE_NOTIFY, notify);
    if (notify->public.handle == NULL) {
        let_go(notify);
        return NULL;
    }
    return &notify->public;
}

bool us_notify_destroy(Notify *notify)
{
    bool alive = us_handle_end(notify->handle, HANDLE_NOTIFY) != NULL;
    if (alive) {
        let_go(notify_state(notify));
    }
    return alive;
}

Notify *us_notify_of_handle(const void *handle)
{
    NotifyState *notify = us_handle_object(handle, HANDLE_NOTIFY);
    return notify == NULL ? NULL : &notify->public;
}

void us_notify_clear(Notify *public)
{
    NotifyState *notify = notify_state(public);
    pthread_mutex_lock(&notify->lock);
    notify->set = false;
    pthread_mutex_unlock(&notify->lock);
}

/* ---- tasks ---- */

static void release_task(void *argument)
{
    NotifyTask *task = argument;
    let_go(task->notify);
    free(task);
}

static bool queue_task(Stream *stream, NotifyTask task, Task queued, uint64_t *ticket)
{
    NotifyTask *kept = malloc(sizeof *kept);
    if (kept == NULL || !hold(task.notify)) {
        free(kept);
        return false;
    }
    *kept = task;
    queued.argument = kept;
    queued.release = release_task;
    queued.anywhere = true;
    if (!us_stream_queue(stream_state(stream), queued, ticket)) {
        release_task(kept);
        return false;
    }
    return true;
}

static DeviceFault run_record(void *argument, Explanation *why)
{
    (void)why;
    NotifyState *notify = ((NotifyTask *)argument)->notify;
    pthread_mutex_lock(&notify->lock);
    notify->set = true;
    pthread_cond_broadcast(&notify->changed);
    pthread_mutex_unlock(&notify->lock);
    return DEVICE_FAULT_NONE;
}

bool us_notify_record(Notify *public, Stream *stream)
{
    NotifyState *notify = notify_state(public);
    Promise *promise = us_stream_mode() == STREAM_MODE_DEFERRED ? malloc(sizeof *promise) : NULL;
    uint64_t ticket = 0;
    Task task = {.work = {"notify record", "event", 0}, .run = run_record};
    if ((promise == NULL && us_stream_mode() == STREAM_MODE_DEFERRED) ||
        !queue_task(stream, (NotifyTask){.notify = notify}, task, &ticket)) {
        free(promise);
        return false;
    }
    if (promise != NULL && !hold(notify)) {
        free(promise); /* destroyed meanwhile: nobody can wait for it any more */
    } else if (promise != NULL) {
        us_stream_hold(stream_state(stream));
        pthread_mutex_lock(&notify->lock);
        *promise = (Promise){notify->promises, stream_state(stream), ticket};
        notify->promises = promise;
        pthread_cond_broadcast(&notify->changed); /* waits look who will set the flag */
        pthread_mutex_unlock(&notify->lock);
        let_go(notify);
    }
    return true;
}

/* Takes the flag if it is set: then the wait is over, whoever runs it. */
static bool take_flag(void *argument)
{
    NotifyTask *task = argument;
    pthread_mutex_lock(&task->notify->lock);
    if (!task->taken && task->notify->set) {
        task->notify->set = false;
        task->taken = true;
    }
    pthread_mutex_unlock(&task->notify->lock);
    return task->taken;
}

/* Waits a few milliseconds at most. */
static void wait_for_change(NotifyState *notify)
{
    static const uint64_t LOOK_AGAIN = 5 * 1000000;
    struct timespec deadline = us_deadline(LOOK_AGAIN);
    pthread_mutex_lock(&notify->lock);
    if (!notify->set && notify->promises == NULL) {
        pthread_cond_timedwait(&notify->changed, &notify->lock, &deadline);
    }
    pthread_mutex_unlock(&notify->lock);
}

static DeviceFault run_wait(void *argument, Explanation *why)
{
    NotifyTask *task = argument;
    uint64_t start = us_now();
    keep_promises(task->notify);
    while (!take_flag(task)) {
        if (us_task_gives_up()) {
            return DEVICE_FAULT_NONE;
        }
        if (task->timeout_us >= 0 && us_now() - start >= (uint64_t)task->timeout_us * 1000) {
            us_explain(why, "notify %u was not recorded within %lld us", (unsigned)task->notify->public.id,
                       (long long)task->timeout_us);
            return DEVICE_FAULT_TIMEOUT;
        }
        wait_for_change(task->notify);
        keep_promises(task->notify);
    }
    task->taken = false; /* the next run of a recorded wait takes another record */
    return DEVICE_FAULT_NONE;
}

bool us_notify_wait(Stream *stream, Notify *public, int64_t timeout_us)
{
    uint64_t ticket = 0;
    NotifyTask task = {.notify = notify_state(public), .timeout_us = timeout_us};
    return queue_task(stream, task, (Task){.work = {"notify wait", "event", 0}, .run = run_wait, .ready = take_flag},
                      &ticket);
}
