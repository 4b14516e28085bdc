/* Many threads at once, each with its own stream and data: tensors, executors, copies, events, error texts, wrong calls,
 * pools and snapshots. Public API only. Prints "ok". */
#include "../check.h"

#include "acl/acl.h"
#include "acl/acl_rt_memory_soma.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 40, COUNT = 1500, SNAPSHOTS = 10, OTHERS = 3 };

static aclTensor *vector(void *address, int64_t count)
{
    return aclCreateTensor(&count, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &count, 1, address);
}

static void one_round(aclrtStream stream, int seed, void **addresses)
{
    float x[COUNT], result[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)((i * 7 + seed) % 11) - 5.0f;
    }
    CHECK(aclrtMemcpy(addresses[0], sizeof x, x, sizeof x, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    aclTensor *self = vector(addresses[0], COUNT);
    aclTensor *out = vector(addresses[1], COUNT);
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    CHECK(aclnnSoftMarginLossBackwardGetWorkspaceSize(self, self, self, 2, out, &size, &executor) == 0);
    CHECK(size == 0);
    CHECK(aclnnSoftMarginLossBackward(NULL, 0, executor, stream) == 0);
    CHECK(aclDestroyTensor(self) == 0 && aclDestroyTensor(out) == 0); /* the queue needs them no more */
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    CHECK(aclrtMemcpy(result, sizeof result, addresses[1], sizeof result, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    for (int i = 0; i < COUNT; i++) {
        double expected = -(double)x[i] * x[i] / (1.0 + exp((double)x[i] * x[i]));
        CHECK(fabs(result[i] - expected) <= 1e-6 * fabs(expected) + 1e-9);
    }
}

static void wrong_calls(int seed)
{
    CHECK(aclrtFree(NULL) == ACL_ERROR_INVALID_PARAM);
    const char *text = aclGetRecentErrMsg();
    CHECK(text != NULL && strlen(text) > 20);
    CHECK(aclGetRecentErrMsg() == NULL);
    aclOpExecutor *foreign = (aclOpExecutor *)(uintptr_t)(seed * 16 + 16);
    CHECK(aclnnSoftMarginLossBackward(NULL, 0, foreign, NULL) != 0);
    CHECK(aclrtDestroyStream((aclrtStream)&seed) != ACL_SUCCESS);
}

static void *work(void *argument)
{
    int seed = (int)(intptr_t)argument;
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
    aclrtStream stream = NULL;
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
    void *addresses[2];
    for (int i = 0; i < 2; i++) {
        CHECK(aclrtMalloc(&addresses[i], COUNT * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    }
    for (int round = 0; round < ROUNDS; round++) {
        one_round(stream, seed + round, addresses);
        wrong_calls(seed);
    }
    CHECK(aclrtFree(addresses[0]) == ACL_SUCCESS && aclrtFree(addresses[0]) != ACL_SUCCESS);
    CHECK(aclrtFree(addresses[1]) == ACL_SUCCESS);
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS && aclrtDestroyStream(stream) != ACL_SUCCESS);
    return NULL;
}

/* Saves and restores the device's memory under the others, whose calls wait meanwhile: nothing changes for them. */
static void *snapshots(void *unused)
{
    for (int round = 0; round < SNAPSHOTS; round++) {
        CHECK(aclrtSnapShotProcessLock(getpid(), NULL) == ACL_SUCCESS);
        CHECK(aclrtSnapShotProcessBackup(getpid(), NULL) == ACL_SUCCESS);
        CHECK(aclrtSnapShotProcessRestore(getpid(), NULL) == ACL_SUCCESS);
        CHECK(aclrtSnapShotProcessUnlock(getpid(), NULL) == ACL_SUCCESS);
    }
    return unused;
}

/* Two streams of a thread take memory of one pool, which all threads use, and give it back. */
static void use_pool(aclrtMemPool pool, aclrtStream *streams, int seed)
{
    char host[64] = {0};
    void *blocks[2];
    for (int i = 0; i < 2; i++) {
        CHECK(aclrtMemPoolMallocAsync(&blocks[i], sizeof host, pool, streams[i]) == ACL_SUCCESS);
        CHECK(aclrtMemsetAsync(blocks[i], sizeof host, seed, sizeof host, streams[i]) == ACL_SUCCESS);
    }
    CHECK(aclrtSynchronizeStream(streams[0]) == ACL_SUCCESS);
    CHECK(aclrtMemcpy(host, sizeof host, blocks[0], sizeof host, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    CHECK(host[0] == (char)seed && host[sizeof host - 1] == (char)seed);
    for (int i = 0; i < 2; i++) {
        CHECK(aclrtMemPoolFreeAsync(blocks[i], streams[1 - i]) == ACL_SUCCESS);
        CHECK(aclrtSynchronizeStream(streams[1 - i]) == ACL_SUCCESS);
    }
    CHECK(aclrtMemPoolTrimTo(pool, (size_t)seed << 20) == ACL_SUCCESS);
}

static void *pools(void *pool)
{
    aclrtStream streams[2];
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
    CHECK(aclrtCreateStream(&streams[0]) == ACL_SUCCESS && aclrtCreateStream(&streams[1]) == ACL_SUCCESS);
    for (int round = 0; round < ROUNDS; round++) {
        use_pool(pool, streams, round % 4);
    }
    CHECK(aclrtDestroyStream(streams[0]) == ACL_SUCCESS && aclrtDestroyStream(streams[1]) == ACL_SUCCESS);
    return NULL;
}

static aclrtMemPool make_pool(void)
{
    aclrtMemPool pool = NULL;
    aclrtMemPoolProps properties = {.location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS && aclrtMemPoolCreate(&pool, &properties) == ACL_SUCCESS);
    return pool;
}

static void end_pool(aclrtMemPool pool)
{
    uint64_t used = 1;
    CHECK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &used) == ACL_SUCCESS && used == 0);
    CHECK(aclrtMemPoolDestroy(pool) == ACL_SUCCESS);
}

int main(void)
{
    CHECK(aclInit(NULL) == ACL_SUCCESS);
    pthread_t threads[THREADS + OTHERS];
    aclrtMemPool pool = make_pool();
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < OTHERS; i++) {
        CHECK(pthread_create(&threads[THREADS + i], NULL, i == 0 ? snapshots : pools, pool) == 0);
    }
    for (int i = 0; i < THREADS + OTHERS; i++) {
        pthread_join(threads[i], NULL);
    }
    end_pool(pool);
    CHECK(aclFinalize() == ACL_SUCCESS);
    puts("ok");
    return 0;
}
