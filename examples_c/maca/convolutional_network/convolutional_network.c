/* cc convolutional_network.c -I$MACA_PATH/include -I$MACA_PATH/include/mcr -I$MACA_PATH/include/mcdnn -I$MACA_PATH/include/mcblas -L$MACA_PATH/lib -lmcdnn -lmcblas -lmcruntime -o convolutional_network
 *
 * Trains a small convolutional network to tell in which of four directions a line runs through a noisy image:
 *     convolution 3 x 3, bias, ReLU, max pooling, convolution 3 x 3, bias, ReLU, mean over the image (mcDNN),
 *     a fully connected layer (mcBLAS), logarithm of the softmax, cross entropy.
 * All parameters lie behind each other, and so do their gradients: a step of gradient descent is one mcblasSaxpy.
 * Prints the loss of every step and the parameters that were learned. */
#include <mc_runtime.h>
#include <mcblas/mcblas.h>
#include <mcdnn/mcdnn.h>

#include <stdint.h>
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

enum { STEPS = 12, IMAGES = 8, CLASSES = 4, SIDE = 8, POOLED = SIDE / 2, FIRST = 4, SECOND = 8, KERNEL = 3 };

/* Where the parameters begin. */
enum {
    FILTERS_1 = 0,
    BIAS_1 = FILTERS_1 + FIRST * KERNEL * KERNEL,
    FILTERS_2 = BIAS_1 + FIRST,
    BIAS_2 = FILTERS_2 + SECOND * FIRST * KERNEL * KERNEL,
    WEIGHT = BIAS_2 + SECOND,
    BIAS_3 = WEIGHT + CLASSES * SECOND,
    PARAMETERS = BIAS_3 + CLASSES
};

static const float ONE = 1.0f, ZERO = 0.0f, STEP = -0.5f;

static mcdnnHandle_t dnn;

typedef struct {
    mcdnnTensorDescriptor_t shape;
    float *data;
} Tensor;

static float *space(size_t bytes)
{
    void *address;
    CHECK_MC(mcMalloc(&address, bytes != 0 ? bytes : 1));
    return (float *)address;
}

static mcdnnTensorDescriptor_t shape_of(int images, int channels, int side)
{
    mcdnnTensorDescriptor_t shape;
    CHECK_MCDNN(mcdnnCreateTensorDescriptor(&shape));
    CHECK_MCDNN(mcdnnSetTensor4dDescriptor(shape, MCDNN_TENSOR_NCHW, MCDNN_DATA_FLOAT, images, channels, side, side));
    return shape;
}

static Tensor tensor(int channels, int side)
{
    Tensor made = {shape_of(IMAGES, channels, side), space(sizeof(float) * IMAGES * (size_t)(channels * side * side))};
    return made;
}

static void release(Tensor used)
{
    CHECK_MC(mcFree(used.data));
    CHECK_MCDNN(mcdnnDestroyTensorDescriptor(used.shape));
}

