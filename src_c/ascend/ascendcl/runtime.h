/* What the files of this folder share.
 *
 * This folder is linked twice, as libascendcl.so and as libacl_rt.so, and a program may load both. So it has no
 * variables: everything that must exist once hangs on the platform, which lives in libunderstudy.so. */
#ifndef ASCENDCL_RUNTIME_H
#define ASCENDCL_RUNTIME_H

#include "acl/acl.h"
#include "ascend/common/platform.h"
#include "device/device.h"
#include "report/report.h"

#include <pthread.h>

typedef struct ReportQueue ReportQueue;
typedef struct StreamAllocator StreamAllocator;
typedef struct StreamConfiguration StreamConfiguration;
typedef struct CallbackLists CallbackLists; /* callback_list.h */

/* State of the process that the platform has no field for. Made on first use, never released. */
typedef struct Runtime {
    Platform *platform;
    pthread_key_t chosen_device; /* per thread: number + 1 of the device aclrtSetDevice chose, as a pointer */
    _Atomic int32_t default_device; /* from the configuration of aclInit; -1: none */
    _Atomic bool messages_of_process; /* err_msg_mode of the configuration */
    uint64_t starts;                /* how often aclInit has begun to be in effect. The platform's lock */
    uint64_t configuration;         /* fingerprint of the text aclInit read */
    char *configuration_text;       /* that text; NULL: none. The platform's lock */
    size_t configuration_size;
    _Atomic uint32_t wait_timeout_s;     /* aclrtSetOpWaitTimeout; 0: none */
    _Atomic uint32_t execute_timeout_ms; /* aclrtSetOpExecuteTimeOut */
    _Atomic int32_t overflow_modes[DEVICE_LIMIT]; /* aclrtSetDeviceSatMode, + 1; 0: never set */
    _Atomic size_t peak_bytes[DEVICE_LIMIT];
    _Atomic int32_t notify_counts[DEVICE_LIMIT];
    _Atomic uint32_t core_limits[DEVICE_LIMIT][2]; /* by aclrtDevResLimitType; 0: none */
    pthread_key_t stream_of_limits;                /* per thread: handle of the stream whose core limits it uses */
    _Atomic size_t device_limits[2];               /* device_limits.c; 0: never set */
    _Atomic int32_t aborts[DEVICE_LIMIT];          /* calls of aclrtDeviceTaskAbort that go on */
    _Atomic uint32_t past_aborts[DEVICE_LIMIT];    /* that have stopped the work */
    _Atomic(aclrtExceptionInfoCallback) exception_callback;
    CallbackLists *callbacks;
    pthread_mutex_t snapshot_lock; /* the two below (snapshot.c) */
    int32_t snapshot_state;
    struct Snapshot *snapshot; /* NULL: none */
    pthread_mutex_t report_lock; /* the list of queues and everything in them */
    ReportQueue *report_queues;
    StreamAllocator *allocators; /* of streams; the platform's lock */
    StreamConfiguration *stream_configurations; /* those that have ended too; the platform's lock */
    uint64_t ended_configurations;
} Runtime;

Runtime *acl_runtime(void); /* NULL: no memory */
Runtime *acl_require_runtime(Call *call); /* or a refusal: rules process/forked, runtime/memory */

/* The card's normal page, or the host's where that is larger: memory is mapped and shared in whole ones. */
size_t acl_normal_page(void);

/* The device's memory has grown: the most that was ever in use. */
void acl_keep_peak(const Device *device);

/* Platform.options: what aclrtSetSysParamOpt sets, by option. */
enum { SYSTEM_OPTION_COUNT = 3 };

/* Ends a call. The fault of a queued task that it found also becomes the thread's last error (aclrtGetLastError); refusals
 * do not: clients show that error in place of every later one (torch-npu-client 6.4). */
aclError acl_end(Call *call);

/* The platform, or a refusal: a child of a process that had used devices has none. */
Platform *acl_require_platform(Call *call);

/* The platform's device by number, or a refusal. */
Device *acl_require_device(Call *call, const char *parameter, const char *rule, int64_t ordinal);

/* The calling thread's context, or a refusal. */
Context *acl_require_context(Call *call, const char *parameter, const char *rule);
Context *acl_current_context(void); /* NULL: none */

/* The context behind a handle, or a refusal with that status. */
Context *acl_require_live_context(Call *call, const char *parameter, const char *rule, int32_t status,
                                  aclrtContext handle);

/* Lets the thread fall back to the default context of the device it had set, if that is still there. */
void acl_return_to_chosen_device(void);
void acl_remember_chosen_device(int32_t ordinal);

