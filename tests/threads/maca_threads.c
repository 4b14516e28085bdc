/* Many threads at once, each with its own handle, stream and data: softmax forward and backward, events, wrong calls.
 * Public API only. Prints "ok". */
#include "../check.h"

#include <mc_runtime.h>
#include <mcdnn/mcdnn.h>

#include <math.h>
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 4, ROUNDS = 40, N = 3, C = 37, HW = 5, COUNT = N * C * HW };

static void check_softmax(const float *x, const float *y)
{
    for (int n = 0; n < N; n++) {
        for (int s = 0; s < HW; s++) {
            double sum = 0.0;
            for (int c = 0; c < C; c++) {
                sum += exp(x[(n * C + c) * HW + s]);
            }
            for (int c = 0; c < C; c++) {
                double expected = exp(x[(n * C + c) * HW + s]) / sum;
                CHECK(fabs(y[(n * C + c) * HW + s] - expected) < 1e-6);
            }
        }
    }
}

static void one_round(mcdnnHandle_t handle, mcdnnTensorDescriptor_t descriptor, mcStream_t stream, int seed, void **p)
{
    const float one = 1.0f, zero = 0.0f;
    float x[COUNT], y[COUNT], dx[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)((i * 13 + seed) % 17) * 0.25f - 2.0f;
    }
    CHECK(mcMemcpyAsync(p[0], x, sizeof x, mcMemcpyHostToDevice, stream) == mcSuccess);
    CHECK(mcdnnSoftmaxForward(handle, MCDNN_SOFTMAX_ACCURATE, MCDNN_SOFTMAX_MODE_CHANNEL, &one, descriptor, p[0], &zero,
                              descriptor, p[1]) == MCDNN_STATUS_SUCCESS);
    CHECK(mcdnnSoftmaxBackward(handle, MCDNN_SOFTMAX_ACCURATE, MCDNN_SOFTMAX_MODE_CHANNEL, &one, descriptor, p[1],
                               descriptor, p[1], &zero, descriptor, p[2]) == MCDNN_STATUS_SUCCESS);
    CHECK(mcMemcpyAsync(y, p[1], sizeof y, mcMemcpyDeviceToHost, stream) == mcSuccess);
    CHECK(mcMemcpyAsync(dx, p[2], sizeof dx, mcMemcpyDeviceToHost, stream) == mcSuccess);
    CHECK(mcStreamSynchronize(stream) == mcSuccess);
    check_softmax(x, y);
    double total = 0.0;
    for (int c = 0; c < C; c++) {
        total += dx[c * HW];
    }
    CHECK(fabs(total) < 1e-5); /* gradients of a softmax group add up to zero */
}

static void wrong_calls(void)
{
    int local = 0;
    CHECK(mcdnnDestroy((mcdnnHandle_t)(void *)&local) == MCDNN_STATUS_BAD_PARAM);
    CHECK(mcStreamSynchronize((mcStream_t)(void *)&local) != mcSuccess);
    CHECK(mcGetLastError() != mcSuccess && mcGetLastError() == mcSuccess);
}

static void *work(void *argument)
{
    int seed = (int)(intptr_t)argument;
    mcStream_t stream;
    mcdnnHandle_t handle;
    mcdnnTensorDescriptor_t descriptor;
    void *p[3];
    CHECK(mcStreamCreate(&stream) == mcSuccess);
    CHECK(mcdnnCreate(&handle) == MCDNN_STATUS_SUCCESS && mcdnnSetStream(handle, stream) == MCDNN_STATUS_SUCCESS);
    CHECK(mcdnnCreateTensorDescriptor(&descriptor) == MCDNN_STATUS_SUCCESS);
    CHECK(mcdnnSetTensor4dDescriptor(descriptor, MCDNN_TENSOR_NCHW, MCDNN_DATA_FLOAT, N, C, HW, 1) ==
          MCDNN_STATUS_SUCCESS);
    for (int i = 0; i < 3; i++) {
        CHECK(mcMalloc(&p[i], COUNT * sizeof(float)) == mcSuccess);
    }
    for (int round = 0; round < ROUNDS; round++) {
        one_round(handle, descriptor, stream, seed + round, p);
        wrong_calls();
    }
    for (int i = 0; i < 3; i++) {
        CHECK(mcFree(p[i]) == mcSuccess);
    }
    CHECK(mcdnnDestroyTensorDescriptor(descriptor) == MCDNN_STATUS_SUCCESS);
    CHECK(mcdnnDestroy(handle) == MCDNN_STATUS_SUCCESS && mcdnnDestroy(handle) == MCDNN_STATUS_BAD_PARAM);
    CHECK(mcStreamDestroy(stream) == mcSuccess);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    puts("ok");
    return 0;
}
