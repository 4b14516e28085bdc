/* Order, waiting, events, faults, abort and modes of streams; several threads submitting at once. */
#include "../check.h"
#include "device/device.h"
#include "device/event_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const PlatformProfile profile = {.name = "Test", .memory_bytes = (size_t)1 << 30};

typedef struct Step {
    _Atomic int *counter;
    int expected; /* value before this step; -1: any */
    int sleep_us;
    _Atomic int *released;
} Step;

static DeviceFault run_step(void *argument, Explanation *why)
{
    (void)why;
    Step *step = argument;
    if (step->sleep_us > 0) {
        usleep((useconds_t)step->sleep_us);
    }
    int before = atomic_fetch_add(step->counter, 1);
    CHECK(step->expected < 0 || before == step->expected);
    return DEVICE_FAULT_NONE;
}

static void release_step(void *argument)
{
    Step *step = argument;
    if (step->released != NULL) {
        atomic_fetch_add(step->released, 1);
    }
    free(step);
}

static void submit(Stream *stream, Step step)
{
    Step *copy = malloc(sizeof *copy);
    *copy = step;
    CHECK(us_stream_submit(stream, "step", run_step, release_step, copy));
}

static void test_order(Context *context)
{
    Stream *stream = us_stream_create(context, 0);
    _Atomic int counter = 0, released = 0;
    for (int i = 0; i < 1000; i++) {
        submit(stream, (Step){&counter, i, i % 100 == 0 ? 50 : 0, &released});
    }
    CHECK(us_stream_synchronize(stream, -1) == WAIT_DONE);
    CHECK(counter == 1000 && released == 1000 && us_stream_idle(stream));
    us_stream_destroy(stream, true);
}

static void test_events_join_streams(Context *context)
{
    Stream *first = us_stream_create(context, 0);
    Stream *second = us_stream_create(context, 0);
    Event *event = us_event_create(context);
    CHECK(!us_event_recorded(event) && !us_event_complete(event));
    CHECK(us_event_synchronize(event, 0) == WAIT_DONE); /* never recorded */
    for (int round = 0; round < 50; round++) {
        _Atomic int counter = 0;
        submit(first, (Step){&counter, 0, 200, NULL});
        CHECK(us_event_record(event, first));
        CHECK(us_event_wait(second, event, false, -1));
        submit(second, (Step){&counter, 1, 0, NULL});
        CHECK(us_stream_synchronize(second, -1) == WAIT_DONE);
        CHECK(counter == 2 && us_event_complete(event) && us_event_waited(event));
    }
    uint64_t time = 0, later = 0;
    CHECK(us_event_time(event, &time) && time > 0);
    CHECK(us_event_record(event, first) && us_event_synchronize(event, -1) == WAIT_DONE);
    CHECK(us_event_time(event, &later) && later >= time);
    CHECK(us_event_reset(event, first) && us_stream_synchronize(first, -1) == WAIT_DONE);
    CHECK(!us_event_recorded(event) && !us_event_complete(event));
    us_event_destroy(event);
    us_stream_destroy(first, true);
    us_stream_destroy(second, true);
}

/* A record runs on its stream, and a graph that waited for it forgets it, before the thread that queued it publishes its number:
 * what is awaited from then on is the next one. */
static void test_a_record_that_is_forgotten_before_it_is_published(Context *context)
{
    Event *event = us_event_create(context);
    EventState *state = event_state(event);
    CHECK(us_event_awaited(state, true) == 1 && us_event_awaited(state, false) == 0);
    us_event_reach(state, 1, 0);
    us_event_forget(state);
    CHECK(us_event_awaited(state, true) == 2 && us_event_awaited(state, false) == 0);
    CHECK(us_event_issue_record(state) == 1);
    CHECK(us_event_awaited(state, true) == 2 && us_event_awaited(state, false) == 0);
    us_event_destroy(event);
}

static void test_wait_before_record(Context *context)
{
    Stream *waiting = us_stream_create(context, 0);
    Stream *recording = us_stream_create(context, 0);
    Event *event = us_event_create(context);
    _Atomic int counter = 0;
    CHECK(us_event_wait(waiting, event, true, -1));
    submit(waiting, (Step){&counter, 1, 0, NULL});
    CHECK(us_stream_synchronize(waiting, 20000) == WAIT_TIMEOUT && counter == 0);
    submit(recording, (Step){&counter, 0, 0, NULL});
    CHECK(us_event_record(event, recording));
    CHECK(us_stream_synchronize(waiting, -1) == WAIT_DONE && counter == 2);
    us_event_destroy(event);
    us_stream_destroy(waiting, true);
    us_stream_destroy(recording, true);
}

