/* Which stream a handle means, and the order between blocking streams and the default stream.
 *
 * The default stream waits for the blocking streams that got work since it last waited; a blocking stream waits for the
 * default stream when that got work since the stream last waited. Two blocking streams never wait for each other. */
#include "maca/common/platform.h"

#include "device/graph.h"

#include <pthread.h>
#include <unistd.h>

/* Our uses of the numbers that streams keep for us. */
enum {
    STREAM_SEEN_WORK = 0, /* CONTEXT_DEFAULT_WORK that the stream has waited for */
    STREAM_NEXT = 1,
    STREAM_HAS_WORK = 2, /* got work the default stream has not waited for */
    STREAM_OWNER = 3,    /* thread id: the stream is what mcStreamPerThread means there */
};

static int64_t load(const int64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_ACQUIRE);
}

static void store(int64_t *number, int64_t value)
{
    __atomic_store_n(number, value, __ATOMIC_RELEASE);
}

static Stream *first_stream(const Context *context)
{
    return (Stream *)(intptr_t)context->options[CONTEXT_FIRST_STREAM];
}

static Stream *next_stream(const Stream *stream)
{
    return (Stream *)(intptr_t)stream->vendor_state[STREAM_NEXT];
}

static bool is_default(const Stream *stream)
{
    return stream == stream->context->default_stream;
}

