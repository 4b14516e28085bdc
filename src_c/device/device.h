/* Platforms, devices, contexts, streams, events. Knows no vendor and no maths.
 *
 * A platform is one vendor stack's set of devices; two stacks in one process do not see each other. Nothing is started
 * before the first use, so a process may fork before that. */
#ifndef UNDERSTUDY_DEVICE_H
#define UNDERSTUDY_DEVICE_H

#include "device/handles.h"
#include "device/memory.h"
#include "report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HANDLE_CONTEXT = 0x01, HANDLE_STREAM = 0x02, HANDLE_EVENT = 0x03, HANDLE_NOTIFY = 0x05 };
enum { PLATFORM_LIMIT = 4, DEVICE_LIMIT = 64 };

typedef struct Context Context;
typedef struct Stream Stream;
typedef struct Event Event;

/* ---- platform and devices ---------------------------------------------------------------------------------------- */

/* A kind of object that programs should destroy, for lists of leaks; `name` is plural: "tensors". */
typedef struct LeakKind {
    HandleKind kind;
    const char *name;
} LeakKind;

/* What a vendor's product is, as far as this layer cares. */
typedef struct PlatformProfile {
    const char *name;       /* "Ascend", "MACA": used in messages */
    size_t memory_bytes;    /* per device; capped to the host's memory */
    bool kernels_see_pinned; /* kernels may open pinned host memory (CUDA-like unified addressing) */
    bool faults_are_sticky_on_device; /* after a fault every later call on the device reports it (CUDA-like) */
    const LeakKind *leak_kinds; /* the vendor's objects; static data */
    size_t leak_kind_count;
    const char *visible_devices; /* the vendor's variable that lists the devices a process sees; NULL: none */
} PlatformProfile;

struct Platform {
    int id;
    PlatformProfile profile;
    int32_t device_count; /* UNDERSTUDY_DEVICES, default 1, or those of them that are visible */
    int32_t physical_number[DEVICE_LIMIT]; /* of each device; another than its own when only some are visible */
    Device *devices[DEVICE_LIMIT];
    /* Process-wide vendor state that must exist once although vendor libraries may be loaded under two names. */
    int32_t initialisations; /* calls of the vendor's init minus finalize */
    bool finalised;
    int64_t options[16];
};

/* The platform of a vendor stack, made from `profile` on the first call (id < PLATFORM_LIMIT). NULL: no memory. */
Platform *us_platform(int id, const PlatformProfile *profile);
Platform *us_platform_known(int id); /* NULL: not made yet, or this process may not use it */

struct Device {
    Platform *platform;
    int32_t ordinal;
    Context *primary; /* the default context, made on first use of the device */
    int32_t references; /* vendor's count of set/reset */
    _Atomic uint64_t peers; /* a bit for each other device whose memory this one's kernels may use */
};

/* Device by number; NULL when out of range or without memory. Starts it if needed. */
Device *us_device(Platform *platform, int32_t ordinal);

/* Lock of a platform's vendor state (initialisations, references, options). */
void us_platform_lock(Platform *platform);
void us_platform_unlock(Platform *platform);

/* ---- contexts: a device's streams, and the default stream among them --------------------------------------------- */

struct Context {
    Device *device;
    void *handle;           /* what the program holds */
    Stream *default_stream; /* never NULL */
    bool primary;
    _Atomic bool stops_on_failure; /* after a failed task the later tasks of all its streams are dropped */
    int64_t options[16];    /* vendor's context-level settings; `option_set` tells which were set */
    bool option_set[16];
};

Context *us_context_primary(Device *device); /* made on first use; NULL: no memory */
Context *us_context_create(Device *device);
/* Waits for the context's streams, destroys them, ends the handle. Threads that had it current have none then. False: another
 * thread was faster. */
bool us_context_destroy(Context *context);
Context *us_context_of_handle(const void *handle); /* NULL when not alive */
bool us_context_is_ending(const Platform *platform, const void *handle); /* some thread destroys it just now */

/* The calling thread's current context of a platform; NULL when none was set or it has been destroyed. */
Context *us_context_current(const Platform *platform);
void us_context_set_current(const Platform *platform, Context *context); /* NULL clears */
/* For what another's work runs on this thread: sets the handle of its context, alive or not, and gives what that was. */
void *us_context_exchange(const Platform *platform, void *handle);

/* A small integer per thread and platform for the vendor's "last error" of the thread. */
int32_t *us_thread_status(const Platform *platform);

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* What a task that failed leaves on its stream. Vendors map it to their codes. */
typedef enum DeviceFault {
    DEVICE_FAULT_NONE,
    DEVICE_FAULT_ADDRESS,   /* a kernel left its memory, used freed memory or host memory */
    DEVICE_FAULT_COPY,      /* the same in a queued copy or fill */
    DEVICE_FAULT_NO_MEMORY, /* host memory for scratch space ran out */
    DEVICE_FAULT_TIMEOUT,   /* a queued wait for an event took too long */
} DeviceFault;

