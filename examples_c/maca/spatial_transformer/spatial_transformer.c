/* cc spatial_transformer.c -I$MACA_PATH/include -I$MACA_PATH/include/mcr -I$MACA_PATH/include/mcdnn -L$MACA_PATH/lib -lmcdnn -lmcruntime -o spatial_transformer
 *
 * Cuts a turned, scaled and shifted window out of each of two images, and the gradients of the loss sum(y^2) / 2 with
 * respect to the images and the transformations. */
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

enum { IMAGES = 2, CHANNELS = 2, HEIGHT = 4, WIDTH = 5, ROWS = 3, COLUMNS = 4 };
enum {
    X_SIZE = IMAGES * CHANNELS * HEIGHT * WIDTH,
    Y_SIZE = IMAGES * CHANNELS * ROWS * COLUMNS,
    GRID_SIZE = IMAGES * ROWS * COLUMNS * 2,
    THETA_SIZE = IMAGES * 2 * 3
};

static void *device_copy(const float *values, int count)
{
    void *address;
    CHECK_MC(mcMalloc(&address, (size_t)count * sizeof *values));
    if (values != NULL)
        CHECK_MC(mcMemcpy(address, values, (size_t)count * sizeof *values, mcMemcpyHostToDevice));
    return address;
}

static void print(const char *name, const void *address, int count)
{
    float values[X_SIZE + Y_SIZE];
    CHECK_MC(mcMemcpy(values, address, (size_t)count * sizeof *values, mcMemcpyDeviceToHost));
    printf("%s:", name);
    for (int i = 0; i < count; i++)
        printf(" %.6f", values[i]);
    printf("\n");
}

int main(void)
{
    const float transformations[THETA_SIZE] = {0.7f, -0.2f, 0.12f, 0.3f, 0.6f, -0.05f,
                                               1.1f, 0.43f, 0.2f, -0.5f, 0.9f, 0.15f}; /* these leave the image */
    const int window[] = {IMAGES, CHANNELS, ROWS, COLUMNS};
    const float one = 1.0f, zero = 0.0f;
    float images[X_SIZE];
    for (int i = 0; i < X_SIZE; i++)
        images[i] = (float)(i * 37 % 64) / 32.0f - 1.0f;

    mcdnnHandle_t handle;
    mcdnnTensorDescriptor_t x_shape, y_shape;
    mcdnnSpatialTransformerDescriptor_t transformer;
    CHECK_MCDNN(mcdnnCreate(&handle));
    CHECK_MCDNN(mcdnnCreateTensorDescriptor(&x_shape));
    CHECK_MCDNN(mcdnnCreateTensorDescriptor(&y_shape));
    CHECK_MCDNN(mcdnnSetTensor4dDescriptor(x_shape, MCDNN_TENSOR_NCHW, MCDNN_DATA_FLOAT, IMAGES, CHANNELS,
                                           HEIGHT, WIDTH));
    CHECK_MCDNN(mcdnnSetTensor4dDescriptor(y_shape, MCDNN_TENSOR_NCHW, MCDNN_DATA_FLOAT, IMAGES, CHANNELS,
                                           ROWS, COLUMNS));
    CHECK_MCDNN(mcdnnCreateSpatialTransformerDescriptor(&transformer));
    CHECK_MCDNN(mcdnnSetSpatialTransformerNdDescriptor(transformer, MCDNN_SAMPLER_BILINEAR, MCDNN_DATA_FLOAT, 4,
                                                       window));

    void *theta = device_copy(transformations, THETA_SIZE), *x = device_copy(images, X_SIZE);
    void *grid = device_copy(NULL, GRID_SIZE), *y = device_copy(NULL, Y_SIZE);
    void *dx = device_copy(NULL, X_SIZE);
    void *dgrid = device_copy(NULL, GRID_SIZE), *dtheta = device_copy(NULL, THETA_SIZE);

    CHECK_MCDNN(mcdnnSpatialTfGridGeneratorForward(handle, transformer, theta, grid));
    CHECK_MCDNN(mcdnnSpatialTfSamplerForward(handle, transformer, &one, x_shape, x, grid, &zero, y_shape, y));
    /* The loss's gradient with respect to y is y. */
    CHECK_MCDNN(mcdnnSpatialTfSamplerBackward(handle, transformer, &one, x_shape, x, &zero, x_shape, dx, &one, y_shape,
                                              y, grid, &zero, dgrid));
    CHECK_MCDNN(mcdnnSpatialTfGridGeneratorBackward(handle, transformer, dgrid, dtheta));
    print("y", y, Y_SIZE);
    print("dx", dx, X_SIZE);
    print("dtheta", dtheta, THETA_SIZE);

    void *addresses[] = {theta, x, grid, y, dx, dgrid, dtheta};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        CHECK_MC(mcFree(addresses[i]));
    CHECK_MCDNN(mcdnnDestroySpatialTransformerDescriptor(transformer));
    CHECK_MCDNN(mcdnnDestroyTensorDescriptor(x_shape));
    CHECK_MCDNN(mcdnnDestroyTensorDescriptor(y_shape));
    CHECK_MCDNN(mcdnnDestroy(handle));
    return 0;
}