/* A convolution that keeps the image's size, bias and ReLU: x -> y, sum before the ReLU. */
typedef struct {
    mcdnnFilterDescriptor_t filters;
    mcdnnTensorDescriptor_t bias;
    mcdnnConvolutionDescriptor_t convolution;
    mcdnnConvolutionFwdAlgo_t forward;
    mcdnnConvolutionBwdDataAlgo_t backward_data;
    mcdnnConvolutionBwdFilterAlgo_t backward_filter;
    size_t bytes;
    void *workspace;
    int filters_at, bias_at; /* parameters */
    Tensor x, sum, y, dx, dsum, dy;
} Layer;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static Layer layer(Tensor x, Tensor dx, int filters_at, int bias_at, int inputs, int outputs, int side)
{
    Layer made;
    int found;
    mcdnnConvolutionFwdAlgoPerf_t forward;
    mcdnnConvolutionBwdDataAlgoPerf_t data;
    mcdnnConvolutionBwdFilterAlgoPerf_t filter;
    made.filters_at = filters_at;
    made.bias_at = bias_at;
    made.x = x;
    made.dx = dx;
    made.sum = tensor(outputs, side);
    made.y = tensor(outputs, side);
    made.dsum = tensor(outputs, side);
    made.dy = tensor(outputs, side);
    made.bias = shape_of(1, outputs, 1);
    CHECK_MCDNN(mcdnnCreateFilterDescriptor(&made.filters));
    CHECK_MCDNN(mcdnnSetFilter4dDescriptor(made.filters, MCDNN_DATA_FLOAT, MCDNN_TENSOR_NCHW, outputs, inputs, KERNEL,
                                           KERNEL));
    CHECK_MCDNN(mcdnnCreateConvolutionDescriptor(&made.convolution));
    CHECK_MCDNN(mcdnnSetConvolution2dDescriptor(made.convolution, 1, 1, 1, 1, 1, 1, MCDNN_CROSS_CORRELATION,
                                                MCDNN_DATA_FLOAT));
    CHECK_MCDNN(mcdnnGetConvolutionForwardAlgorithm_v7(dnn, x.shape, made.filters, made.convolution, made.sum.shape, 1,
                                                       &found, &forward));
    CHECK_MCDNN(mcdnnGetConvolutionBackwardDataAlgorithm_v7(dnn, made.filters, made.sum.shape, made.convolution,
                                                            x.shape, 1, &found, &data));
    CHECK_MCDNN(mcdnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, x.shape, made.sum.shape, made.convolution,
                                                              made.filters, 1, &found, &filter));
    made.forward = forward.algo;
    made.backward_data = data.algo;
    made.backward_filter = filter.algo;
    made.bytes = larger(forward.memory, larger(data.memory, filter.memory));
    made.workspace = space(made.bytes);
    return made;
}

static void run_forward(const Layer *layer, mcdnnActivationDescriptor_t relu, const float *parameters)
{
    CHECK_MCDNN(mcdnnConvolutionForward(dnn, &ONE, layer->x.shape, layer->x.data, layer->filters,
                                        parameters + layer->filters_at, layer->convolution, layer->forward,
                                        layer->workspace, layer->bytes, &ZERO, layer->sum.shape, layer->sum.data));
    CHECK_MCDNN(mcdnnAddTensor(dnn, &ONE, layer->bias, parameters + layer->bias_at, &ONE, layer->sum.shape,
                               layer->sum.data));
    CHECK_MCDNN(mcdnnActivationForward(dnn, relu, &ONE, layer->sum.shape, layer->sum.data, &ZERO, layer->y.shape,
                                       layer->y.data));
}

/* Of the first layer's input nobody needs the gradient: dx.data is NULL. */
static void run_backward(const Layer *layer, mcdnnActivationDescriptor_t relu, const float *parameters, float *gradients)
{
    CHECK_MCDNN(mcdnnActivationBackward(dnn, relu, &ONE, layer->y.shape, layer->y.data, layer->dy.shape, layer->dy.data,
                                        layer->sum.shape, layer->sum.data, &ZERO, layer->dsum.shape, layer->dsum.data));
    CHECK_MCDNN(mcdnnConvolutionBackwardBias(dnn, &ONE, layer->dsum.shape, layer->dsum.data, &ZERO, layer->bias,
                                             gradients + layer->bias_at));
    CHECK_MCDNN(mcdnnConvolutionBackwardFilter(dnn, &ONE, layer->x.shape, layer->x.data, layer->dsum.shape,
                                               layer->dsum.data, layer->convolution, layer->backward_filter,
                                               layer->workspace, layer->bytes, &ZERO, layer->filters,
                                               gradients + layer->filters_at));
    if (layer->dx.data != NULL)
        CHECK_MCDNN(mcdnnConvolutionBackwardData(dnn, &ONE, layer->filters, parameters + layer->filters_at,
                                                 layer->dsum.shape, layer->dsum.data, layer->convolution,
                                                 layer->backward_data, layer->workspace, layer->bytes, &ZERO,
                                                 layer->dx.shape, layer->dx.data));
}

static void release_layer(Layer *layer)
{
    release(layer->sum);
    release(layer->y);
    release(layer->dsum);
    release(layer->dy);
    CHECK_MC(mcFree(layer->workspace));
    CHECK_MCDNN(mcdnnDestroyTensorDescriptor(layer->bias));
    CHECK_MCDNN(mcdnnDestroyFilterDescriptor(layer->filters));
    CHECK_MCDNN(mcdnnDestroyConvolutionDescriptor(layer->convolution));
}

/* From 0 to 255/256. */
static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 24) / 256.0f;
}

