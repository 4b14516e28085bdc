/* Convolution descriptors, and one call of a convolution function: what it was given under which names, its checks,
 * and its launch. Forward and both gradients relate the same three: x (or dx), a filter w (or dw), y (or dy)
 * (mcdnn-cnn 8). */
#ifndef MCDNN_CONVOLUTION_H
#define MCDNN_CONVOLUTION_H

#include "check.h"
#include "kernels/conv/conv.h"

enum { CONVOLUTION_AXES = MCDNN_DIM_MAX - 2 }; /* that a descriptor stores */

typedef struct ConvDescriptor {
    int32_t axes; /* 0 until set */
    mcdnnConvolutionMode_t mode;
    mcdnnDataType_t compute;
    int32_t padding[CONVOLUTION_AXES], stride[CONVOLUTION_AXES], dilation[CONVOLUTION_AXES];
    int32_t groups;
    mcdnnMathType_t math;
    mcdnnReorderType_t reorder;
} ConvDescriptor;

/* parameter/alive, parameter/set */
const ConvDescriptor *check_convolution(Call *call, mcdnnConvolutionDescriptor_t convDesc);

/* 1 + floor((in + 2 * pad - dilated filter) / stride); below 1 when the filter does not fit. */
int64_t convolution_output(const ConvDescriptor *conv, int axis, int64_t in, int64_t taps);

/* Whether the filter is taken mirrored: mode CONVOLUTION, unless UNDERSTUDY_MCDNN_CONVOLUTION=plain. Says so once
 * where a filter of more than one tap is meant. */
bool convolution_is_mirrored(const ConvDescriptor *conv, const Tensor *filter);

typedef enum ConvDirection { CONV_FORWARD, CONV_DATA, CONV_FILTER } ConvDirection;

typedef struct ConvCall {
    const char *function;
    ConvDirection direction;
    const char *x_name, *w_name, *y_name;
    mcdnnTensorDescriptor_t x_descriptor, y_descriptor;
    mcdnnFilterDescriptor_t w_descriptor;
    mcdnnConvolutionDescriptor_t conv_descriptor;
    Call call;
    const Dnn *dnn;
    const ConvDescriptor *conv;
    const Tensor *x, *y;
    Tensor w;
} ConvCall;

/* What a function was given of x (or dx), the filter and y (or dy), under the names of its prototype. */
ConvCall conv_of(const char *function, ConvDirection direction, const char *x_name, mcdnnTensorDescriptor_t x,
                 const char *w_name, mcdnnFilterDescriptor_t w, const char *y_name, mcdnnTensorDescriptor_t y,
                 mcdnnConvolutionDescriptor_t convDesc);

/* Begins the call: handle and descriptors. Pointers and ranges come next, then the remaining checks. */
void conv_open(ConvCall *conv, mcdnnHandle_t handle);
void conv_check(ConvCall *conv);

/* How an algorithm number of a direction forms its sums. False: it does not take this problem. *own: it is a method
 * of its own; otherwise another's work is done under its number. All of a call that was checked. */
bool conv_method(const ConvCall *conv, int algorithm, ConvMethod *method, bool *own);
int conv_algorithms(ConvDirection direction); /* how many numbers there are */

/* algo/range, algo/supported; the method. */
ConvMethod conv_check_algorithm(ConvCall *conv, int algorithm);

/* What the kernel reads and writes; NULL: not given. */
typedef struct ConvData {
    const void *x, *w, *y;
    const void *bias, *z;
    const Tensor *bias_tensor, *z_tensor;
    double alpha, beta, z_scale;
    bool relu;
    ConvMethod method;
} ConvData;

/* Builds the launches of a checked call and hands them on, one by one: vectors of channels need one for each lane of
 * y. */
typedef void ConvUse(void *context, const Launch *launch);
void conv_launch(const ConvCall *conv, const ConvData *data, ConvUse *use, void *context);

#endif