static bool is_blocking(const Stream *stream)
{
    return (stream->internal_flags & STREAM_NON_BLOCKING) == 0;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

void maca_stream_link(Stream *stream)
{
    if (!is_blocking(stream)) {
        return;
    }
    Context *context = stream->context;
    us_platform_lock(context->device->platform);
    stream->vendor_state[STREAM_NEXT] = context->options[CONTEXT_FIRST_STREAM];
    context->options[CONTEXT_FIRST_STREAM] = (int64_t)(intptr_t)stream;
    us_platform_unlock(context->device->platform);
}

static void unlink_stream(Stream *stream)
{
    Context *context = stream->context;
    us_platform_lock(context->device->platform);
    int64_t *link = &context->options[CONTEXT_FIRST_STREAM];
    while (*link != 0 && *link != (int64_t)(intptr_t)stream) {
        link = &((Stream *)(intptr_t)*link)->vendor_state[STREAM_NEXT];
    }
    if (*link != 0) {
        *link = stream->vendor_state[STREAM_NEXT];
    }
    us_platform_unlock(context->device->platform);
}

void maca_stream_destroy(Stream *stream)
{
    us_stream_synchronize(stream, -1); /* in the list: the default stream waits for what still runs */
    unlink_stream(stream);
    us_stream_destroy(stream, true);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Queues waits of the default stream for every blocking stream with new work. */
static bool wait_for_blocking_streams(Stream *default_stream)
{
    Context *context = default_stream->context;
    bool queued = true;
    us_platform_lock(context->device->platform);
    for (Stream *stream = first_stream(context); stream != NULL && queued; stream = next_stream(stream)) {
        if (__atomic_exchange_n(&stream->vendor_state[STREAM_HAS_WORK], 0, __ATOMIC_ACQ_REL) != 0) {
            queued = us_stream_wait_stream(default_stream, stream);
        }
    }
    us_platform_unlock(context->device->platform);
    return queued;
}

bool maca_stream_takes_work(const Stream *stream)
{
    return !is_default(stream) || !us_capture_in_context(stream->context, true);
}

void maca_check_stream(Call *call, const char *parameter, int32_t status, Stream *stream)
{
    us_require(call, us_stream_fault(stream, NULL) == DEVICE_FAULT_NONE, parameter, "launch", status,
               "an earlier call left a device fault; see what synchronizing returns");
    us_require(call, maca_stream_takes_work(stream), parameter, "launch", status,
               "the default stream waits for blocking streams, and one of them is being captured");
}

bool maca_stream_join(Stream *stream)
{
    return !is_default(stream) || wait_for_blocking_streams(stream);
}

/* The default stream and those that it has not waited for; all are asked, so that all run in deferred mode. */
static bool all_are_idle(Stream *default_stream, bool (*is_idle)(Stream *stream))
{
    Context *context = default_stream->context;
    bool idle = is_idle(default_stream);
    us_platform_lock(context->device->platform);
    for (Stream *stream = first_stream(context); stream != NULL; stream = next_stream(stream)) {
        if (load(&stream->vendor_state[STREAM_HAS_WORK]) != 0) {
            idle = is_idle(stream) && idle;
        }
    }
    us_platform_unlock(context->device->platform);
    return idle;
}

bool maca_stream_idle(Stream *stream)
{
    if (!is_default(stream)) {
        return us_stream_idle(stream);
    }
    /* When one still works, the program does not learn that the others do not. */
    return all_are_idle(stream, us_stream_looks_idle) && all_are_idle(stream, us_stream_idle);
}

bool maca_stream_enter(Stream *stream)
{
    if (is_default(stream)) {
        return wait_for_blocking_streams(stream);
    }
    int64_t work = load(&stream->context->options[CONTEXT_DEFAULT_WORK]);
    if (!is_blocking(stream) || load(&stream->vendor_state[STREAM_SEEN_WORK]) == work) {
        return true;
    }
    if (!us_stream_wait_stream(stream, stream->context->default_stream)) {
        return false;
    }
    /* Only now: another thread that finds the number goes on at once. One that comes before waits once more. */
    store(&stream->vendor_state[STREAM_SEEN_WORK], work);
    return true;
}

void maca_stream_leave(Stream *stream)
{
    if (is_default(stream)) {
        __atomic_add_fetch(&stream->context->options[CONTEXT_DEFAULT_WORK], 1, __ATOMIC_ACQ_REL);
    } else if (is_blocking(stream)) {
        store(&stream->vendor_state[STREAM_HAS_WORK], 1);
    }
}

bool maca_submit(Stream *stream, const char *name, TaskRun *run, void (*release)(void *argument), void *argument)
{
    bool queued = maca_stream_enter(stream) && us_stream_submit(stream, name, run, release, argument);
    maca_stream_leave(stream);
    return queued;
}

bool maca_submit_kernel(Stream *stream, const char *name, Uses uses, TaskRun *run, void (*release)(void *argument),
                        void *argument)
{
    const Work work = {name, "kernel", 0};
    bool queued = maca_stream_enter(stream) && us_stream_submit_using(stream, work, uses, run, release, argument);
    maca_stream_leave(stream);
    return queued;
}

bool maca_launch_task(const LaunchTask *task, Stream *stream)
{
    bool queued = maca_stream_enter(stream) && us_launch_submit_task(task, stream);
    maca_stream_leave(stream);
    return queued;
}

bool maca_launch(const Launch *launch, Stream *stream)
{
    const View *views[LAUNCH_VIEW_LIMIT];
    const LaunchTask task = us_launch_task(launch, views);
    return !launch->overfull && maca_launch_task(&task, stream);
}

/* ---- a thread's own stream --------------------------------------------------------------------------------------- */

static Stream *find_owned(const Context *context, int64_t owner)
{
    us_platform_lock(context->device->platform);
    Stream *stream = first_stream(context);
    while (stream != NULL && stream->vendor_state[STREAM_OWNER] != owner) {
        stream = next_stream(stream);
    }
    us_platform_unlock(context->device->platform);
    return stream;
}

/* Runs when a thread that used mcStreamPerThread ends. */
static void end_thread_streams(void *platform_argument)
{
    Platform *platform = platform_argument;
    for (int32_t i = 0; i < platform->device_count; i++) {
        Device *device = __atomic_load_n(&platform->devices[i], __ATOMIC_ACQUIRE);
        Context *context = device != NULL ? __atomic_load_n(&device->primary, __ATOMIC_ACQUIRE) : NULL;
        Stream *stream = context != NULL ? find_owned(context, gettid()) : NULL;
        if (stream != NULL) {
            maca_stream_destroy(stream);
        }
    }
}

static pthread_key_t thread_end_key;
static bool thread_end_key_exists;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void create_thread_end_key(void)
{
    thread_end_key_exists = pthread_key_create(&thread_end_key, end_thread_streams) == 0;
}

static Stream *thread_stream(Context *context)
{
    int64_t owner = gettid();
    Stream *stream = find_owned(context, owner);
    if (stream != NULL) {
        return stream;
    }
    pthread_once(&thread_end_once, create_thread_end_key);
    if (!thread_end_key_exists || pthread_setspecific(thread_end_key, context->device->platform) != 0) {
        return NULL;
    }
    stream = us_stream_create(context, 0);
    if (stream != NULL) {
        stream->implicit = true;
        stream->vendor_state[STREAM_OWNER] = owner;
        maca_stream_link(stream);
    }
    return stream;
}

Stream *maca_stream(mcStream_t handle)
{
    if (maca_in_host_function()) {
        return NULL;
    }
    if (handle == NULL || handle == mcStreamLegacy || handle == mcStreamPerThread) {
        Context *context = maca_context();
        if (context == NULL) {
            return NULL;
        }
        return handle == mcStreamPerThread ? thread_stream(context) : context->default_stream;
    }
    Stream *stream = us_stream_of_handle(handle);
    return stream != NULL && stream->context->device->platform == maca_platform() ? stream : NULL;
}
