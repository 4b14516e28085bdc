/* Queue and worker of a stream, as the files of this folder see them. */
#ifndef UNDERSTUDY_STREAM_INTERNAL_H
#define UNDERSTUDY_STREAM_INTERNAL_H

#include "device/device_internal.h"
#include "device/reference.h"
#include "report/trace.h"

#include <stdatomic.h>

/* Of a task that takes turns with others in the order of what is queued: each launch of a graph that has recorded it runs
 * a copy of its own. */
typedef struct TaskCopying {
    void *(*copy)(void *argument);   /* the copy's argument; NULL: no memory */
    void (*draw)(void *argument);    /* the copy's turn: the launch has its place in a queue. Takes no lock */
    void (*inherit)(void *argument, void *from); /* the turn of a copy of the task that an update has replaced */
    bool (*awaited)(void *argument); /* by another process, which cannot ask a deferred stream to go on */
} TaskCopying;

typedef struct Task {
    struct Task *next;
    Work work;
    TaskRun *run;
    bool (*ready)(void *argument); /* NULL: always. Otherwise `run` may block while this is false */
    void (*release)(void *argument);
    /* NULL: nothing. Called once it has its place in a queue (not in a recording), with the stream's lock held. */
    void (*takes_place)(void *argument, uint64_t ticket);
    const TaskCopying *copying; /* NULL: all launches of a graph run the same one */
    void *argument;
    const void *caller; /* in the program (report/caller.h), when somebody may want to know */
    const Use *uses;    /* while it is being queued or recorded */
    size_t use_count;
    struct Moment *moment; /* the program's own code: what is over when it begins (order.h); held */
    struct Moment *after;  /* while it is being queued: what it waits for; NULL: nothing */
    struct Moment **over;  /* while it is being queued: where to put when it will be over; NULL: nobody asks */
    uint64_t ticket; /* 1, 2, 3 … on its stream */
    int32_t thread;  /* that queued it, as the system numbers threads */
    bool anywhere;   /* any thread may run it: our own code only */
    /* Of a call that has seen that nothing records the stream: it has its place in the queue even if another thread has begun
     * a recording since, as if the call had been over before that. */
    bool unrecorded;
} Task;

struct StreamState {
    Stream public;
    Device *device;    /* outlives the context */
    StreamState *next; /* in the context's list */
    References references; /* the handle, the worker, events and waits that point here */

    pthread_mutex_t lock; /* queue, worker state, fault */
    pthread_cond_t work;  /* signalled when the worker is parked and there is something to do */
    pthread_cond_t done;  /* broadcast when `completed` grows and somebody is parked on it, and when worker or stream ends */
    Task *first, *last;
    bool worker_exists, worker_parked;
    bool worker_left; /* it runs no further task */
    bool gone;        /* us_stream_destroy is through */
    _Atomic bool runs_program; /* a task that runs is (or waits for) the program's own code, which may never return */
    _Atomic bool stopping, draining; /* draining: somebody runs a task; changed under the lock */
    pthread_t worker;
    DeviceFault fault;
    Explanation why;
    TaskIdentity faulty; /* whose fault it is; task 0: of another stream */
    _Atomic bool ended;   /* the handle is gone */
    _Atomic bool stopped; /* by a failure in its context: tasks are released without being run */
    _Atomic(struct Recorder *) recorder; /* takes the stream's work in place of the queue (recorder.c); NULL: none */
    bool takes_no_recorder; /* the stream is ending; guarded by the recorder lock */

    struct Timeline *timeline; /* order.c; NULL: nobody watches */
    bool timeline_is_over;     /* the stream has ended: it gets no other */

    _Atomic uint64_t submitted; /* ticket of the last task in the queue */
    _Atomic uint64_t allowed;   /* tasks up to here may run (deferred mode holds it back) */
    _Atomic uint64_t dropped;   /* tasks up to here are released without being run */
    _Atomic uint64_t completed; /* tasks up to here have run or been dropped */
    _Atomic uint64_t interrupted; /* the task with this ticket gives up */
    _Atomic int waiters;        /* threads parked on `done` */
    pthread_mutex_t sleep_lock; /* the two below */
    void (*wake)(void *sleeper); /* the task that runs sleeps, and looks again when this is called; NULL: it does not */
    void *sleeper;
};

static inline StreamState *stream_state(const Stream *stream)
{
    return (StreamState *)stream;
}

typedef enum StreamMode { STREAM_MODE_ASYNC, STREAM_MODE_INLINE, STREAM_MODE_DEFERRED } StreamMode;
StreamMode us_stream_mode(void);

