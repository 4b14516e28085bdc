/* gcc data_parallel.c -I$ASCEND_HOME_PATH/include -I$ASCEND_HOME_PATH/include/aclnn -L$ASCEND_HOME_PATH/lib64 -lhccl -lopapi_nn -lopapi_math -lascendcl -lnnopbase -lpthread -o data_parallel
 *
 * Three steps of gradient descent by two devices, a thread each: a device has half of the examples, the gradients of both are
 * summed by HcclAllReduce, and so both keep the same weights. With one device it has all there is to sum. */
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "hccl/hccl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the example at the first failing call, with the library's own words. */
#define CHECK(call)                                                                                       \
    do {                                                                                                  \
        int code = (int)(call);                                                                           \
        if (code != 0) {                                                                                  \
            const char *message = aclGetRecentErrMsg();                                                   \
            fprintf(stderr, "%s failed with %d: %s\n", #call, code, message != NULL ? message : "no message"); \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

enum { DEVICES = 2, WEIGHTS = 3, EXAMPLES = 4, STEPS = 3 };
static const float RATE = 0.125f / EXAMPLES;

typedef struct {
    int32_t device, ranks;
    HcclComm comm;
    float weights[WEIGHTS], losses[STEPS];
} Rank;

/* Example k of all: the target is 2 a - b + 3 c. */
static float input(int k, int i)
{
    return (float)((k * 7 + i * 3) % 5 - 2);
}

/* This rank's examples: the gradient of half the sum of squares, and the sum behind it. */
static void differentiate(const Rank *rank, const float *weights, float *gradient_and_loss)
{
    for (int i = 0; i <= WEIGHTS; i++) {
        gradient_and_loss[i] = 0;
    }
    for (int k = rank->device; k < EXAMPLES; k += rank->ranks) {
        const float a = input(k, 0), b = input(k, 1), c = input(k, 2);
        const float error = weights[0] * a + weights[1] * b + weights[2] * c - (2 * a - b + 3 * c);
        for (int i = 0; i < WEIGHTS; i++) {
            gradient_and_loss[i] += error * input(k, i);
        }
        gradient_and_loss[WEIGHTS] += error * error / 2;
    }
}

/* weights -= RATE * gradient, on the device. */
static void step(void *weights, void *gradient, aclrtStream stream)
{
    const int64_t shape[] = {WEIGHTS}, strides[] = {1};
    float factor = -RATE;
    uint64_t size;
    aclOpExecutor *executor;
    void *workspace = NULL;
    aclTensor *w = aclCreateTensor(shape, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 1, weights);
    aclTensor *g = aclCreateTensor(shape, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 1, gradient);
    aclScalar *alpha = aclCreateScalar(&factor, ACL_FLOAT);
    CHECK(aclnnInplaceAddGetWorkspaceSize(w, g, alpha, &size, &executor));
    if (size > 0) {
        CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    CHECK(aclnnInplaceAdd(workspace, size, executor, stream));
    CHECK(aclrtSynchronizeStream(stream));
    if (workspace != NULL) {
        CHECK(aclrtFree(workspace));
    }
    CHECK(aclDestroyScalar(alpha));
    CHECK(aclDestroyTensor(w));
    CHECK(aclDestroyTensor(g));
}

static void *train(void *argument)
{
    Rank *rank = (Rank *)argument;
    float mine[WEIGHTS + 1] = {0};
    void *weights, *gradient;
    aclrtStream stream;
    CHECK(aclrtSetDevice(rank->device));
    CHECK(aclrtCreateStream(&stream));
    CHECK(aclrtMalloc(&weights, sizeof rank->weights, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&gradient, sizeof mine, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(weights, sizeof rank->weights, rank->weights, sizeof rank->weights, ACL_MEMCPY_HOST_TO_DEVICE));
    for (int k = 0; k < STEPS; k++) {
        differentiate(rank, rank->weights, mine);
        CHECK(aclrtMemcpy(gradient, sizeof mine, mine, sizeof mine, ACL_MEMCPY_HOST_TO_DEVICE));
        CHECK(HcclAllReduce(gradient, gradient, WEIGHTS + 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, rank->comm, stream));
        step(weights, gradient, stream);
        CHECK(aclrtMemcpy(mine, sizeof mine, gradient, sizeof mine, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK(aclrtMemcpy(rank->weights, sizeof rank->weights, weights, sizeof rank->weights, ACL_MEMCPY_DEVICE_TO_HOST));
        rank->losses[k] = mine[WEIGHTS];
    }
    CHECK(aclrtFree(gradient));
    CHECK(aclrtFree(weights));
    CHECK(aclrtDestroyStream(stream));
    return NULL;
}

static void print(const char *label, const float *values, int count)
{
    printf("%s:", label);
    for (int i = 0; i < count; i++) {
        printf(" %.9g", values[i]);
    }
    printf("\n");
}

int main(void)
{
    uint32_t devices;
    int32_t numbers[DEVICES];
    HcclComm comms[DEVICES];
    pthread_t threads[DEVICES];
    static Rank ranks[DEVICES];
    CHECK(aclInit(NULL));
    CHECK(aclrtGetDeviceCount(&devices));
    const uint32_t count = devices < (uint32_t)DEVICES ? devices : (uint32_t)DEVICES;
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = (int32_t)i;
    }
    CHECK(HcclCommInitAll(count, numbers, comms));
    for (uint32_t i = 0; i < count; i++) {
        ranks[i].device = numbers[i];
        ranks[i].ranks = (int32_t)count;
        ranks[i].comm = comms[i];
        CHECK(pthread_create(&threads[i], NULL, train, &ranks[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        CHECK(pthread_join(threads[i], NULL));
        CHECK(HcclCommDestroy(comms[i]));
    }
    print("loss", ranks[0].losses, STEPS);
    print("weights of the first device", ranks[0].weights, WEIGHTS);
    print("weights of the last device", ranks[count - 1].weights, WEIGHTS);
    CHECK(aclFinalize());
    return 0;
}
