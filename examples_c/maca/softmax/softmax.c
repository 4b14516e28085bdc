/* cc softmax.c -I$MACA_PATH/include -I$MACA_PATH/include/mcr -I$MACA_PATH/include/mcdnn -L$MACA_PATH/lib -lmcdnn -lmcruntime -o softmax
 *
 * Class probabilities of three images over four classes, and the gradient of a loss through them. */
#include <mc_runtime.h>
#include <mcdnn/mcdnn.h>

#include <stdio.h>
#include <stdlib.h>

#define CHECK_MC(call)                                                                                                 \
    do {                                                                                                               \
        mcError_t error = (call);                                                                                      \
        if (error != mcSuccess) {                                                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, mcGetErrorString(error));                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_MCDNN(call)                                                                                              \
    do {                                                                                                               \
        mcdnnStatus_t status = (call);                                                                                 \
        if (status != MCDNN_STATUS_SUCCESS) {                                                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, mcdnnGetErrorString(status));                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { IMAGES = 3, CLASSES = 4, ELEMENTS = IMAGES * CLASSES };

static void print_rows(const char *title, const float *values)
{
    printf("%s\n", title);
    for (int image = 0; image < IMAGES; image++) {
        for (int k = 0; k < CLASSES; k++)
            printf(" %9.6f", values[image * CLASSES + k]);
        printf("\n");
    }
}

int main(void)
{
    const float logits[ELEMENTS] = {1.0f, 2.0f, 3.0f, 4.0f, -1.0f, 0.0f, 1.0f, 0.5f, 100.0f, 101.0f, 99.0f, 0.0f};
    const float slopes[ELEMENTS] = {0.0f, 0.0f, 0.0f, 1.0f, 1.0f, -1.0f, 0.5f, 0.0f, 0.25f, 0.5f, 0.75f, 1.0f};
    const size_t bytes = sizeof logits;
    const float one = 1.0f, zero = 0.0f;
    float result[ELEMENTS];

    mcStream_t stream;
    mcdnnHandle_t handle;
    CHECK_MC(mcStreamCreate(&stream));
    CHECK_MCDNN(mcdnnCreate(&handle));
    CHECK_MCDNN(mcdnnSetStream(handle, stream));

    mcdnnTensorDescriptor_t tensor;
    CHECK_MCDNN(mcdnnCreateTensorDescriptor(&tensor));
    CHECK_MCDNN(mcdnnSetTensor4dDescriptor(tensor, MCDNN_TENSOR_NCHW, MCDNN_DATA_FLOAT, IMAGES, CLASSES, 1, 1));

    void *x, *y, *dy, *dx;
    CHECK_MC(mcMalloc(&x, bytes));
    CHECK_MC(mcMalloc(&y, bytes));
    CHECK_MC(mcMalloc(&dy, bytes));
    CHECK_MC(mcMalloc(&dx, bytes));
    CHECK_MC(mcMemcpyAsync(x, logits, bytes, mcMemcpyHostToDevice, stream));
    CHECK_MC(mcMemcpyAsync(dy, slopes, bytes, mcMemcpyHostToDevice, stream));

    CHECK_MCDNN(mcdnnSoftmaxForward(handle, MCDNN_SOFTMAX_ACCURATE, MCDNN_SOFTMAX_MODE_CHANNEL, &one, tensor, x, &zero,
                                    tensor, y));
    CHECK_MC(mcMemcpyAsync(result, y, bytes, mcMemcpyDeviceToHost, stream));
    CHECK_MC(mcStreamSynchronize(stream));
    print_rows("probabilities", result);

    CHECK_MCDNN(mcdnnSoftmaxBackward(handle, MCDNN_SOFTMAX_ACCURATE, MCDNN_SOFTMAX_MODE_CHANNEL, &one, tensor, y, tensor,
                                     dy, &zero, tensor, dx));
    CHECK_MC(mcMemcpyAsync(result, dx, bytes, mcMemcpyDeviceToHost, stream));
    CHECK_MC(mcStreamSynchronize(stream));
    print_rows("gradient of the logits", result);

    CHECK_MC(mcFree(x));
    CHECK_MC(mcFree(y));
    CHECK_MC(mcFree(dy));
    CHECK_MC(mcFree(dx));
    CHECK_MCDNN(mcdnnDestroyTensorDescriptor(tensor));
    CHECK_MCDNN(mcdnnDestroy(handle));
    CHECK_MC(mcStreamDestroy(stream));
    return 0;
}
