/* Notifies: a flag that streams set, and wait for. A wait takes the flag away again, so that one record lets one wait
 * pass; a record before the wait is kept. */
#include "device/order.h"
#include "device/signal.h"

#include "report/grace.h"

#include <stdlib.h>
#include <unistd.h>

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
    SignalWords own;
    SignalWords *words; /* `own`, until other processes have it too; `flag` there is the notify; under the lock */
    int file;           /* of that memory; -1: the notify is this process's */
    uint64_t key;       /* 0: not shared */
    Promise *promises;
    Moment *moment;          /* of all records so far: held; NULL: nobody watches */
    uint64_t records, waits; /* that were queued */
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
    us_order_let_go(notify->moment);
    pthread_cond_destroy(&notify->changed);
    pthread_mutex_destroy(&notify->lock);
    if (notify->words != &notify->own) {
        us_signal_close(notify->words);
        close(notify->file);
    }
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
    notify->words = &notify->own;
    notify->file = -1;
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
        us_ipc_withdraw(us_notify_key(notify));
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
    atomic_store(&notify->words->flag, 0);
    pthread_mutex_unlock(&notify->lock);
}

/* ---- of several processes ---- */

/* With the lock held: moves the flag to memory that other processes can have. */
static bool move_to_file(NotifyState *notify)
{
    if (notify->file >= 0) {
        return true;
    }
    int file = us_signal_create();
    SignalWords *words = file >= 0 ? us_signal_open(file) : NULL;
    if (words == NULL) {
        if (file >= 0) {
            close(file);
        }
        return false;
    }
    atomic_store(&words->flag, atomic_load(&notify->own.flag));
    notify->words = words;
    notify->file = file;
    pthread_cond_broadcast(&notify->changed); /* who waits, waits there from now on */
    return true;
}

IpcStatus us_notify_share(Notify *public, bool anyone, uint64_t *key)
{
    NotifyState *notify = notify_state(public);
    const Platform *platform = public->device->platform;
    IpcNote note = {.kind = IPC_NOTIFY, .platform = platform->id, .number = public->id,
                    .device = platform->physical_number[public->device->ordinal]};
    pthread_mutex_lock(&notify->lock);
    IpcStatus status = IPC_OK;
    if (notify->key == 0) {
        status = move_to_file(notify) ? us_ipc_offer(notify->file, &note, anyone, &notify->key) : IPC_EXHAUSTED;
    }
    if (status == IPC_OK) {
        *key = notify->key;
    }
    pthread_mutex_unlock(&notify->lock);
    keep_promises(notify); /* of deferred streams: whoever waits elsewhere cannot ask for it */
    return status;
}

uint64_t us_notify_key(Notify *public)
{
    NotifyState *notify = notify_state(public);
    pthread_mutex_lock(&notify->lock);
    uint64_t key = notify->key;
    pthread_mutex_unlock(&notify->lock);
    return key;
}

IpcStatus us_notify_import(Device *device, uint64_t key, Notify **notify, Explanation *why)
{
    IpcNote note;
    int file = -1;
    IpcStatus status = us_ipc_fetch(key, IPC_NOTIFY, device->platform->id, &note, &file, why);
    if (status != IPC_OK) {
        return status;
    }
    SignalWords *words = us_signal_open(file);
    Notify *made = words != NULL ? us_notify_create(us_device_of_note(device, &note)) : NULL;
    if (made == NULL) {
        if (words != NULL) {
            us_signal_close(words);
        }
        close(file);
        us_explain(why, "no host memory is left for a notify");
        return IPC_EXHAUSTED;
    }
    NotifyState *state = notify_state(made);
    state->words = words;
    state->file = file;
    made->id = note.number;
    made->imported = true;
    *notify = made;
    return IPC_OK;
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
    atomic_store(&notify->words->flag, 1);
    pthread_cond_broadcast(&notify->changed);
    if (notify->file >= 0) {
        us_signal_tell(notify->words);
    }
    pthread_mutex_unlock(&notify->lock);
    return DEVICE_FAULT_NONE;
}

/* For the checks. */
static void note_record(NotifyState *notify, Moment *moment)
{
    pthread_mutex_lock(&notify->lock);
    notify->records++;
    notify->moment = us_order_join(notify->moment, moment);
    pthread_mutex_unlock(&notify->lock);
}

/* For the checks: which record a wait will take is known only when there is one. Held. */
static Moment *note_wait(NotifyState *notify)
{
    pthread_mutex_lock(&notify->lock);
    notify->waits++;
    bool known = notify->words == &notify->own && notify->records >= notify->waits;
    Moment *moment = known ? us_order_hold(notify->moment) : NULL;
    pthread_mutex_unlock(&notify->lock);
    return moment != NULL ? moment : us_order_unknown();
}