typedef enum WaitStatus { WAIT_DONE, WAIT_TIMEOUT, WAIT_FAULT } WaitStatus;

enum { STREAM_NON_BLOCKING = 1 }; /* internal flags: not ordered with the default stream (MACA) */

struct Stream {
    Context *context;
    void *handle; /* what the program holds; NULL handles of the vendor mean context->default_stream */
    uint32_t internal_flags;
    uint32_t vendor_flags;
    int32_t priority;
    int32_t id;
    bool implicit; /* nobody has created it, so nobody destroys it: no leak */
    int64_t vendor_state[5]; /* failure mode, subscription … : free for the vendor layer */
    void (*_Atomic at_end)(Stream *stream); /* the vendor layer's, called when the last task is over; NULL: nothing */
};

Stream *us_stream_create(Context *context, uint32_t internal_flags); /* NULL: no memory or no thread */
/* drain: run what is queued first; otherwise drop what has not started. Ends the handle. False: another thread was faster;
 * the stream has ended all the same. */
bool us_stream_destroy(Stream *stream, bool drain);
Stream *us_stream_of_handle(const void *handle); /* NULL when not alive */

/* A task: `run` is called once on the stream's worker (or on the submitting thread in inline mode) and may fill `why`
 * when it returns a fault; afterwards `release` (may be NULL) is called with the same pointer, also when the task was
 * dropped. `name` is a literal. Returns false when memory is exhausted; `release` has then not been called. */
typedef DeviceFault TaskRun(void *argument, Explanation *why);
bool us_stream_submit(Stream *stream, const char *name, TaskRun *run, void (*release)(void *argument), void *argument);

/* The same for work whose size is known: `category` ("kernel", "copy") and `bytes` appear in traces. */
typedef struct Work {
    const char *name, *category;
    uint64_t bytes;
} Work;
bool us_stream_submit_work(Stream *stream, Work work, TaskRun *run, void (*release)(void *argument), void *argument);

/* The same, with the bytes it uses, as the program addresses them: for UNDERSTUDY_CHECK. `size` bytes from `address`
 * on, or only some of them: runs of `run` bytes, repeated at the distances of the levels, the largest first. With one level
 * each run may be `growth` bytes longer, or shorter, than the one before it, as in a triangle. */
enum { USE_LEVEL_LIMIT = 3 };
typedef struct Use {
    uintptr_t address;
    size_t size;
    bool writes;
    int32_t level_count;
    size_t run;
    int64_t growth;
    struct {
        size_t count, distance;
    } levels[USE_LEVEL_LIMIT];
} Use;
typedef struct Uses {
    const Use *first;
    size_t count;
} Uses;
bool us_stream_submit_using(Stream *stream, Work work, Uses uses, TaskRun *run, void (*release)(void *argument),
                            void *argument);
/* The same for what cannot be a step of a graph, when the caller has seen that nothing records the stream: it is queued even if
 * another thread has begun a recording since. */
bool us_stream_submit_unrecorded(Stream *stream, Work work, Uses uses, TaskRun *run, void (*release)(void *argument),
                                 void *argument);

/* Waits until everything submitted so far has run. timeout in microseconds, negative: none. WAIT_FAULT when a fault is
 * on the stream (it stays there): see us_stream_fault. */
WaitStatus us_stream_synchronize(Stream *stream, int64_t timeout_us);
bool us_stream_idle(Stream *stream); /* in deferred mode also lets the stream run */
/* The same, but the host is not told: for the checks it has waited for nothing. */
bool us_stream_looks_idle(Stream *stream);
/* The first fault on the stream (or that stopped its context, or on sticky platforms on its device), with its
 * explanation. */
DeviceFault us_stream_fault(Stream *stream, Explanation *why);
/* Which task it was; task 0: of another stream of the context, or there is no fault. */
typedef struct TaskIdentity {
    uint64_t task;  /* 1, 2, 3 … on its stream */
    int32_t thread; /* that queued it, as the system numbers threads */
} TaskIdentity;
TaskIdentity us_stream_faulty_task(Stream *stream);
/* The number of the last task (or recorded step) that the calling thread gave to a stream that is no default one; 0:
 * none. */
uint64_t us_last_task_of_thread(void);
/* Drops tasks that have not started and waits for the one that runs, unless that calls this. */
void us_stream_abort(Stream *stream);
/* The task that runs, or is next, stops waiting for what it waits for; others stay. */
void us_stream_interrupt(Stream *stream);
/* Later work of `stream` waits for all work submitted so far to `other`; never a step of a graph. False: no memory. */
bool us_stream_wait_stream(Stream *stream, Stream *other);

