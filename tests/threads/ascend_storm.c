/* Threads that do what programs should not, at random and all at once: work queued on streams that end, events that
 * nobody records, handles that are dead, foreign or of another kind, absurd sizes, double frees, contexts that stop.
 * Any status is right; nothing may crash, hang, or disturb the one thread that computes. Prints "ok". */
#include "../check.h"

#include "acl/acl.h"
#include "acl/acl_rt_memory_soma.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, STEPS = 1500, SHARED = 16, COUNT = 50000, COMPUTATIONS = 25 };

static const size_t ABSURD = (size_t)1 << 50; /* bytes */

/* What the threads pass to each other: some of it alive, some of it long gone, any of it used as anything. */
static _Atomic(void *) shared[SHARED];

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void *some(uint64_t *state)
{
    switch (next(state) % 8) {
    case 0:
        return NULL;
    case 1:
        return (void *)(uintptr_t)(next(state) % 4096);
    case 2:
        return (void *)(uintptr_t)((uint64_t)0x0501 << 48 | next(state) << 4); /* looks like a handle */
    default:
        return atomic_load(&shared[next(state) % SHARED]);
    }
}

static void share(uint64_t *state, void *thing)
{
    atomic_store(&shared[next(state) % SHARED], thing);
}

static void count_call(void *counter)
{
    atomic_fetch_add((_Atomic int *)counter, 1);
}

static size_t size_of_any_kind(uint64_t *state)
{
    static const size_t sizes[] = {0, 1, 31, 64, 4096, 1 << 20, (size_t)1 << 40, SIZE_MAX / 2, SIZE_MAX - 62, SIZE_MAX};
    return sizes[next(state) % (sizeof sizes / sizeof sizes[0])];
}

static void on_memory(uint64_t *state)
{
    void *made = NULL;
    char host[64] = {0};
    size_t count = size_of_any_kind(state);
    switch (next(state) % 7) {
    case 0:
    case 1:
        if (aclrtMalloc(&made, size_of_any_kind(state), (aclrtMemMallocPolicy)next(state)) == ACL_SUCCESS) {
            share(state, made);
        }
        break;
    case 2:
        aclrtFree(some(state));
        break;
    case 3:
        aclrtFreeHost(some(state));
        break;
    case 4:
        CHECK(aclrtMemcpy(host, SIZE_MAX, some(state), ABSURD, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_SUCCESS);
        break;
    case 5:
        made = some(state);
        if (next(state) % 2 == 0 && ((uintptr_t)made & 0xf) == 0 && made != NULL) {
            aclrtPtrAttributes attributes;
            aclrtPointerGetAttributes(made, &attributes);
        }
        break;
    default:
        if (aclrtMallocHost(&made, count < 65 ? count : 64) == ACL_SUCCESS) {
            CHECK(aclrtFreeHost(made) == ACL_SUCCESS && aclrtFreeHost(made) != ACL_SUCCESS);
        }
    }
}

static void on_pool(uint64_t *state)
{
    aclrtMemPoolProps props = {.location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}, .maxSize = size_of_any_kind(state)};
    aclrtMemPool pool = NULL;
    void *made = NULL;
    uint64_t number = 0;
    switch (next(state) % 6) {
    case 0:
        if (aclrtMemPoolCreate(&pool, &props) == ACL_SUCCESS) {
            share(state, pool);
        }
        break;
    case 1:
        if (aclrtMemPoolMallocAsync(&made, size_of_any_kind(state), some(state), some(state)) == ACL_SUCCESS) {
            share(state, made);
        }
        break;
    case 2:
        aclrtMemPoolFreeAsync(some(state), some(state));
        break;
    case 3:
        aclrtMemPoolDestroy(some(state));
        break;
    case 4:
        aclrtMemPoolTrimTo(some(state), size_of_any_kind(state));
        break;
    default:
        aclrtMemPoolGetAttr(some(state), (aclrtMemPoolAttr)(next(state) % 10), &number);
    }
}

static void on_stream(uint64_t *state, aclrtStream mine, _Atomic int *calls)
{
    aclrtStream other = NULL;
    aclrtStreamStatus status;
    switch (next(state) % 10) {
    case 0:
        if (aclrtCreateStream(&other) == ACL_SUCCESS) {
            share(state, other);
        }
        break;
    case 1:
        aclrtDestroyStreamForce(some(state)); /* never one that somebody must still synchronise */
        break;
    case 2:
        aclrtSynchronizeStreamWithTimeout(some(state), 1);
        break;
    case 3:
        aclrtStreamQuery(some(state), &status);
        break;
    case 4:
        aclrtStreamAbort(some(state));
        break;
    case 5:
        CHECK(aclrtMemsetAsync(some(state), SIZE_MAX, 1, ABSURD, some(state)) != ACL_SUCCESS);
        break;
    case 6:
        aclrtLaunchHostFunc(some(state), count_call, calls);
        break;
    case 7:
        aclrtLaunchHostFunc(mine, count_call, calls);
        break;
    case 8:
        aclrtSetStreamOverflowSwitch(some(state), (uint32_t)next(state) % 3);
        break;
    default:
        aclrtSubscribeReport(next(state) % 4, some(state));
        aclrtLaunchCallback(count_call, calls, (aclrtCallbackBlockType)(next(state) % 3), some(state));
        aclrtUnSubscribeReport(next(state) % 4, some(state));
    }
}

