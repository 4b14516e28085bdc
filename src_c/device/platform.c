/* Platforms, devices, contexts, and what each thread has current. */
#include "device/check.h"
#include "device/stream_internal.h"
#include "report/grace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static PlatformState *platforms[PLATFORM_LIMIT];
static pthread_mutex_t platforms_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool forked_after_use = false, told_of_fork = false;

/* Handles, not pointers: a context that another thread destroys is simply not current any more. */
static _Thread_local void *current_contexts[PLATFORM_LIMIT];
static _Thread_local int32_t thread_statuses[PLATFORM_LIMIT];

/* ---- platforms ---- */

/* A child of a process that has used devices has no workers and shares nothing with the parent: it cannot go on. */
static void after_fork_in_child(void)
{
    atomic_store(&forked_after_use, true);
    atomic_store(&told_of_fork, false);
}

Platform *us_platform_at(int id)
{
    PlatformState *platform = __atomic_load_n(&platforms[id], __ATOMIC_ACQUIRE);
    return platform == NULL ? NULL : &platform->public;
}

/* A rising list of device numbers, "0,2". What follows the first entry that names no device is not read. */
static void choose_visible_devices(Platform *platform, const char *list)
{
    int32_t present = platform->device_count;
    int32_t last = -1;
    platform->device_count = 0;
    for (const char *at = list; platform->device_count < present; at++) {
        char *end = NULL;
        long number = strtol(at, &end, 10);
        if (end == at || number <= last || number >= present || (*end != ',' && *end != '\0')) {
            return;
        }
        platform->physical_number[platform->device_count++] = last = (int32_t)number;
        at = end;
        if (*at == '\0') {
            return;
        }
    }
}

static void count_devices(Platform *platform)
{
    platform->device_count = (int32_t)us_environment_integer("UNDERSTUDY_DEVICES", 1, 0, DEVICE_LIMIT);
    for (int32_t i = 0; i < platform->device_count; i++) {
        platform->physical_number[i] = i;
    }
    const char *variable = platform->profile.visible_devices;
    const char *list = variable != NULL ? us_environment_text(variable, "") : "";
    if (list[0] != '\0') {
        choose_visible_devices(platform, list);
    }
}

static PlatformState *new_platform(int id, const PlatformProfile *profile)
{
    PlatformState *platform = calloc(1, sizeof *platform);
    if (platform == NULL) {
        return NULL;
    }
    platform->public.id = id;
    platform->public.profile = *profile;
    count_devices(&platform->public);
    pthread_mutex_init(&platform->lock, NULL);
    pthread_mutex_init(&platform->memory_lock, NULL);
    pthread_mutex_init(&platform->device_lock, NULL);
    us_arena_init(&platform->host_arena, true, (us_checks() & CHECK_SYNC) != 0);
    return platform;
}

Platform *us_platform_known(int id)
{
    return atomic_load_explicit(&forked_after_use, memory_order_relaxed) ? NULL : us_platform_at(id);
}

Platform *us_platform(int id, const PlatformProfile *profile)
{
    Platform *known = us_platform_known(id);
    if (known != NULL) {
        return known;
    }
    if (atomic_load_explicit(&forked_after_use, memory_order_relaxed)) {
        if (!atomic_exchange(&told_of_fork, true)) { /* a call asks more than once */
            us_log(LOG_LEVEL_ERROR, "this process was forked after its parent had used %s devices; start a new process",
                   profile->name);
        }
        return NULL;
    }
    pthread_mutex_lock(&platforms_lock);
    if (platforms[id] == NULL) {
        static bool watching_forks = false;
        if (!watching_forks) {
            watching_forks = pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
        }
        __atomic_store_n(&platforms[id], new_platform(id, profile), __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&platforms_lock);
    return us_platform_at(id);
}

void us_platform_lock(Platform *platform)
{
    pthread_mutex_lock(&platform_state(platform)->lock);
}

void us_platform_unlock(Platform *platform)
{
    pthread_mutex_unlock(&platform_state(platform)->lock);
}

int32_t *us_thread_status(const Platform *platform)
{
    return &thread_statuses[platform->id];
}

/* ---- devices ---- */

static DeviceState *new_device(Platform *platform, int32_t ordinal)
{
    DeviceState *device = calloc(1, sizeof *device);
    if (device == NULL) {
        return NULL;
    }
    device->public.platform = platform;
    device->public.ordinal = ordinal;
    pthread_mutex_init(&device->fault_lock, NULL);
    us_memory_start_device(device);
    return device;
}

Device *us_device(Platform *platform, int32_t ordinal)
{
    if (ordinal < 0 || ordinal >= platform->device_count) {
        return NULL;
    }
    Device *device = __atomic_load_n(&platform->devices[ordinal], __ATOMIC_ACQUIRE);
    if (device != NULL) {
        return device;
    }
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->device_lock);
    if (platform->devices[ordinal] == NULL) {
        DeviceState *made = new_device(platform, ordinal);
        __atomic_store_n(&platform->devices[ordinal], made == NULL ? NULL : &made->public, __ATOMIC_RELEASE);
    }
    device = platform->devices[ordinal];
    pthread_mutex_unlock(&state->device_lock);
    return device;
}