WaitStatus us_context_synchronize(Context *context, int64_t timeout_us); /* all streams of the context */
WaitStatus us_device_synchronize(Device *device, int64_t timeout_us);    /* all contexts of the device */
/* Aborts all streams of the device; but a stream whose task calls this only loses what follows. False: a task still runs
 * when the time is over, or there is no memory. */
bool us_device_abort(Device *device, int64_t timeout_us);
/* Calls `visit` for all streams, the newest first. `only`: of one context; NULL: of all of the device. */
void us_device_each_stream(Device *device, const Context *only, void (*visit)(Stream *stream));
DeviceFault us_device_fault(Device *device, Explanation *why);           /* first fault found on any of its streams */
/* Forgets faults, destroys all contexts, frees all memory of the device: the vendor's device reset. drain: run what is
 * queued first; otherwise drop what has not started. */
void us_device_reset(Device *device, bool drain);

/* A side of a copy. */
Use us_use_of_rows(const void *address, size_t pitch, const Copy *copy, bool writes);

/* Checked copies and fills as tasks. False: no memory. Unrecorded: as us_stream_submit_unrecorded. */
bool us_stream_copy(Stream *stream, const Copy *copy, const char *name);
bool us_stream_copy_unrecorded(Stream *stream, const Copy *copy, const char *name);
bool us_stream_fill(Stream *stream, const Fill *fill, const char *name);
/* For the checks: new memory that others may use once the stream has come so far. */
void us_stream_has_first(Stream *stream, void *address, size_t size, const char *name);

/* ---- events ------------------------------------------------------------------------------------------------------ */

struct Event {
    Device *device; /* not its context: events outlive that */
    void *handle;
    uint32_t vendor_flags;
    int32_t id;
    int64_t vendor_state[2];
};

Event *us_event_create(Context *context); /* NULL: no memory */
/* An event that other processes may have too; whether a record is made by the same count everywhere. Its records have no
 * time. us_event_share: UNKNOWN when the event was not made for that. Destroying it takes it back from those who have not
 * imported it yet. A record whose process has ended counts as dropped. */
Event *us_event_create_shared(Context *context);
IpcStatus us_event_share(Event *event, uint64_t *key);
IpcStatus us_event_import(Context *context, uint64_t key, Event **event, Explanation *why);
bool us_event_destroy(Event *event);      /* does not block; queued records and waits keep what they need. False: was not alive */
Event *us_event_of_handle(const void *handle);
/* As us_event_destroy, but the record of the event can still be waited for, until a few hundred others have retired. */
bool us_event_retire(Event *event);
Event *us_event_retired(const void *handle); /* to be waited for; NULL: none of those */

bool us_event_record(Event *event, Stream *stream); /* false: no memory */
bool us_event_reset(Event *event, Stream *stream);  /* queued: afterwards the event is as never recorded */
/* Later work of `stream` waits for the most recent record. Never recorded: with `block_until_recorded` the stream
 * blocks until somebody records, otherwise nothing happens. timeout in microseconds, negative: none; expiry is a fault. */
bool us_event_wait(Stream *stream, Event *event, bool block_until_recorded, int64_t timeout_us);
bool us_event_recorded(const Event *event);         /* a record has been submitted */
/* The most recent record has run or been dropped; false when never recorded. */
bool us_event_complete(Event *event);
bool us_event_waited(Event *event);                 /* every wait queued on it so far has passed */
WaitStatus us_event_synchronize(Event *event, int64_t timeout_us); /* never recorded: WAIT_DONE */
/* us_stream_fault of the stream of the most recent record. */
DeviceFault us_event_fault(Event *event, Explanation *why);
/* Of the most recent record, by the monotonic clock; false when it has not run, or was dropped. */
bool us_event_time(Event *event, uint64_t *nanoseconds);

/* ---- notifies: a flag that streams set and wait for (notify.c) --------------------------------------------------- */

typedef struct Notify {
    Device *device;
    void *handle;
    uint32_t id;
    bool imported; /* another process made it */
} Notify;

Notify *us_notify_create(Device *device); /* NULL: no memory */
bool us_notify_destroy(Notify *notify);   /* does not block; queued work keeps what it needs. False: was not alive */
Notify *us_notify_of_handle(const void *handle);
bool us_notify_record(Notify *notify, Stream *stream); /* queued: sets the flag. False: no memory */
/* Later work of `stream` waits until the flag is set, and takes it away. timeout in microseconds, negative: none; expiry
 * is a fault. */
bool us_notify_wait(Stream *stream, Notify *notify, int64_t timeout_us);
void us_notify_clear(Notify *notify);
/* Lets other processes have it; a second time gives the same key. */
IpcStatus us_notify_share(Notify *notify, bool anyone, uint64_t *key);
uint64_t us_notify_key(Notify *notify); /* 0: not shared */
IpcStatus us_notify_import(Device *device, uint64_t key, Notify **notify, Explanation *why);

#endif
