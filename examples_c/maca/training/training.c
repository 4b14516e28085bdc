/* cc training.c -I$MACA_PATH/include -I$MACA_PATH/include/mcr -I$MACA_PATH/include/mcdnn -L$MACA_PATH/lib -lmcdnn -lmcruntime -o training
 *
 * Trains a network without convolutions to tell which of four channels of an image is brighter than the others:
 *     batch normalization and ReLU in one call (NHWC), local response normalization (from NHWC to NCHW), max pooling,
 *     batch normalization, mean over the image, dropout, logarithm of the softmax, cross entropy.
 * The parameters are the scales and biases of both batch normalizations; they move by gradient descent with momentum.
 * Prints the loss of every step (it falls unevenly: every step drops other logits) and the dropout masks, a bit per image
 * and class, lowest first. */
#include <mc_runtime.h>
#include <mcdnn/mcdnn.h>

#include <stdint.h>
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

enum { STEPS = 10, IMAGES = 8, CLASSES = 4, SIDE = 8, POOLED = SIDE / 2, LOGITS = IMAGES * CLASSES };

static const double EPSILON = 1e-3, AVERAGE_FACTOR = 0.1;
static const float ONE = 1.0f, ZERO = 0.0f, DROPPED = 0.25f, RATE = -0.5f, MOMENTUM = 0.5f;

static mcdnnHandle_t dnn;

typedef struct {
    mcdnnTensorDescriptor_t shape;
    void *data;
} Tensor;

/* A tensor of images; all bytes 0. */
static Tensor tensor(mcdnnTensorFormat_t format, int images, int channels, int side)
{
    Tensor made;
    size_t bytes;
    CHECK_MCDNN(mcdnnCreateTensorDescriptor(&made.shape));
    CHECK_MCDNN(mcdnnSetTensor4dDescriptor(made.shape, format, MCDNN_DATA_FLOAT, images, channels, side, side));
    CHECK_MCDNN(mcdnnGetTensorSizeInBytes(made.shape, &bytes));
    CHECK_MC(mcMalloc(&made.data, bytes));
    CHECK_MC(mcMemset(made.data, 0, bytes));
    return made;
}

static void release(Tensor used)
{
    CHECK_MC(mcFree(used.data));
    CHECK_MCDNN(mcdnnDestroyTensorDescriptor(used.shape));
}

static void *space(size_t bytes)
{
    void *address;
    CHECK_MC(mcMalloc(&address, bytes != 0 ? bytes : 1));
    return address;
}

/* A layer of batch normalization: parameters with their velocities, running and saved statistics. */
typedef struct {
    Tensor scale, bias, scale_velocity, bias_velocity, mean, variance, saved_mean, saved_inverse;
} Normalization;

static Normalization normalization(void)
{
    Normalization layer;
    Tensor *all[] = {&layer.scale, &layer.bias,     &layer.scale_velocity, &layer.bias_velocity,
                     &layer.mean,  &layer.variance, &layer.saved_mean,     &layer.saved_inverse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = tensor(MCDNN_TENSOR_NCHW, 1, CLASSES, 1);
    CHECK_MCDNN(mcdnnSetTensor(dnn, layer.scale.shape, layer.scale.data, &ONE));
    CHECK_MCDNN(mcdnnSetTensor(dnn, layer.variance.shape, layer.variance.data, &ONE));
    return layer;
}

static void move(const Normalization *layer)
{
    CHECK_MCDNN(mcdnnAddTensor(dnn, &ONE, layer->scale_velocity.shape, layer->scale_velocity.data, &ONE,
                               layer->scale.shape, layer->scale.data));
    CHECK_MCDNN(mcdnnAddTensor(dnn, &ONE, layer->bias_velocity.shape, layer->bias_velocity.data, &ONE,
                               layer->bias.shape, layer->bias.data));
}

static void release_normalization(Normalization *layer)
{
    release(layer->scale);
    release(layer->bias);
    release(layer->scale_velocity);
    release(layer->bias_velocity);
    release(layer->mean);
    release(layer->variance);
    release(layer->saved_mean);
    release(layer->saved_inverse);
}

/* Noise in steps of 1/256; channel `image % CLASSES` is brighter by 1/4. */
static void fill_images(Tensor images)
{
    static float values[IMAGES * SIDE * SIDE * CLASSES];
    uint32_t state = 1;
    for (int i = 0; i < IMAGES * SIDE * SIDE * CLASSES; i++) {
        int image = i / (SIDE * SIDE * CLASSES), channel = i % CLASSES;
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 24) / 256.0f + (channel == image % CLASSES ? 0.25f : 0.0f);
    }
    CHECK_MC(mcMemcpy(images.data, values, sizeof values, mcMemcpyHostToDevice));
}