DeviceFault us_device_fault(Device *device, Explanation *why)
{
    DeviceState *state = device_state(device);
    pthread_mutex_lock(&state->fault_lock);
    DeviceFault fault = state->fault;
    if (fault != DEVICE_FAULT_NONE && why != NULL) {
        *why = state->fault_why;
    }
    pthread_mutex_unlock(&state->fault_lock);
    return fault;
}

/* ---- contexts ---- */

static void link_context(Device *device, ContextState *context)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->device_lock);
    context->next = device_state(device)->contexts;
    device_state(device)->contexts = context;
    pthread_mutex_unlock(&platform->device_lock);
}

static void unlink_context(ContextState *context)
{
    Device *device = context->public.device;
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->device_lock);
    ContextState **link = &device_state(device)->contexts;
    while (*link != NULL && *link != context) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = context->next;
    }
    pthread_mutex_unlock(&platform->device_lock);
}

bool us_context_hold(Context *context)
{
    return us_reference_take(&context_state(context)->references);
}

void us_context_let_go(Context *context)
{
    if (us_reference_drop(&context_state(context)->references)) {
        us_grace_bury(free, context_state(context));
    }
}

static Context *new_context(Device *device, bool primary)
{
    ContextState *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return NULL;
    }
    atomic_init(&context->references, 1);
    context->public.device = device;
    context->public.primary = primary;
    context->public.handle = us_handle_create(HANDLE_CONTEXT, context);
    if (context->public.handle == NULL) {
        us_context_let_go(&context->public);
        return NULL;
    }
    link_context(device, context);
    context->public.default_stream = us_stream_create(&context->public, 0);
    if (context->public.default_stream == NULL) {
        us_context_destroy(&context->public);
        return NULL;
    }
    return &context->public;
}

Context *us_context_create(Device *device)
{
    return new_context(device, false);
}

/* Makes a context the device's default one, unless it is ending already. */
static bool publish_primary(Device *device, Context *context)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->device_lock);
    bool alive = us_context_of_handle(context->handle) != NULL;
    if (alive) {
        __atomic_store_n(&device->primary, context, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&platform->device_lock);
    return alive;
}

Context *us_context_primary(Device *device)
{
    enum { ATTEMPTS = 100 }; /* other threads may reset the device meanwhile */
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    Context *context = __atomic_load_n(&device->primary, __ATOMIC_ACQUIRE);
    if (context != NULL) {
        return context;
    }
    pthread_mutex_lock(&making);
    context = __atomic_load_n(&device->primary, __ATOMIC_ACQUIRE);
    for (int i = 0; context == NULL && i < ATTEMPTS; i++) {
        context = new_context(device, true);
        context = context != NULL && publish_primary(device, context) ? context : NULL;
    }
    pthread_mutex_unlock(&making);
    return context;
}

/* With the device lock held. */
static void stop_stream(StreamState *stream, DeviceFault fault, const Explanation *why)
{
    us_stream_keep_fault(stream, fault, why, (TaskIdentity){0, 0});
    atomic_store(&stream->stopped, true);
}