static void on_event(uint64_t *state)
{
    aclrtEvent event = NULL;
    aclrtEventRecordedStatus status;
    float ms = 0;
    switch (next(state) % 8) {
    case 0:
        if (aclrtCreateEventWithFlag(&event, (uint32_t)next(state) % 16) == ACL_SUCCESS) {
            share(state, event);
        }
        break;
    case 1:
        aclrtDestroyEvent(some(state));
        break;
    case 2:
        aclrtRecordEvent(some(state), some(state));
        break;
    case 3:
        aclrtStreamWaitEventWithTimeout(some(state), some(state), 1);
        break;
    case 4:
        aclrtQueryEventStatus(some(state), &status);
        break;
    case 5:
        aclrtEventElapsedTime(&ms, some(state), some(state));
        break;
    case 6:
        aclrtResetEvent(some(state), some(state));
        break;
    default:
        aclrtSynchronizeEventWithTimeout(some(state), 1);
    }
}

/* A context of this thread's own, which stops at the first failure and ends with work in its queues. */
static void use_a_context(uint64_t *state, _Atomic int *calls)
{
    aclrtContext context = NULL;
    aclrtStream stream = NULL;
    void *block = NULL;
    CHECK(aclrtCreateContext(&context, 0) == ACL_SUCCESS && aclrtCreateStream(&stream) == ACL_SUCCESS);
    CHECK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE) == ACL_SUCCESS);
    CHECK(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtLaunchHostFunc(stream, count_call, calls) == ACL_SUCCESS);
    aclrtMemsetAsync(block, 64, 1, 64, stream);
    CHECK(aclrtFree(block) == ACL_SUCCESS); /* the fill may fail now */
    aclrtSynchronizeStream(stream);
    aclrtLaunchHostFunc(NULL, count_call, calls);
    share(state, context); /* dead when others find it, mostly */
    CHECK(aclrtDestroyContext(context) == ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream) != ACL_SUCCESS && aclrtDestroyContext(context) != ACL_SUCCESS);
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
}

static void *storm(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument * 977 + 5;
    static _Atomic int calls;
    aclrtStream mine = NULL;
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS && aclrtCreateStream(&mine) == ACL_SUCCESS);
    for (int step = 0; step < STEPS; step++) {
        switch (next(&state) % 5) {
        case 0:
            on_memory(&state);
            break;
        case 1:
            on_event(&state);
            break;
        case 2:
            on_pool(&state);
            break;
        default:
            on_stream(&state, mine, &calls);
        }
        if (step % 100 == 0) {
            use_a_context(&state, &calls);
        }
    }
    CHECK(aclrtSynchronizeStream(mine) == ACL_SUCCESS && aclrtDestroyStream(mine) == ACL_SUCCESS);
    return NULL;
}

/* Large enough for several threads of the pool: all inputs are 1, so that the gradient is -1 / (1 + e). */
static void *compute(void *unused)
{
    static float host[COUNT];
    const int64_t count = COUNT;
    void *blocks[2];
    aclrtStream stream = NULL;
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS && aclrtCreateStream(&stream) == ACL_SUCCESS);
    CHECK(aclrtMalloc(&blocks[0], sizeof host, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtMalloc(&blocks[1], sizeof host, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    for (int round = 0; round < COMPUTATIONS; round++) {
        for (int i = 0; i < COUNT; i++) {
            host[i] = 1.0f;
        }
        CHECK(aclrtMemcpy(blocks[0], sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
        aclTensor *in = aclCreateTensor(&count, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &count, 1, blocks[0]);
        aclTensor *out = aclCreateTensor(&count, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &count, 1, blocks[1]);
        uint64_t size = 0;
        aclOpExecutor *executor = NULL;
        CHECK(aclnnSoftMarginLossBackwardGetWorkspaceSize(in, in, in, 0, out, &size, &executor) == 0);
        CHECK(aclnnSoftMarginLossBackward(NULL, 0, executor, stream) == 0);
        CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
        CHECK(aclDestroyTensor(in) == 0 && aclDestroyTensor(out) == 0);
        CHECK(aclrtMemcpy(host, sizeof host, blocks[1], sizeof host, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
        for (int i = 0; i < COUNT; i++) {
            CHECK(host[i] < -0.26894f && host[i] > -0.26895f);
        }
    }
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS + 1];
    CHECK(aclInit(NULL) == ACL_SUCCESS);
    CHECK(pthread_create(&threads[THREADS], NULL, compute, NULL) == 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, storm, (void *)i) == 0);
    }
    for (int i = 0; i <= THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS && aclrtResetDeviceForce(0) == ACL_SUCCESS);
    CHECK(aclrtResetDevice(0) == ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
    CHECK(aclFinalize() == ACL_SUCCESS);
    puts("ok");
    return 0;
}
