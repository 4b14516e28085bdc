/* Many threads at once, each with its own stream and data: tensors, executors, copies, events, error texts, wrong calls.
 * Public API only. Prints "ok". */
#include "acl/acl.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 40, COUNT = 1500 };

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

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

int main(void)
{
    CHECK(aclInit(NULL) == ACL_SUCCESS);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(aclFinalize() == ACL_SUCCESS);
    puts("ok");
    return 0;
}