bool us_context_add_stream(Context *public, StreamState *stream)
{
    ContextState *context = context_state(public);
    PlatformState *platform = platform_state(public->device->platform);
    pthread_mutex_lock(&platform->device_lock);
    bool taken = !context->ending;
    if (taken) {
        stream->next = context->streams;
        context->streams = stream;
    }
    if (taken && context->stop_fault != DEVICE_FAULT_NONE) {
        stop_stream(stream, context->stop_fault, &context->stop_why);
    }
    pthread_mutex_unlock(&platform->device_lock);
    return taken;
}

void us_context_stop(Context *public, DeviceFault fault, const Explanation *why)
{
    ContextState *context = context_state(public);
    PlatformState *platform = platform_state(public->device->platform);
    pthread_mutex_lock(&platform->device_lock);
    if (context->stop_fault == DEVICE_FAULT_NONE) {
        context->stop_fault = fault;
        context->stop_why = *why;
        for (StreamState *stream = context->streams; stream != NULL; stream = stream->next) {
            stop_stream(stream, fault, why);
        }
    }
    pthread_mutex_unlock(&platform->device_lock);
}

void us_context_remove_stream(Context *context, StreamState *stream)
{
    PlatformState *platform = platform_state(context->device->platform);
    pthread_mutex_lock(&platform->device_lock);
    StreamState **link = &context_state(context)->streams;
    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = stream->next;
    }
    pthread_mutex_unlock(&platform->device_lock);
}

/* A stream of the context, held by the caller; NULL when it has none left. */
static StreamState *hold_first_stream(ContextState *context)
{
    PlatformState *platform = platform_state(context->public.device->platform);
    pthread_mutex_lock(&platform->device_lock);
    StreamState *stream = context->streams;
    if (stream != NULL && !us_stream_hold(stream)) {
        stream = NULL; /* cannot be: what is in the list holds itself */
    }
    pthread_mutex_unlock(&platform->device_lock);
    return stream;
}

/* From here on the context takes no streams and is no device's default one; its handle has been ended before. */
static void begin_end(ContextState *context)
{
    Device *device = context->public.device;
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->device_lock);
    context->ending = true;
    if (device->primary == &context->public) {
        __atomic_store_n(&device->primary, NULL, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&platform->device_lock);
}

static void drop_tasks(ContextState *context)
{
    PlatformState *platform = platform_state(context->public.device->platform);
    pthread_mutex_lock(&platform->device_lock);
    for (StreamState *stream = context->streams; stream != NULL; stream = stream->next) {
        us_stream_drop(stream);
    }
    pthread_mutex_unlock(&platform->device_lock);
}

/* What is left to do when the handle has been ended. */
static void end_context(ContextState *context, bool drain)
{
    begin_end(context);
    if (!drain) {
        drop_tasks(context);
    }
    for (StreamState *stream = hold_first_stream(context); stream != NULL; stream = hold_first_stream(context)) {
        us_stream_destroy(&stream->public, drain);
        us_context_remove_stream(&context->public, stream);
        us_stream_let_go(stream);
    }
    unlink_context(context);
    us_context_let_go(&context->public);
}

bool us_context_destroy(Context *context)
{
    bool alive = us_handle_end(context->handle, HANDLE_CONTEXT) != NULL;
    if (alive) {
        end_context(context_state(context), true);
    }
    return alive;
}

Context *us_context_of_handle(const void *handle)
{
    ContextState *context = us_handle_object(handle, HANDLE_CONTEXT);
    return context == NULL ? NULL : &context->public;
}

bool us_context_is_ending(const Platform *platform, const void *handle)
{
    bool ending = false;
    pthread_mutex_lock(&platform_state(platform)->device_lock);
    for (int32_t i = 0; i < platform->device_count; i++) {
        const Device *device = __atomic_load_n(&platform->devices[i], __ATOMIC_ACQUIRE);
        const ContextState *context = device != NULL ? device_state(device)->contexts : NULL;
        for (; context != NULL; context = context->next) {
            ending |= context->ending && context->public.handle == handle;
        }
    }
    pthread_mutex_unlock(&platform_state(platform)->device_lock);
    return ending;
}

Context *us_context_current(const Platform *platform)
{
    return us_context_of_handle(current_contexts[platform->id]);
}

void us_context_set_current(const Platform *platform, Context *context)
{
    current_contexts[platform->id] = context == NULL ? NULL : context->handle;
}