/* Makes a stream in the current context: rules stream/null, context/none, stream/resources. */
enum { ACL_STREAM_LOWEST_PRIORITY = 7 };
void acl_create_stream(Call *call, aclrtStream *stream, uint32_t flags, uint32_t priority);

/* The stream behind a handle; NULL is the default stream of the current context. Refuses handles that are not alive. */
Stream *acl_require_stream(Call *call, const char *parameter, const char *rule, aclrtStream handle);

/* Refuses when the stream belongs to another context than the thread's. */
void acl_require_own_stream(Call *call, const char *parameter, const char *rule, const Stream *stream,
                            const Context *context);

/* ---- while work is recorded (cann-runtime-3 13.1); what is refused makes the recording invalid ---- */

/* The stream that gets work, or a refusal: rules context/none, stream/dead, stream/implicit (the default stream of a context
 * with a capture), device/aborting. */
Stream *acl_require_work_stream(Call *call, aclrtStream handle);

/* For calls that wait (rule device/aborting): no abort goes on; what was given before the wait; none came meanwhile either. */
void acl_require_no_abort(Call *call, const Device *device);
uint32_t acl_past_aborts(const Device *device);
void acl_require_no_abort_since(Call *call, const Device *device, uint32_t past_aborts);

/* The same, of the thread's own context: rule stream/context. */
Stream *acl_require_own_work_stream(Call *call, aclrtStream handle);

/* Refuses work that a model which is built would lose: rule stream/closed. */
void acl_require_open(Call *call, const Stream *stream);

/* Refuses tasks while a group of operators is recorded, and tasks that would be lost: rules stream/group,
 * stream/other-group, stream/closed. */
void acl_require_no_group(Call *call, const Stream *stream);

/* The stream of the thread's own context that gets a task which is no operator: the rules of both. */
Stream *acl_require_task_stream(Call *call, aclrtStream handle);

/* Refuses to wait for, or ask about, what is recorded and so does not run: rules stream/capture, <parameter>/captured,
 * context/capture. */
void acl_require_running_stream(Call *call, const Stream *stream);
void acl_require_running_event(Call *call, const char *parameter, const Event *event);
void acl_require_running_context(Call *call, const Context *context);

/* Refuses what a capture forbids this thread: rule thread/capture. */
void acl_require_safe(Call *call);

/* The event behind a handle, or a refusal. */
Event *acl_require_event(Call *call, const char *parameter, const char *rule, aclrtEvent handle);

/* Event.vendor_state: which function made it, which decides what it allows; whose it is. */
enum { EVENT_FORM, EVENT_OWNER };
enum { EVENT_PLAIN, EVENT_WITH_FLAG, EVENT_EX };
enum { ASCEND_EVENT = 0x61636c };

/* Stream.vendor_state: settings and flags, the tag, the ReportQueues that run the stream's callbacks and host functions,
 * both limits of cores. */
enum { STREAM_SETTINGS, STREAM_TAG, STREAM_REPORT_QUEUE, STREAM_HOST_QUEUE, STREAM_CORE_LIMITS };
enum {
    STREAM_CHECKS_OVERFLOW = 1,
    STREAM_CACHES_OPERATORS = 2,
    STREAM_RUNS_HOST_FUNCTIONS = 4,
    STREAM_FAULT_REPORTED = 8,
    STREAM_ANNOUNCED = 16, /* to the program's callbacks */
    STREAM_END_ANNOUNCED = 32,
    STREAM_ABORTED = 64, /* by aclrtStreamAbort */
};

/* Milliseconds of a vendor's call (-1: no limit) in microseconds; refuses 0 and less than -1. */
int64_t acl_require_timeout(Call *call, const char *parameter, const char *rule, int32_t milliseconds);

/* Tells the program's exception callbacks about a fault of the stream's tasks, if there is one; once per stream. */
void acl_report_exception(Stream *stream);
/* What a task that failed gives. */
aclError acl_status_of_fault(DeviceFault fault);

/* Tells the program's callbacks that a stream has been made (once) or will end (once), or what happens to a device. */
void acl_tell_stream_begins(Stream *stream);
void acl_tell_stream_ends(Stream *stream);
void acl_tell_device(int32_t ordinal, aclrtDeviceState state);
/* Refuses on products whose work cannot be stopped: rule device/unsupported. */
void acl_require_aborts(Call *call);

/* Calls what was registered with aclInitCallbackRegister and aclFinalizeCallbackRegister: rule callback/failed. */
void acl_tell_init(Call *call, Runtime *runtime);
void acl_tell_finalize(Call *call, Runtime *runtime);

/* Turns the fault that a wait found into a refusal of the waiting call. Rules: kernel-fault, copy-fault,
 * scratch-memory, wait-timeout. */
void acl_refuse_fault(Call *call, const char *parameter, DeviceFault fault, const Explanation *why);

#endif