int main(void)
{
    CHECK_MCDNN(mcdnnCreate(&dnn));

    Tensor x = tensor(MCDNN_TENSOR_NHWC, IMAGES, CLASSES, SIDE);
    Tensor hidden = tensor(MCDNN_TENSOR_NHWC, IMAGES, CLASSES, SIDE);
    Tensor local = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, SIDE);
    Tensor pooled = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, POOLED);
    Tensor normal = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, POOLED);
    Tensor means = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, 1);
    Tensor logits = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, 1);
    Tensor logarithms = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, 1);
    Tensor dx = tensor(MCDNN_TENSOR_NHWC, IMAGES, CLASSES, SIDE);
    Tensor dhidden = tensor(MCDNN_TENSOR_NHWC, IMAGES, CLASSES, SIDE);
    Tensor dlocal = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, SIDE);
    Tensor dpooled = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, POOLED);
    Tensor dnormal = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, POOLED);
    Tensor dmeans = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, 1);
    Tensor dlogits = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, 1);
    Tensor dlogarithms = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, 1);
    Tensor ones = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, 1);
    Tensor mask = tensor(MCDNN_TENSOR_NCHW, IMAGES, CLASSES, 1);
    Normalization first = normalization(), second = normalization();

    mcdnnActivationDescriptor_t relu;
    CHECK_MCDNN(mcdnnCreateActivationDescriptor(&relu));
    CHECK_MCDNN(mcdnnSetActivationDescriptor(relu, MCDNN_ACTIVATION_RELU, MCDNN_PROPAGATE_NAN, 0.0));
    const mcdnnBatchNormMode_t mode = MCDNN_BATCHNORM_SPATIAL_PERSISTENT;
    const mcdnnBatchNormOps_t fused = MCDNN_BATCHNORM_OPS_BN_ACTIVATION;
    size_t forward_bytes, backward_bytes, reserve_bytes;
    CHECK_MCDNN(mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize(dnn, mode, fused, x.shape, NULL, hidden.shape,
                                                                         first.scale.shape, relu, &forward_bytes));
    CHECK_MCDNN(mcdnnGetBatchNormalizationBackwardExWorkspaceSize(dnn, mode, fused, x.shape, hidden.shape,
                                                                  dhidden.shape, NULL, dx.shape, first.scale.shape,
                                                                  relu, &backward_bytes));
    CHECK_MCDNN(mcdnnGetBatchNormalizationTrainingExReserveSpaceSize(dnn, mode, fused, relu, x.shape, &reserve_bytes));
    void *forward_space = space(forward_bytes), *backward_space = space(backward_bytes);
    void *reserve = space(reserve_bytes);

    mcdnnLRNDescriptor_t lrn;
    CHECK_MCDNN(mcdnnCreateLRNDescriptor(&lrn));
    CHECK_MCDNN(mcdnnSetLRNDescriptor(lrn, 3, 0.5, 0.75, 1.0));
    mcdnnPoolingDescriptor_t maximum, average;
    CHECK_MCDNN(mcdnnCreatePoolingDescriptor(&maximum));
    CHECK_MCDNN(mcdnnSetPooling2dDescriptor(maximum, MCDNN_POOLING_MAX_DETERMINISTIC, MCDNN_PROPAGATE_NAN, 2, 2, 0,
                                            0, 2, 2));
    CHECK_MCDNN(mcdnnCreatePoolingDescriptor(&average));
    CHECK_MCDNN(mcdnnSetPooling2dDescriptor(average, MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, MCDNN_PROPAGATE_NAN,
                                            POOLED, POOLED, 0, 0, POOLED, POOLED));
    mcdnnDropoutDescriptor_t dropout;
    size_t states_bytes, mask_bytes;
    CHECK_MCDNN(mcdnnCreateDropoutDescriptor(&dropout));
    CHECK_MCDNN(mcdnnDropoutGetStatesSize(dnn, &states_bytes));
    CHECK_MCDNN(mcdnnDropoutGetReserveSpaceSize(means.shape, &mask_bytes));
    void *states = space(states_bytes), *kept = space(mask_bytes);
    CHECK_MCDNN(mcdnnSetDropoutDescriptor(dropout, dnn, DROPPED, states, states_bytes, 2026));

    /* The loss is the mean of -logarithms[image][label]: its gradient is the same in every step. */
    float slopes[LOGITS] = {0}, results[LOGITS], losses[STEPS];
    uint32_t masks[STEPS];
    for (int image = 0; image < IMAGES; image++)
        slopes[image * CLASSES + image % CLASSES] = -1.0f / IMAGES;
    CHECK_MC(mcMemcpy(dlogarithms.data, slopes, sizeof slopes, mcMemcpyHostToDevice));
    CHECK_MCDNN(mcdnnSetTensor(dnn, ones.shape, ones.data, &ONE));
    fill_images(x);

    for (int step = 0; step < STEPS; step++) {
        CHECK_MCDNN(mcdnnBatchNormalizationForwardTrainingEx(
            dnn, mode, fused, &ONE, &ZERO, x.shape, x.data, NULL, NULL, hidden.shape, hidden.data, first.scale.shape,
            first.scale.data, first.bias.data, AVERAGE_FACTOR, first.mean.data, first.variance.data, EPSILON,
            first.saved_mean.data, first.saved_inverse.data, relu, forward_space, forward_bytes, reserve,
            reserve_bytes));
        CHECK_MCDNN(mcdnnLRNCrossChannelForward(dnn, lrn, MCDNN_LRN_CROSS_CHANNEL_DIM1, &ONE, hidden.shape, hidden.data,
                                                &ZERO, local.shape, local.data));
        CHECK_MCDNN(mcdnnPoolingForward(dnn, maximum, &ONE, local.shape, local.data, &ZERO, pooled.shape, pooled.data));
        CHECK_MCDNN(mcdnnBatchNormalizationForwardTraining(
            dnn, MCDNN_BATCHNORM_SPATIAL, &ONE, &ZERO, pooled.shape, pooled.data, normal.shape, normal.data,
            second.scale.shape, second.scale.data, second.bias.data, AVERAGE_FACTOR, second.mean.data,
            second.variance.data, EPSILON, second.saved_mean.data, second.saved_inverse.data));
        CHECK_MCDNN(mcdnnPoolingForward(dnn, average, &ONE, normal.shape, normal.data, &ZERO, means.shape, means.data));
        CHECK_MCDNN(mcdnnDropoutForward(dnn, dropout, means.shape, means.data, logits.shape, logits.data, kept,
                                        mask_bytes));
        CHECK_MCDNN(mcdnnSoftmaxForward(dnn, MCDNN_SOFTMAX_LOG, MCDNN_SOFTMAX_MODE_CHANNEL, &ONE, logits.shape,
                                        logits.data, &ZERO, logarithms.shape, logarithms.data));

        CHECK_MCDNN(mcdnnSoftmaxBackward(dnn, MCDNN_SOFTMAX_LOG, MCDNN_SOFTMAX_MODE_CHANNEL, &ONE, logarithms.shape,
                                         logarithms.data, dlogarithms.shape, dlogarithms.data, &ZERO, dlogits.shape,
                                         dlogits.data));
        CHECK_MCDNN(mcdnnDropoutBackward(dnn, dropout, dlogits.shape, dlogits.data, dmeans.shape, dmeans.data, kept,
                                         mask_bytes));
        CHECK_MCDNN(mcdnnPoolingBackward(dnn, average, &ONE, means.shape, means.data, dmeans.shape, dmeans.data,
                                         normal.shape, normal.data, &ZERO, dnormal.shape, dnormal.data));
        CHECK_MCDNN(mcdnnBatchNormalizationBackward(
            dnn, MCDNN_BATCHNORM_SPATIAL, &ONE, &ZERO, &RATE, &MOMENTUM, pooled.shape, pooled.data, dnormal.shape,
            dnormal.data, dpooled.shape, dpooled.data, second.scale.shape, second.scale.data,
            second.scale_velocity.data, second.bias_velocity.data, EPSILON, second.saved_mean.data,
            second.saved_inverse.data));
        CHECK_MCDNN(mcdnnPoolingBackward(dnn, maximum, &ONE, pooled.shape, pooled.data, dpooled.shape, dpooled.data,
                                         local.shape, local.data, &ZERO, dlocal.shape, dlocal.data));
        CHECK_MCDNN(mcdnnLRNCrossChannelBackward(dnn, lrn, MCDNN_LRN_CROSS_CHANNEL_DIM1, &ONE, local.shape, local.data,
                                                 dlocal.shape, dlocal.data, hidden.shape, hidden.data, &ZERO,
                                                 dhidden.shape, dhidden.data));
        CHECK_MCDNN(mcdnnBatchNormalizationBackwardEx(
            dnn, mode, fused, &ONE, &ZERO, &RATE, &MOMENTUM, x.shape, x.data, hidden.shape, hidden.data, dhidden.shape,
            dhidden.data, NULL, NULL, dx.shape, dx.data, first.scale.shape, first.scale.data, first.bias.data,
            first.scale_velocity.data, first.bias_velocity.data, EPSILON, first.saved_mean.data,
            first.saved_inverse.data, relu, backward_space, backward_bytes, reserve, reserve_bytes));
        move(&first);
        move(&second);

        CHECK_MC(mcMemcpy(results, logarithms.data, sizeof results, mcMemcpyDeviceToHost));
        losses[step] = 0.0f;
        for (int i = 0; i < LOGITS; i++)
            losses[step] += slopes[i] * results[i];
        /* What the gradient of dropout lets through is what the forward call kept. */
        CHECK_MCDNN(mcdnnDropoutBackward(dnn, dropout, ones.shape, ones.data, mask.shape, mask.data, kept, mask_bytes));
        CHECK_MC(mcMemcpy(results, mask.data, sizeof results, mcMemcpyDeviceToHost));
        masks[step] = 0;
        for (int i = 0; i < LOGITS; i++)
            masks[step] |= (uint32_t)(results[i] != 0.0f) << i;
    }

    printf("masks:");
    for (int step = 0; step < STEPS; step++)
        printf(" %lu", (unsigned long)masks[step]);
    printf("\nloss:");
    for (int step = 0; step < STEPS; step++)
        printf(" %.6f", losses[step]);
    printf("\n");
    const Tensor learned[] = {first.scale, first.bias, second.scale, second.bias};
    const char *names[] = {"first scale", "first bias", "second scale", "second bias"};
    for (int i = 0; i < 4; i++) {
        CHECK_MC(mcMemcpy(results, learned[i].data, CLASSES * sizeof *results, mcMemcpyDeviceToHost));
        printf("%s:", names[i]);
        for (int k = 0; k < CLASSES; k++)
            printf(" %.6f", results[k]);
        printf("\n");
    }

    const Tensor all[] = {x,  hidden,  local,  pooled,  normal,  means,  logits,  logarithms,  ones,
                          dx, dhidden, dlocal, dpooled, dnormal, dmeans, dlogits, dlogarithms, mask};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        release(all[i]);
    release_normalization(&first);
    release_normalization(&second);
    void *spaces[] = {forward_space, backward_space, reserve, states, kept};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        CHECK_MC(mcFree(spaces[i]));
    CHECK_MCDNN(mcdnnDestroyDropoutDescriptor(dropout));
    CHECK_MCDNN(mcdnnDestroyPoolingDescriptor(maximum));
    CHECK_MCDNN(mcdnnDestroyPoolingDescriptor(average));
    CHECK_MCDNN(mcdnnDestroyLRNDescriptor(lrn));
    CHECK_MCDNN(mcdnnDestroyActivationDescriptor(relu));
    CHECK_MCDNN(mcdnnDestroy(dnn));
    if (!(losses[STEPS - 1] < losses[0])) {
        fprintf(stderr, "the loss did not fall\n");
        return 1;
    }
    return 0;
}