static int is_on_line(int direction, int row, int column)
{
    switch (direction) {
    case 0:
        return row == SIDE / 2;
    case 1:
        return column == SIDE / 2;
    case 2:
        return row == column;
    default:
        return row + column == SIDE - 1;
    }
}

int main(void)
{
    mcblasHandle_t blas;
    mcdnnActivationDescriptor_t relu;
    mcdnnPoolingDescriptor_t maximum, mean;
    static float images[IMAGES * SIDE * SIDE], values[PARAMETERS];
    float slopes[IMAGES * CLASSES] = {0}, results[IMAGES * CLASSES], losses[STEPS];
    uint32_t state = 1;

    CHECK_MCDNN(mcdnnCreate(&dnn));
    CHECK_MCBLAS(mcblasCreate(&blas));
    CHECK_MCDNN(mcdnnCreateActivationDescriptor(&relu));
    CHECK_MCDNN(mcdnnSetActivationDescriptor(relu, MCDNN_ACTIVATION_RELU, MCDNN_PROPAGATE_NAN, 0.0));
    CHECK_MCDNN(mcdnnCreatePoolingDescriptor(&maximum));
    CHECK_MCDNN(mcdnnSetPooling2dDescriptor(maximum, MCDNN_POOLING_MAX_DETERMINISTIC, MCDNN_PROPAGATE_NAN, 2, 2, 0, 0,
                                            2, 2));
    CHECK_MCDNN(mcdnnCreatePoolingDescriptor(&mean));
    CHECK_MCDNN(mcdnnSetPooling2dDescriptor(mean, MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, MCDNN_PROPAGATE_NAN,
                                            POOLED, POOLED, 0, 0, POOLED, POOLED));

    Tensor x = tensor(1, SIDE), pooled = tensor(FIRST, POOLED), dpooled = tensor(FIRST, POOLED), nothing = {NULL, NULL};
    Tensor features = tensor(SECOND, 1), dfeatures = tensor(SECOND, 1), logits = tensor(CLASSES, 1);
    Tensor dlogits = tensor(CLASSES, 1), logarithms = tensor(CLASSES, 1), dlogarithms = tensor(CLASSES, 1);
    mcdnnTensorDescriptor_t class_bias = shape_of(1, CLASSES, 1);
    Layer first = layer(x, nothing, FILTERS_1, BIAS_1, 1, FIRST, SIDE);
    Layer second = layer(pooled, dpooled, FILTERS_2, BIAS_2, FIRST, SECOND, POOLED);
    float *parameters = space(sizeof values), *gradients = space(sizeof values);

    for (int i = 0; i < IMAGES * SIDE * SIDE; i++) {
        const int direction = i / (SIDE * SIDE) % CLASSES, row = i / SIDE % SIDE, column = i % SIDE;
        images[i] = noise(&state) / 2 + (is_on_line(direction, row, column) ? 1.0f : 0.0f);
    }
    for (int i = 0; i < PARAMETERS; i++)
        values[i] = noise(&state) - 0.5f;
    for (int image = 0; image < IMAGES; image++)
        slopes[image * CLASSES + image % CLASSES] = -1.0f / IMAGES; /* the loss is the mean of -logarithms[image][label] */
    CHECK_MC(mcMemcpy(x.data, images, sizeof images, mcMemcpyHostToDevice));
    CHECK_MC(mcMemcpy(parameters, values, sizeof values, mcMemcpyHostToDevice));
    CHECK_MC(mcMemcpy(dlogarithms.data, slopes, sizeof slopes, mcMemcpyHostToDevice));

    for (int step = 0; step < STEPS; step++) {
        run_forward(&first, relu, parameters);
        CHECK_MCDNN(mcdnnPoolingForward(dnn, maximum, &ONE, first.y.shape, first.y.data, &ZERO, pooled.shape,
                                        pooled.data));
        run_forward(&second, relu, parameters);
        CHECK_MCDNN(mcdnnPoolingForward(dnn, mean, &ONE, second.y.shape, second.y.data, &ZERO, features.shape,
                                        features.data));
        /* mcBLAS counts by columns: features are [SECOND, IMAGES], the weight [SECOND, CLASSES], logits [CLASSES, IMAGES]. */
        CHECK_MCBLAS(mcblasSgemm(blas, MCBLAS_OP_T, MCBLAS_OP_N, CLASSES, IMAGES, SECOND, &ONE, parameters + WEIGHT, SECOND,
                                 features.data, SECOND, &ZERO, logits.data, CLASSES));
        CHECK_MCDNN(mcdnnAddTensor(dnn, &ONE, class_bias, parameters + BIAS_3, &ONE, logits.shape, logits.data));
        CHECK_MCDNN(mcdnnSoftmaxForward(dnn, MCDNN_SOFTMAX_LOG, MCDNN_SOFTMAX_MODE_CHANNEL, &ONE, logits.shape,
                                        logits.data, &ZERO, logarithms.shape, logarithms.data));

        CHECK_MCDNN(mcdnnSoftmaxBackward(dnn, MCDNN_SOFTMAX_LOG, MCDNN_SOFTMAX_MODE_CHANNEL, &ONE, logarithms.shape,
                                         logarithms.data, dlogarithms.shape, dlogarithms.data, &ZERO, dlogits.shape,
                                         dlogits.data));
        CHECK_MCDNN(mcdnnConvolutionBackwardBias(dnn, &ONE, dlogits.shape, dlogits.data, &ZERO, class_bias,
                                                 gradients + BIAS_3));
        CHECK_MCBLAS(mcblasSgemm(blas, MCBLAS_OP_N, MCBLAS_OP_T, SECOND, CLASSES, IMAGES, &ONE, features.data, SECOND,
                                 dlogits.data, CLASSES, &ZERO, gradients + WEIGHT, SECOND));
        CHECK_MCBLAS(mcblasSgemm(blas, MCBLAS_OP_N, MCBLAS_OP_N, SECOND, IMAGES, CLASSES, &ONE, parameters + WEIGHT, SECOND,
                                 dlogits.data, CLASSES, &ZERO, dfeatures.data, SECOND));
        CHECK_MCDNN(mcdnnPoolingBackward(dnn, mean, &ONE, features.shape, features.data, dfeatures.shape,
                                         dfeatures.data, second.y.shape, second.y.data, &ZERO, second.dy.shape,
                                         second.dy.data));
        run_backward(&second, relu, parameters, gradients);
        CHECK_MCDNN(mcdnnPoolingBackward(dnn, maximum, &ONE, pooled.shape, pooled.data, dpooled.shape, dpooled.data,
                                         first.y.shape, first.y.data, &ZERO, first.dy.shape, first.dy.data));
        run_backward(&first, relu, parameters, gradients);
        CHECK_MCBLAS(mcblasSaxpy(blas, PARAMETERS, &STEP, gradients, 1, parameters, 1));

        CHECK_MC(mcMemcpy(results, logarithms.data, sizeof results, mcMemcpyDeviceToHost));
        losses[step] = 0.0f;
        for (int i = 0; i < IMAGES * CLASSES; i++)
            losses[step] += slopes[i] * results[i];
    }

    CHECK_MC(mcMemcpy(values, parameters, sizeof values, mcMemcpyDeviceToHost));
    printf("loss:");
    for (int step = 0; step < STEPS; step++)
        printf(" %.6f", losses[step]);
    const char *names[] = {"first filters", "first bias", "second filters", "second bias", "weight", "bias"};
    const int begins[] = {FILTERS_1, BIAS_1, FILTERS_2, BIAS_2, WEIGHT, BIAS_3, PARAMETERS};
    for (int k = 0; k < 6; k++) {
        printf("\n%s:", names[k]);
        for (int i = begins[k]; i < begins[k + 1]; i++)
            printf(" %.6f", values[i]);
    }
    printf("\n");

    const Tensor all[] = {x, pooled, dpooled, features, dfeatures, logits, dlogits, logarithms, dlogarithms};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        release(all[i]);
    release_layer(&first);
    release_layer(&second);
    CHECK_MC(mcFree(parameters));
    CHECK_MC(mcFree(gradients));
    CHECK_MCDNN(mcdnnDestroyTensorDescriptor(class_bias));
    CHECK_MCDNN(mcdnnDestroyPoolingDescriptor(maximum));
    CHECK_MCDNN(mcdnnDestroyPoolingDescriptor(mean));
    CHECK_MCDNN(mcdnnDestroyActivationDescriptor(relu));
    CHECK_MCBLAS(mcblasDestroy(blas));
    CHECK_MCDNN(mcdnnDestroy(dnn));
    return 0;
}