static void test_wait_times_out(Context *context)
{
    Stream *stream = us_stream_create(context, 0);
    Event *event = us_event_create(context);
    CHECK(us_event_wait(stream, event, true, 10000));
    CHECK(us_stream_synchronize(stream, -1) == WAIT_FAULT);
    CHECK(us_stream_fault(stream, NULL) == DEVICE_FAULT_TIMEOUT);
    us_event_destroy(event);
    us_stream_destroy(stream, true);
}

static DeviceFault run_fault(void *argument, Explanation *why)
{
    us_explain(why, "%s", (const char *)argument);
    return DEVICE_FAULT_ADDRESS;
}

static void test_fault_stays(Context *context)
{
    Stream *stream = us_stream_create(context, 0);
    Stream *other = us_stream_create(context, 0);
    _Atomic int counter = 0;
    CHECK(us_stream_submit(stream, "first", run_fault, NULL, "one"));
    CHECK(us_stream_submit(stream, "second", run_fault, NULL, "two"));
    submit(stream, (Step){&counter, 0, 0, NULL});
    CHECK(us_stream_synchronize(stream, -1) == WAIT_FAULT && counter == 1);
    CHECK(us_stream_synchronize(stream, -1) == WAIT_FAULT);
    Explanation why;
    CHECK(us_stream_fault(stream, &why) == DEVICE_FAULT_ADDRESS && strcmp(why.text, "first: one") == 0);
    CHECK(us_stream_synchronize(other, -1) == WAIT_DONE);
    CHECK(us_context_synchronize(context, -1) == WAIT_FAULT);
    us_stream_destroy(stream, true);
    us_stream_destroy(other, true);
}

/* In a context that stops on failure nothing runs behind a failed task, on any stream; dropped records wake waiters. */
static void test_stop_on_failure(Device *device)
{
    Context *context = us_context_create(device);
    context->stops_on_failure = true;
    Stream *stream = us_stream_create(context, 0);
    Stream *other = us_stream_create(context, 0);
    Event *event = us_event_create(context);
    _Atomic int counter = 0, released = 0;
    uint64_t time = 0;
    CHECK(us_stream_submit(stream, "first", run_fault, NULL, "one"));
    submit(stream, (Step){&counter, -1, 0, &released});
    CHECK(us_event_record(event, stream) && us_event_wait(other, event, true, -1));
    CHECK(us_stream_synchronize(stream, -1) == WAIT_FAULT && us_event_synchronize(event, -1) == WAIT_FAULT);
    CHECK(us_event_complete(event) && !us_event_time(event, &time));
    submit(other, (Step){&counter, -1, 0, &released});
    CHECK(us_stream_synchronize(other, -1) == WAIT_FAULT && us_event_waited(event));
    Stream *later = us_stream_create(context, 0);
    submit(later, (Step){&counter, -1, 0, &released});
    Explanation why;
    CHECK(us_stream_synchronize(later, -1) == WAIT_FAULT && counter == 0 && released == 3);
    CHECK(us_stream_fault(later, &why) == DEVICE_FAULT_ADDRESS && strcmp(why.text, "first: one") == 0);
    CHECK(us_event_fault(event, &why) == DEVICE_FAULT_ADDRESS && strcmp(why.text, "first: one") == 0);
    us_context_destroy(context);
    CHECK(us_event_synchronize(event, -1) == WAIT_FAULT); /* the event outlives its context */
    us_event_destroy(event);
}

static void test_forced_reset(Device *device)
{
    Context *context = us_context_create(device);
    Stream *stream = us_stream_create(context, 0);
    Event *never = us_event_create(context);
    _Atomic int counter = 0, released = 0;
    CHECK(us_event_wait(stream, never, true, -1));
    submit(stream, (Step){&counter, -1, 0, &released});
    us_device_reset(device, false);
    CHECK(counter == 0 && released == 1);
    us_event_destroy(never);
}

static void test_abort_drops_what_has_not_started(Context *context)
{
    Stream *stream = us_stream_create(context, 0);
    Event *never = us_event_create(context);
    _Atomic int counter = 0, released = 0;
    CHECK(us_event_wait(stream, never, true, -1));
    for (int i = 0; i < 10; i++) {
        submit(stream, (Step){&counter, -1, 0, &released});
    }
    us_stream_abort(stream);
    CHECK(counter == 0 && released == 10);
    submit(stream, (Step){&counter, 0, 0, &released});
    CHECK(us_stream_synchronize(stream, -1) == WAIT_DONE && counter == 1);
    CHECK(us_event_wait(stream, never, true, -1));
    submit(stream, (Step){&counter, -1, 0, &released});
    us_stream_destroy(stream, false);
    CHECK(counter == 1 && released == 12);
    us_event_destroy(never);
}

