/* Snapshots of the process's devices (cann-runtime-3 18): RUNNING, LOCKED, BACKED_UP. */
#include "device/snapshot.h"

#include "ascend/ascendcl/callback_list.h"
#include "report/gate.h"
#include "report/grace.h"

#include <string.h>
#include <unistd.h>

enum { RUNNING, LOCKED, BACKED_UP, CHANGING }; /* CHANGING: a step is being made, callbacks run */
static const int64_t PATIENCE_US = 60 * 1000000;
static const uint64_t CALLS_NS = 1000 * 1000000;

static const char *name_of(int32_t state)
{
    static const char *const names[] = {"running", "locked", "backed up", "changing"};
    return names[state];
}

static void require_product(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "devices of the %s have no snapshots", ascend_product()->series);
}

/* A step from one state to another. */
typedef struct Step {
    Call call;
    Runtime *runtime; /* NULL: refused before it began */
    int32_t before;
} Step;

/* `from`: a bit for each state in which the step can be made. Rules device/unsupported, pid/other, reserve/reserved,
 * process/state, process/forked, runtime/memory. */
static Step begin_step(const char *function, int pid, const void *reserved, unsigned from, int32_t status)
{
    Step step = {.call = us_call_begin(function)};
    Call *call = &step.call;
    require_product(call);
    us_require(call, pid == getpid(), "pid", "other", ACL_ERROR_RT_PARAM_INVALID,
               "pid is %d; it must be that of this process, %d", pid, (int)getpid());
    us_require(call, reserved == NULL, "reserve", "reserved", ACL_ERROR_RT_PARAM_INVALID,
               "the second argument is %p; it must be NULL", reserved);
    Runtime *runtime = acl_require_runtime(call);
    if (runtime == NULL) {
        return step;
    }
    pthread_mutex_lock(&runtime->snapshot_lock);
    step.before = runtime->snapshot_state;
    if ((from >> step.before & 1) != 0) {
        runtime->snapshot_state = CHANGING;
        step.runtime = runtime;
    }
    pthread_mutex_unlock(&runtime->snapshot_lock);
    us_require(call, step.runtime != NULL, "process", "state", status, "the process is %s", name_of(step.before));
    return step;
}

static aclError end_step(Step *step, int32_t state)
{
    Runtime *runtime = step->runtime;
    if (runtime != NULL) {
        pthread_mutex_lock(&runtime->snapshot_lock);
        runtime->snapshot_state = step->call.status == 0 ? state : step->before;
        pthread_mutex_unlock(&runtime->snapshot_lock);
    }
    return acl_end(&step->call);
}

static bool in_use(Platform *platform, int32_t ordinal)
{
    us_platform_lock(platform);
    const Device *device = platform->devices[ordinal];
    bool used = device != NULL && device->references > 0;
    us_platform_unlock(platform);
    return used;
}

/* Calls what is registered for the stage, once for each device in use. */
static void tell(Step *step, aclrtSnapShotStage stage)
{
    Call *call = &step->call;
    Callback callbacks[CALLBACK_LIMIT];
    size_t count = call->status == 0 ? callbacks_copy(step->runtime, CALLBACK_SNAPSHOT, callbacks) : 0;
    for (size_t i = 0; i < count; i++) {
        bool meant = callbacks[i].type == (int32_t)stage;
        for (int32_t device = 0; meant && device < step->runtime->platform->device_count && call->status == 0; device++) {
            uint32_t answer = 0;
            if (in_use(step->runtime->platform, device)) {
                answer = ((aclrtSnapShotCallBack)callbacks[i].function)(device, callbacks[i].arguments);
            }
            us_require(call, answer == 0, "callback", "failed", ACL_ERROR_SNAPSHOT_CALLBACK_FAILED,
                       "a callback of stage %d has returned %u for device %d", (int)stage, (unsigned)answer, (int)device);
        }
    }
}

/* False: some device still had work when the time was over. */
static bool come_to_rest(Platform *platform)
{
    bool rests = true;
    for (int32_t i = 0; i < platform->device_count && rests; i++) {
        Device *device = in_use(platform, i) ? us_device(platform, i) : NULL;
        rests = device == NULL || us_device_synchronize(device, PATIENCE_US) != WAIT_TIMEOUT;
    }
    return rests;
}

/* A thread of the program lets queued callbacks run with these. */
static bool serves(const char *function)
{
    return strcmp(function, "aclrtProcessReport") == 0 || strcmp(function, "aclrtProcessHostFunc") == 0;
}

/* Other threads' calls of this vendor; but work that is queued goes on, so do the callbacks of a call that has begun, and any
 * thread may undo the lock. */
static bool waits(const char *function)
{
    return strncmp(function, "acl", 3) == 0 && strncmp(function, "aclrtSnapShot", 13) != 0 && !serves(function) &&
           !us_thread_runs_task() && !us_grace_is_nested();
}

aclError aclrtSnapShotProcessLock(int pid, void *reserve)
{
    Step step = begin_step("aclrtSnapShotProcessLock", pid, reserve, 1 << RUNNING, ACL_ERROR_SNAPSHOT_LOCK_FAILED);
    tell(&step, ACL_RT_SNAPSHOT_LOCK_PRE);
    if (step.call.status == 0) {
        us_gate_close(waits);
        us_grace_wait_for_others(CALLS_NS); /* after that, those that are left wait for something */
        us_require(&step.call, come_to_rest(step.runtime->platform), "device", "busy", ACL_ERROR_SNAPSHOT_LOCK_TIMEOUT,
                   "queued work has not come to an end within %d s", (int)(PATIENCE_US / 1000000));
        if (step.call.status != 0) {
            us_gate_open();
        }
    }
    return end_step(&step, LOCKED);
}