/* Leaves a fault on the stream, unless it has one. */
void us_stream_keep_fault(StreamState *stream, DeviceFault fault, const Explanation *why, TaskIdentity task);

bool us_stream_hold(StreamState *stream); /* false: the stream has ended */
void us_stream_let_go(StreamState *stream);

/* us_stream_submit with a readiness test; gives the task's ticket, 0: it has been recorded. */
bool us_stream_queue(StreamState *stream, Task task, uint64_t *ticket);

/* Puts the task where the stream's recorder wants it. `*recorded`: there is one, and the task may be gone already; the
 * result is false when memory is exhausted, and then the task has not been released. `*ticket` is the number of the step. */
bool us_recorder_take(StreamState *stream, const Task *task, bool *recorded, uint64_t *ticket);
/* The stream is about to end: what records its work cannot go on. */
void us_recorder_stream_ends(StreamState *stream);

/* Some task has run, or the host has copied: waits for numbers in memory look again (value.c). */
void us_value_look_again(void);

/* Inside a task: true when it should stop waiting, because its stream is being aborted or the process ends. */
bool us_task_gives_up(void);
/* Inside a task: from now on it also gives up when this is true. NULL: no longer. */
void us_task_gives_up_with(const _Atomic bool *aborted);
/* Inside a task that is about to sleep: `wake` makes it look again whether it gives up; it takes what locks it needs, so the
 * caller holds none of them. NULL: it is awake again. Nothing outside tasks. */
void us_task_sleeps(void (*wake)(void *sleeper), void *sleeper);
/* Inside a task that waits for what any stream may bring: lets deferred ones run all that they have. */
void us_task_allows_others(void);
/* Wakes the task that runs, if it sleeps. */
void us_stream_rouse(StreamState *stream);
/* The calling thread runs a task of this stream. */
bool us_stream_runs_here(const StreamState *stream);
/* The task that a thread runs (task.c). */
typedef struct RunningTask {
    StreamState *stream; /* NULL: none */
    uint64_t ticket;
    const _Atomic bool *aborted; /* it gives up when this is true; NULL: nothing */
} RunningTask;
RunningTask us_task_begin(StreamState *stream, const Task *task); /* gives the one that it interrupts */
void us_task_end(RunningTask outer);
int32_t us_thread_number(void); /* as the system numbers threads */
void us_note_last_task(const StreamState *stream, uint64_t ticket);

/* Writes work to the timeline; inside a task: a part of it. */
void us_stream_trace(const StreamState *stream, Work work, uint64_t start, DeviceFault fault);
void us_task_trace(Work work, uint64_t start, DeviceFault fault);

/* The streams of one context (or, without one, of all contexts of a device), held, so that no lock is needed while
 * waiting for them. */
typedef struct StreamList {
    StreamState **streams;
    size_t count;
} StreamList;
bool us_stream_list_hold(Device *device, const ContextState *only, StreamList *list); /* false: no memory */
void us_stream_list_let_go(StreamList *list);

/* Drops the tasks that have not started; gives the ticket of the last of them. */
uint64_t us_stream_drop(StreamState *stream);

/* Runs queued tasks up to `ticket` on the calling thread, until one has to wait or is the worker's alone. */
void us_stream_drain(StreamState *stream, uint64_t ticket, bool only_anywhere);

/* With the lock held: makes sure that a worker looks at the queue; false: the stream ends, or there is no thread for it. */
bool us_worker_rouse(StreamState *stream);
/* The worker leaves after its present task. */
void us_worker_ask_to_stop(StreamState *stream);
/* Ends the worker, and waits for that until the deadline, if there is one; a worker that ends its own stream (from a host
 * callback) cannot wait for itself. */
void us_worker_stop(StreamState *stream, const struct timespec *deadline);
/* Releases what other threads queued while the stream was ending, so that nobody waits for it. */
void us_worker_drop_rest(StreamState *stream);

/* Lets a deferred stream run everything up to `ticket`. */
void us_stream_allow(StreamState *stream, uint64_t ticket);

/* Waits until the stream has completed `ticket`; false when the time is over. Negative timeout: none. */
bool us_stream_wait_ticket(StreamState *stream, uint64_t ticket, int64_t timeout_us);

/* How long a thread stays awake (us_parallel_wait) before it parks: hand-over between two running threads takes under a
 * microsecond, waking a parked one fifty. */
enum { AWAKE_NANOSECONDS = 60 * 1000 };

/* Absolute time for timed waits on condition variables made by us_condition_init. */
struct timespec us_deadline(uint64_t nanoseconds_from_now);
bool us_condition_init(pthread_cond_t *condition);

#endif
