/* cc captured_graph.c -I$MACA_PATH/include -I$MACA_PATH/include/mcr -I$MACA_PATH/include/mcdnn -I$MACA_PATH/include/mcblas -L$MACA_PATH/lib -lmcdnn -lmcblas -lmcruntime -o captured_graph
 *
 * Follows a network without input, x <- tanh(A x + b), for many steps. One step is captured from two streams: the first
 * computes the next x (mcBLAS, mcDNN), the second adds it to a sum. The steps are launches of the graph.
 * Prints the last x and the sum of all. */
#include <mc_runtime.h>
#include <mcblas/mcblas.h>
#include <mcdnn/mcdnn.h>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call, success)                                                                                           \
    do {                                                                                                               \
        int status = (int)(call);                                                                                      \
        if (status != (int)(success)) {                                                                                \
            fprintf(stderr, "%s:%d: status %d\n", __FILE__, __LINE__, status);                                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK_MC(call) CHECK(call, mcSuccess)
#define CHECK_MCDNN(call) CHECK(call, MCDNN_STATUS_SUCCESS)
#define CHECK_MCBLAS(call) CHECK(call, MCBLAS_STATUS_SUCCESS)

enum { SIZE = 6, STEPS = 100 };

static float *space(const float *content, size_t count)
{
    void *address;
    CHECK_MC(mcMalloc(&address, count * sizeof(float)));
    CHECK_MC(mcMemcpy(address, content, count * sizeof(float), mcMemcpyHostToDevice));
    return (float *)address;
}

static void print(const char *name, const float *device)
{
    float values[SIZE];
    CHECK_MC(mcMemcpy(values, device, sizeof values, mcMemcpyDeviceToHost));
    printf("%s:", name);
    for (int i = 0; i < SIZE; i++)
        printf(" %.5f", values[i]);
    printf("\n");
}

int main(void)
{
    static const float one = 1.0f, zero = 0.0f, nothing[SIZE] = {0};
    float matrix[SIZE * SIZE], bias[SIZE];
    for (int i = 0; i < SIZE * SIZE; i++)
        matrix[i] = (float)(i * 7 % 11 - 5) / 16; /* column by column */
    for (int i = 0; i < SIZE; i++)
        bias[i] = (float)(i - 2) / 4;
    float *a = space(matrix, SIZE * SIZE), *b = space(bias, SIZE), *x = space(nothing, SIZE);
    float *y = space(nothing, SIZE), *sum = space(nothing, SIZE);

    mcStream_t first, second;
    mcEvent_t stepped, added;
    CHECK_MC(mcStreamCreate(&first));
    CHECK_MC(mcStreamCreate(&second));
    CHECK_MC(mcEventCreateWithFlags(&stepped, mcEventDisableTiming));
    CHECK_MC(mcEventCreateWithFlags(&added, mcEventDisableTiming));
    mcblasHandle_t product, addition;
    CHECK_MCBLAS(mcblasCreate(&product));
    CHECK_MCBLAS(mcblasCreate(&addition));
    CHECK_MCBLAS(mcblasSetStream(product, first));
    CHECK_MCBLAS(mcblasSetStream(addition, second));
    mcdnnHandle_t dnn;
    mcdnnTensorDescriptor_t shape;
    mcdnnActivationDescriptor_t tanh_of;
    CHECK_MCDNN(mcdnnCreate(&dnn));
    CHECK_MCDNN(mcdnnSetStream(dnn, first));
    CHECK_MCDNN(mcdnnCreateTensorDescriptor(&shape));
    CHECK_MCDNN(mcdnnSetTensor4dDescriptor(shape, MCDNN_TENSOR_NCHW, MCDNN_DATA_FLOAT, 1, SIZE, 1, 1));
    CHECK_MCDNN(mcdnnCreateActivationDescriptor(&tanh_of));
    CHECK_MCDNN(mcdnnSetActivationDescriptor(tanh_of, MCDNN_ACTIVATION_TANH, MCDNN_PROPAGATE_NAN, 0.0));

    /* One step: recorded, not run. The event takes the capture to the second stream, the other one brings it back. */
    mcGraph_t graph;
    mcGraphExec_t step;
    CHECK_MC(mcStreamBeginCapture(first, mcStreamCaptureModeGlobal));
    CHECK_MC(mcMemcpyAsync(y, b, SIZE * sizeof(float), mcMemcpyDeviceToDevice, first));
    CHECK_MCBLAS(mcblasSgemv(product, MCBLAS_OP_N, SIZE, SIZE, &one, a, SIZE, x, 1, &one, y, 1));
    CHECK_MCDNN(mcdnnActivationForward(dnn, tanh_of, &one, shape, y, &zero, shape, x));
    CHECK_MC(mcEventRecord(stepped, first));
    CHECK_MC(mcStreamWaitEvent(second, stepped, 0));
    CHECK_MCBLAS(mcblasSaxpy(addition, SIZE, &one, x, 1, sum, 1));
    CHECK_MC(mcEventRecord(added, second));
    CHECK_MC(mcStreamWaitEvent(first, added, 0));
    CHECK_MC(mcStreamEndCapture(first, &graph));
    CHECK_MC(mcGraphInstantiate(&step, graph, NULL, NULL, 0));
    CHECK_MC(mcGraphDestroy(graph));

    for (int i = 0; i < STEPS; i++)
        CHECK_MC(mcGraphLaunch(step, first));
    CHECK_MC(mcStreamSynchronize(first));
    print("last x", x);
    print("sum", sum);

    CHECK_MC(mcGraphExecDestroy(step));
    CHECK_MCDNN(mcdnnDestroyActivationDescriptor(tanh_of));
    CHECK_MCDNN(mcdnnDestroyTensorDescriptor(shape));
    CHECK_MCDNN(mcdnnDestroy(dnn));
    CHECK_MCBLAS(mcblasDestroy(addition));
    CHECK_MCBLAS(mcblasDestroy(product));
    CHECK_MC(mcEventDestroy(added));
    CHECK_MC(mcEventDestroy(stepped));
    CHECK_MC(mcStreamDestroy(second));
    CHECK_MC(mcStreamDestroy(first));
    float *const all[] = {a, b, x, y, sum};
    for (int i = 0; i < 5; i++)
        CHECK_MC(mcFree(all[i]));
    return 0;
}
