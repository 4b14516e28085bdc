/* Threads that use streams, events, contexts and devices which other threads end at the same moment. Any status is right;
 * nothing may crash or hang. Prints "ok". */
#include "../check.h"

#include "acl/acl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __SANITIZE_THREAD__ /* sees a race by the order of accesses, without the luck that a crash needs */
enum { EVENT_ROUNDS = 4000 };
#else
enum { EVENT_ROUNDS = 30000 };
#endif
enum { THREADS = 4, CONTEXT_ROUNDS = 500, RESETS = 100, STREAMS = 4 };

static _Atomic(void *) shared_context, shared_event, shared_stream;
static _Atomic int running;

/* Records each new event a few times, around the moment when it ends. */
static void *record_for_ever(void *unused)
{
    enum { TIMES = 3 };
    void *known = NULL;
    aclrtSetCurrentContext(atomic_load(&shared_context));
    while (atomic_load(&running) > 0) {
        void *event = atomic_load(&shared_event);
        for (int i = 0; i < TIMES && event != known; i++) {
            aclrtRecordEvent(event, atomic_load(&shared_stream));
        }
        known = event;
    }
    return unused;
}

/* Replaces event and stream while the others record one on the other. */
static void *end_events(void *unused)
{
    aclrtSetCurrentContext(atomic_load(&shared_context));
    for (int i = 0; i < EVENT_ROUNDS; i++) {
        void *event = NULL;
        CHECK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC) == ACL_SUCCESS);
        aclrtDestroyEvent(atomic_exchange(&shared_event, event));
        if (i % 16 == 0) {
            void *stream = NULL;
            CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
            aclrtDestroyStreamForce(atomic_exchange(&shared_stream, stream));
        }
    }
    atomic_fetch_sub(&running, 1);
    return unused;
}

static void run(void *(*first)(void *), void *(*others)(void *))
{
    pthread_t threads[THREADS];
    atomic_store(&running, 1);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, i == 0 ? first : others, NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

/* Streams made in a context that ends. */
static void *use_contexts(void *unused)
{
    while (atomic_load(&running) > 0) {
        void *streams[STREAMS] = {NULL};
        aclrtSetCurrentContext(atomic_load(&shared_context));
        for (int i = 0; i < STREAMS; i++) {
            aclrtCreateStream(&streams[i]);
        }
        for (int i = 0; i < STREAMS; i++) {
            aclrtSynchronizeStream(streams[i]);
            aclrtDestroyStream(streams[i]);
        }
    }
    return unused;
}

static void *end_contexts(void *unused)
{
    for (int i = 0; i < CONTEXT_ROUNDS; i++) {
        void *context = NULL;
        CHECK(aclrtCreateContext(&context, 0) == ACL_SUCCESS);
        aclrtDestroyContext(atomic_exchange(&shared_context, context));
    }
    atomic_fetch_sub(&running, 1);
    return unused;
}

static void *use_device(void *unused)
{
    for (int i = 0; atomic_load(&running) > 0; i++) {
        void *stream = NULL;
        void *memory = NULL;
        aclrtSetDevice(0);
        aclrtCreateStream(&stream);
        aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST);
        aclrtMemsetAsync(memory, 64, 0, 64, stream);
        bool done = aclrtSynchronizeStream(stream) == ACL_SUCCESS;
        if (i % 8 != 0) {
            aclrtDestroyStream(stream);
        }
        if (i % 8 != 0 && done) { /* else a task may still write there, and the next reset frees it */
            aclrtFree(memory);
        }
    }
    return unused;
}

static void *reset_device(void *unused)
{
    for (int i = 0; i < RESETS; i++) {
        CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
        aclrtResetDeviceForce(0);
    }
    atomic_fetch_sub(&running, 1);
    return unused;
}

int main(void)
{
    CHECK(aclInit(NULL) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS);
    void *made = NULL;
    CHECK(aclrtGetCurrentContext(&made) == ACL_SUCCESS);
    shared_context = made;
    run(end_events, record_for_ever);
    CHECK(aclrtCreateContext(&made, 0) == ACL_SUCCESS);
    shared_context = made;
    run(end_contexts, use_contexts);
    run(reset_device, use_device);
    CHECK(aclFinalize() == ACL_SUCCESS);
    puts("ok");
    return 0;
}