bool us_notify_record(Notify *public, Stream *stream)
{
    NotifyState *notify = notify_state(public);
    Promise *promise = us_stream_mode() == STREAM_MODE_DEFERRED ? malloc(sizeof *promise) : NULL;
    uint64_t ticket = 0;
    Moment *over = NULL;
    Task task = {.work = {"notify record", "event", 0}, .run = run_record, .over = &over};
    if ((promise == NULL && us_stream_mode() == STREAM_MODE_DEFERRED) ||
        !queue_task(stream, (NotifyTask){.notify = notify}, task, &ticket)) {
        free(promise);
        return false;
    }
    note_record(notify, over);
    if (promise != NULL && !hold(notify)) {
        free(promise); /* destroyed meanwhile: nobody can wait for it any more */
    } else if (promise != NULL && !us_stream_hold(stream_state(stream))) {
        free(promise); /* the stream was: it has run or dropped what it had */
        let_go(notify);
    } else if (promise != NULL) {
        pthread_mutex_lock(&notify->lock);
        *promise = (Promise){notify->promises, stream_state(stream), ticket};
        notify->promises = promise;
        bool shared = notify->file >= 0;
        pthread_cond_broadcast(&notify->changed); /* waits look who will set the flag */
        pthread_mutex_unlock(&notify->lock);
        if (shared) {
            keep_promises(notify); /* whoever waits elsewhere cannot ask for it */
        }
        let_go(notify);
    }
    return true;
}

/* Takes the flag if it is set: then the wait is over, whoever runs it. */
static bool take_flag(void *argument)
{
    NotifyTask *task = argument;
    pthread_mutex_lock(&task->notify->lock);
    uint32_t set = 1;
    if (!task->taken) {
        task->taken = atomic_compare_exchange_strong(&task->notify->words->flag, &set, 0);
    }
    pthread_mutex_unlock(&task->notify->lock);
    return task->taken;
}

static void wake_waiters(void *argument)
{
    NotifyState *notify = argument;
    pthread_mutex_lock(&notify->lock);
    pthread_cond_broadcast(&notify->changed);
    if (notify->file >= 0) {
        us_signal_tell(notify->words);
    }
    pthread_mutex_unlock(&notify->lock);
}

/* Until the flag is set, somebody promises to set it, or wakes those who wait; `left` nanoseconds, negative: no limit. */
static void wait_for_change(NotifyState *notify, int64_t left)
{
    struct timespec deadline = us_deadline(left < 0 ? 0 : (uint64_t)left);
    pthread_mutex_lock(&notify->lock);
    SignalWords *words = notify->words;
    uint32_t changes = atomic_load(&words->changes);
    bool waits = atomic_load(&words->flag) == 0 && notify->promises == NULL && !us_task_gives_up();
    if (waits && notify->file < 0 && left < 0) {
        pthread_cond_wait(&notify->changed, &notify->lock);
    } else if (waits && notify->file < 0) {
        pthread_cond_timedwait(&notify->changed, &notify->lock, &deadline);
    }
    pthread_mutex_unlock(&notify->lock);
    if (waits && words != &notify->own) {
        us_signal_wait(words, changes, left);
    }
}

/* False: the time is over. */
static bool wait_for_flag(NotifyTask *task)
{
    uint64_t start = us_now();
    keep_promises(task->notify);
    while (!take_flag(task) && !us_task_gives_up()) {
        int64_t left = task->timeout_us < 0 ? -1 : task->timeout_us * 1000 - (int64_t)(us_now() - start);
        if (task->timeout_us >= 0 && left <= 0) {
            return false;
        }
        wait_for_change(task->notify, left);
        keep_promises(task->notify);
    }
    return true;
}

static DeviceFault run_wait(void *argument, Explanation *why)
{
    NotifyTask *task = argument;
    us_task_sleeps(wake_waiters, task->notify);
    bool over = wait_for_flag(task);
    us_task_sleeps(NULL, NULL);
    if (!over) {
        us_explain(why, "notify %u was not recorded within %lld us", (unsigned)task->notify->public.id,
                   (long long)task->timeout_us);
        return DEVICE_FAULT_TIMEOUT;
    }
    task->taken = false; /* the next run of a recorded wait takes another record */
    return DEVICE_FAULT_NONE;
}

bool us_notify_wait(Stream *stream, Notify *public, int64_t timeout_us)
{
    uint64_t ticket = 0;
    NotifyTask task = {.notify = notify_state(public), .timeout_us = timeout_us};
    Moment *moment = note_wait(notify_state(public));
    const bool queued = queue_task(stream, task, (Task){.work = {"notify wait", "event", 0}, .run = run_wait,
                                                        .ready = take_flag, .after = moment}, &ticket);
    us_order_let_go(moment);
    return queued;
}