aclError aclrtSnapShotProcessBackup(int pid, aclrtSnapShotBackupArgs *args)
{
    Step step = begin_step("aclrtSnapShotProcessBackup", pid, args, 1 << LOCKED, ACL_ERROR_SNAPSHOT_BACKUP_FAILED);
    Snapshot *snapshot = NULL;
    tell(&step, ACL_RT_SNAPSHOT_BACKUP_PRE);
    if (step.call.status == 0) {
        come_to_rest(step.runtime->platform); /* what this thread has queued since */
        snapshot = us_snapshot_take(step.runtime->platform);
        us_require(&step.call, snapshot != NULL, "process", "memory", ACL_ERROR_SNAPSHOT_BACKUP_FAILED,
                   "the host has too little memory for that of the devices");
    }
    tell(&step, ACL_RT_SNAPSHOT_BACKUP_POST);
    if (step.call.status == 0) {
        step.runtime->snapshot = snapshot;
    } else {
        us_snapshot_end(snapshot);
    }
    return end_step(&step, BACKED_UP);
}

/* Whoever makes a step owns the snapshot. */
static void forget_snapshot(Runtime *runtime)
{
    us_snapshot_end(runtime->snapshot);
    runtime->snapshot = NULL;
}

aclError aclrtSnapShotProcessRestore(int pid, aclrtSnapShotRestoreArgs *args)
{
    Step step = begin_step("aclrtSnapShotProcessRestore", pid, args, 1 << BACKED_UP, ACL_ERROR_SNAPSHOT_RESTORE_FAILED);
    tell(&step, ACL_RT_SNAPSHOT_RESTORE_PRE);
    if (step.call.status == 0) {
        come_to_rest(step.runtime->platform); /* what this thread has queued since */
        us_require(&step.call, us_snapshot_put_back(step.runtime->platform, step.runtime->snapshot), "process", "memory",
                   ACL_ERROR_SNAPSHOT_RESTORE_FAILED, "the host has too little memory for that of the devices");
    }
    tell(&step, ACL_RT_SNAPSHOT_RESTORE_POST);
    if (step.call.status == 0) {
        forget_snapshot(step.runtime);
    }
    return end_step(&step, LOCKED);
}

aclError aclrtSnapShotProcessUnlock(int pid, void *reserve)
{
    Step step = begin_step("aclrtSnapShotProcessUnlock", pid, reserve, 1 << LOCKED | 1 << BACKED_UP,
                           ACL_ERROR_SNAPSHOT_UNLOCK_FAILED);
    if (step.call.status == 0) {
        forget_snapshot(step.runtime);
        us_gate_open();
        step.before = RUNNING; /* whatever the callbacks say */
    }
    tell(&step, ACL_RT_SNAPSHOT_UNLOCK_POST);
    return end_step(&step, RUNNING);
}

/* ---- callbacks ---- */

static Runtime *require_callback(Call *call, aclrtSnapShotStage stage, aclrtSnapShotCallBack callback)
{
    require_product(call);
    us_require(call, (int)stage >= ACL_RT_SNAPSHOT_LOCK_PRE && (int)stage <= ACL_RT_SNAPSHOT_UNLOCK_POST, "stage", "range",
               ACL_ERROR_RT_PARAM_INVALID, "stage is %d; it must be 0 to 5", (int)stage);
    us_require(call, callback != NULL, "callback", "null", ACL_ERROR_INVALID_PARAM, "callback is NULL");
    return acl_require_runtime(call);
}

aclError aclrtSnapShotCallbackRegister(aclrtSnapShotStage stage, aclrtSnapShotCallBack callback, void *args)
{
    Call call = us_call_begin("aclrtSnapShotCallbackRegister");
    Runtime *runtime = require_callback(&call, stage, callback);
    const Callback entry = {.type = (int32_t)stage, .function = (AnyFunction *)callback, .arguments = args};
    CallbackAdded added = call.status == 0 ? callbacks_add_new(runtime, CALLBACK_SNAPSHOT, &entry) : CALLBACK_IS_NEW;
    us_require(&call, added != CALLBACK_IS_THERE, "callback", "registered", ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED,
               "the callback is registered for stage %d already", (int)stage);
    us_require(&call, added != CALLBACKS_ARE_FULL, "callback", "limit", ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED,
               "there are %d callbacks already", (int)CALLBACK_LIMIT);
    return acl_end(&call);
}

aclError aclrtSnapShotCallbackUnregister(aclrtSnapShotStage stage, aclrtSnapShotCallBack callback)
{
    Call call = us_call_begin("aclrtSnapShotCallbackUnregister");
    Runtime *runtime = require_callback(&call, stage, callback);
    const Callback entry = {.type = (int32_t)stage, .function = (AnyFunction *)callback};
    bool removed = call.status == 0 && callbacks_remove(runtime, CALLBACK_SNAPSHOT, &entry);
    us_require(&call, removed, "callback", "unknown", ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED,
               "the callback is not registered for stage %d", (int)stage);
    return acl_end(&call);
}