void *us_context_exchange(const Platform *platform, void *handle)
{
    void *before = current_contexts[platform->id];
    current_contexts[platform->id] = handle;
    return before;
}

/* ---- reset ---- */

/* Other threads may make new contexts while those of the device are ended. */
static void mark_contexts(Device *device)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->device_lock);
    for (ContextState *context = device_state(device)->contexts; context != NULL; context = context->next) {
        context->reset = true;
    }
    pthread_mutex_unlock(&platform->device_lock);
}

/* A marked context of the device whose handle this call has ended; NULL when none is left, or (`*busy`) when other threads
 * are destroying those that are. */
static ContextState *take_context(Device *device, bool *busy)
{
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->device_lock);
    ContextState *context = device_state(device)->contexts;
    *busy = false;
    while (context != NULL && (!context->reset || us_handle_end(context->public.handle, HANDLE_CONTEXT) == NULL)) {
        *busy = *busy || context->reset;
        context = context->next;
    }
    *busy = *busy || context != NULL;
    pthread_mutex_unlock(&platform->device_lock);
    return context;
}

static void forget_peers(Device *device)
{
    atomic_store(&device->peers, 0);
    for (int32_t i = 0; i < device->platform->device_count; i++) {
        Device *other = __atomic_load_n(&device->platform->devices[i], __ATOMIC_ACQUIRE);
        if (other != NULL) {
            atomic_fetch_and(&other->peers, ~((uint64_t)1 << device->ordinal));
        }
    }
}

void us_device_reset(Device *device, bool drain)
{
    enum { LOOK_AGAIN_US = 100 };
    bool busy = true;
    /* What other threads make from here on belongs to the device as it is after the reset. */
    const uint64_t newest = us_memory_newest(device);
    if (drain && us_checks() & CHECK_LEAK) {
        us_device_synchronize(device, -1); /* work that is queued may free memory */
    }
    us_check_leaks_of_device(device);
    mark_contexts(device);
    while (busy) {
        ContextState *context = take_context(device, &busy);
        if (context != NULL) {
            end_context(context, drain);
        } else if (busy) {
            usleep(LOOK_AGAIN_US);
        }
    }
    us_memory_free_all(device, newest);
    forget_peers(device);
    DeviceState *state = device_state(device);
    pthread_mutex_lock(&state->fault_lock);
    state->fault = DEVICE_FAULT_NONE;
    pthread_mutex_unlock(&state->fault_lock);
}

uint64_t us_device_streams(const Device *device)
{
    uint64_t count = 0;
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->device_lock);
    for (ContextState *c = device_state(device)->contexts; c != NULL; c = c->next) {
        for (StreamState *stream = c->streams; stream != NULL; stream = stream->next) {
            count += &stream->public != c->public.default_stream && !stream->public.implicit;
        }
    }
    pthread_mutex_unlock(&platform->device_lock);
    return count;
}

/* ---- end of the process ---- */

/* `deadline` NULL: only asks them to. */
static void stop_workers(Platform *platform, const struct timespec *deadline)
{
    for (int32_t i = 0; platform != NULL && i < platform->device_count; i++) {
        StreamList list;
        Device *device = __atomic_load_n(&platform->devices[i], __ATOMIC_ACQUIRE);
        if (device != NULL && us_stream_list_hold(device, NULL, &list)) {
            for (size_t s = 0; s < list.count; s++) {
                if (deadline != NULL) {
                    us_worker_stop(list.streams[s], deadline);
                } else {
                    us_worker_ask_to_stop(list.streams[s]);
                }
            }
            us_stream_list_let_go(&list);
        }
    }
}

__attribute__((destructor)) static void stop_all_workers(void)
{
    static const uint64_t PATIENCE = 2u * 1000000000u; /* callbacks that never return must not hold up the exit */
    if (atomic_load(&forked_after_use)) {
        return;
    }
    for (int id = 0; id < PLATFORM_LIMIT; id++) {
        if (us_platform_at(id) != NULL) {
            us_check_leaks(us_platform_at(id));
        }
        stop_workers(us_platform_at(id), NULL);
    }
    const struct timespec deadline = us_deadline(PATIENCE);
    for (int id = 0; id < PLATFORM_LIMIT; id++) {
        stop_workers(us_platform_at(id), &deadline);
    }
}