static void test_dead_handles(Context *context)
{
    Stream *stream = us_stream_create(context, 0);
    void *handle = stream->handle;
    CHECK(us_stream_of_handle(handle) == stream && us_event_of_handle(handle) == NULL);
    us_stream_destroy(stream, true);
    CHECK(us_stream_of_handle(handle) == NULL);
    int local = 0;
    CHECK(us_stream_of_handle(&local) == NULL && us_stream_of_handle(NULL) == NULL);
    CHECK(us_stream_of_handle((void *)(uintptr_t)1) == NULL);
}

static void test_stream_waits_for_stream(Context *context)
{
    Stream *first = us_stream_create(context, 0);
    Stream *second = us_stream_create(context, 0);
    for (int round = 0; round < 20; round++) {
        _Atomic int counter = 0;
        submit(first, (Step){&counter, 0, 300, NULL});
        CHECK(us_stream_wait_stream(second, first));
        submit(second, (Step){&counter, 1, 0, NULL});
        CHECK(us_stream_synchronize(second, -1) == WAIT_DONE && counter == 2);
    }
    us_stream_destroy(first, true);
    us_stream_destroy(second, true);
}

typedef struct Submitter {
    Stream *stream;
    _Atomic int *counter;
} Submitter;

static void *submit_many(void *argument)
{
    Submitter *submitter = argument;
    for (int i = 0; i < 500; i++) {
        submit(submitter->stream, (Step){submitter->counter, -1, 0, NULL});
        if (i % 50 == 0) {
            CHECK(us_stream_synchronize(submitter->stream, -1) == WAIT_DONE);
        }
    }
    return NULL;
}

static void test_many_threads(Context *context)
{
    enum { THREADS = 4 };
    Stream *stream = us_stream_create(context, 0);
    _Atomic int counter = 0;
    pthread_t threads[THREADS];
    Submitter submitter = {stream, &counter};
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, submit_many, &submitter) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(us_stream_synchronize(stream, -1) == WAIT_DONE && counter == 500 * THREADS);
    us_stream_destroy(stream, true);
}

static void test_current_context(Platform *platform, Device *device)
{
    Context *context = us_context_create(device);
    us_context_set_current(platform, context);
    CHECK(us_context_current(platform) == context);
    us_context_destroy(context);
    CHECK(us_context_current(platform) == NULL);
    us_context_set_current(platform, us_context_primary(device));
    CHECK(us_context_current(platform) == device->primary);
}

static void test_deferred_runs_only_when_waited_for(Context *context)
{
    Stream *stream = us_stream_create(context, 0);
    _Atomic int counter = 0;
    submit(stream, (Step){&counter, 0, 0, NULL});
    usleep(20000);
    CHECK(counter == 0);
    CHECK(us_stream_synchronize(stream, -1) == WAIT_DONE && counter == 1);
    us_stream_destroy(stream, true);
}

static void test_inline_runs_at_once(Context *context)
{
    Stream *stream = us_stream_create(context, 0);
    _Atomic int counter = 0;
    submit(stream, (Step){&counter, 0, 0, NULL});
    CHECK(counter == 1);
    us_stream_destroy(stream, true);
}

int main(void)
{
    Platform *platform = us_platform(2, &profile);
    Device *device = us_device(platform, 0);
    Context *context = us_context_primary(device);
    CHECK(context != NULL);
    const char *mode = us_environment_text("UNDERSTUDY_STREAM", "async");
    if (strcmp(mode, "deferred") == 0) {
        test_deferred_runs_only_when_waited_for(context);
    } else if (strcmp(mode, "inline") == 0) {
        test_inline_runs_at_once(context);
    }
    test_order(context);
    test_events_join_streams(context);
    test_a_record_that_is_forgotten_before_it_is_published(context);
    test_wait_before_record(context);
    test_wait_times_out(context);
    test_fault_stays(context);
    test_abort_drops_what_has_not_started(context);
    test_dead_handles(context);
    test_stream_waits_for_stream(context);
    test_many_threads(context);
    test_current_context(platform, device);
    test_stop_on_failure(device);
    us_device_reset(device, true);
    test_forced_reset(device);
    CHECK(us_context_current(platform) == NULL && us_device_fault(device, NULL) == DEVICE_FAULT_NONE);
    puts("ok");
    return 0;
}
