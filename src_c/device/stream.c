/* Streams: a queue of tasks and the thread that works on it.
 *
 * async    the stream's worker runs tasks as they come; a thread that waits for the stream takes part.
 * inline   the submitting thread runs them, unless the next task has to wait for something; then the worker goes on.
 * deferred the worker runs tasks only up to what somebody waits for. */
#include "device/order.h"

#include "report/caller.h"
#include "report/grace.h"
#include "report/trace.h"

#include <stdlib.h>

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

static void tell_vendor(Stream *public)
{
    void (*at_end)(Stream *stream) = atomic_load(&public->at_end);
    if (at_end != NULL) {
        at_end(public);
    }
}

bool us_stream_destroy(Stream *public, bool drain)
{
    StreamState *stream = stream_state(public);
    if (us_handle_end(public->handle, HANDLE_STREAM) == NULL) {
        wait_for_end(stream); /* another thread was faster */
        return false;
    }
    us_recorder_stream_ends(stream);
    if (!us_stream_runs_here(stream)) {
        if (drain) {
            us_stream_synchronize(public, -1);
        } else {
            abort_patiently(stream);
        }
    }
    atomic_store(&stream->ended, true);
    struct timespec now = us_deadline(0);
    us_worker_stop(stream, atomic_load(&stream->runs_program) ? &now : NULL);
    us_worker_drop_rest(stream);
    tell_vendor(public);
    us_order_end(stream);
    tell_end(stream);
    us_context_remove_stream(public->context, stream);
    us_stream_let_go(stream);
    return true;
}

/* ---- the queue ---- */

bool us_stream_queue(StreamState *stream, Task task, uint64_t *ticket)
{
    task.caller = us_callers_are_wanted() ? us_current_caller() : NULL;
    task.thread = us_thread_number();
    if (!task.unrecorded && atomic_load(&stream->recorder) != NULL) {
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
    if (stream->stopping || (mode == STREAM_MODE_ASYNC && !us_worker_rouse(stream))) {
        pthread_mutex_unlock(&stream->lock);
        free(queued);
        return false;
    }
    queued->ticket = atomic_load(&stream->submitted) + 1;
    *ticket = queued->ticket;
    us_note_last_task(stream, queued->ticket);
    if (queued->takes_place != NULL) {
        queued->takes_place(queued->argument, queued->ticket);
    }
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

static Task task_using(Work work, Uses uses, TaskRun *run_task, void (*release)(void *argument), void *argument)
{
    return (Task){.work = work, .run = run_task, .release = release, .argument = argument, .anywhere = true,
                  .uses = uses.first, .use_count = uses.count};
}

bool us_stream_submit_using(Stream *stream, Work work, Uses uses, TaskRun *run_task, void (*release)(void *argument),
                            void *argument)
{
    uint64_t ticket = 0;
    return us_stream_queue(stream_state(stream), task_using(work, uses, run_task, release, argument), &ticket);
}

bool us_stream_submit_unrecorded(Stream *stream, Work work, Uses uses, TaskRun *run_task, void (*release)(void *argument),
                                 void *argument)
{
    uint64_t ticket = 0;
    Task task = task_using(work, uses, run_task, release, argument);
    task.unrecorded = true;
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
        us_worker_rouse(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}
