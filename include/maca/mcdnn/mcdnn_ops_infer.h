/* Handles, descriptors and the forward functions of the neural-network library.
 *
 * Every function returns a status; on anything but MCDNN_STATUS_SUCCESS no output has been changed. Data pointers are
 * device addresses. Work is queued on the handle's stream: wait for the stream before reading results.
 *
 * Scaling factors (`alpha`, `beta`) are host pointers to one value, float for HALF, BFLOAT16 and FLOAT data, double for
 * DOUBLE data: destination = alpha * result + beta * old destination. With beta 0 the old destination is not read. */
#ifndef MCDNN_OPS_INFER_H_
#define MCDNN_OPS_INFER_H_

#include "../common/library_types.h"
#include "../mcr/mc_runtime_api.h"

#include <stddef.h>
#include <stdint.h>

#define MCDNN_OPS_INFER_MAJOR 1
#define MCDNN_OPS_INFER_MINOR 1
#define MCDNN_OPS_INFER_PATCH 1

#ifndef MCDNNWINAPI
#define MCDNNWINAPI
#endif

#define MCDNN_DIM_MAX 8 /* largest number of dimensions of a tensor */
#define MCDNN_LRN_MIN_N 1
#define MCDNN_LRN_MAX_N 16
#define MCDNN_LRN_MIN_K 1e-5
#define MCDNN_LRN_MIN_BETA 0.01
#define MCDNN_BN_MIN_EPSILON 0.0

#ifdef __cplusplus
extern "C" {
#endif

/* ---- handles and descriptors: pointers to structures that only the library knows ---- */

typedef struct mcdnnContext *mcdnnHandle_t;
typedef struct mcdnnTensorStruct *mcdnnTensorDescriptor_t;
typedef struct mcdnnFilterStruct *mcdnnFilterDescriptor_t;
typedef struct mcdnnPoolingStruct *mcdnnPoolingDescriptor_t;
typedef struct mcdnnActivationStruct *mcdnnActivationDescriptor_t;
typedef struct mcdnnLRNStruct *mcdnnLRNDescriptor_t;
typedef struct mcdnnDropoutStruct *mcdnnDropoutDescriptor_t;
typedef struct mcdnnSpatialTransformerStruct *mcdnnSpatialTransformerDescriptor_t;
typedef struct mcdnnOpTensorStruct *mcdnnOpTensorDescriptor_t;
typedef struct mcdnnReduceTensorStruct *mcdnnReduceTensorDescriptor_t;
typedef struct mcdnnTensorTransformStruct *mcdnnTensorTransformDescriptor_t;
typedef struct mcdnnCTCLossStruct *mcdnnCTCLossDescriptor_t;
typedef struct mcdnnAlgorithmStruct *mcdnnAlgorithmDescriptor_t;
typedef struct mcdnnAlgorithmPerformanceStruct *mcdnnAlgorithmPerformance_t;
typedef struct mcdnnRuntimeTag_t mcdnnRuntimeTag_t;

/* ---- enumerations ---- */

typedef enum {
    MCDNN_STATUS_SUCCESS = 0,
    MCDNN_STATUS_NOT_INITIALIZED = 1,
    MCDNN_STATUS_ALLOC_FAILED = 2,
    MCDNN_STATUS_BAD_PARAM = 3,
    MCDNN_STATUS_INTERNAL_ERROR = 4,
    MCDNN_STATUS_INVALID_VALUE = 5,
    MCDNN_STATUS_ARCH_MISMATCH = 6,
    MCDNN_STATUS_MAPPING_ERROR = 7,
    MCDNN_STATUS_EXECUTION_FAILED = 8,
    MCDNN_STATUS_NOT_SUPPORTED = 9,
    MCDNN_STATUS_LICENSE_ERROR = 10,
    MCDNN_STATUS_RUNTIME_PREREQUISITE_MISSING = 11,
    MCDNN_STATUS_RUNTIME_IN_PROGRESS = 12,
    MCDNN_STATUS_RUNTIME_FP_OVERFLOW = 13,
    MCDNN_STATUS_VERSION_MISMATCH = 14
} mcdnnStatus_t;
#define MCDNN_STATUS_UNSUPPORTED MCDNN_STATUS_NOT_SUPPORTED /* its name in one place of the vendor's reference */

typedef enum {
    MCDNN_DATA_FLOAT = 0,
    MCDNN_DATA_DOUBLE = 1,
    MCDNN_DATA_HALF = 2,
    MCDNN_DATA_INT8 = 3,
    MCDNN_DATA_INT32 = 4,
    MCDNN_DATA_INT8x4 = 5, /* vectors of 4, 4 and 32 channels: only with MCDNN_TENSOR_NCHW_VECT_C */
    MCDNN_DATA_UINT8 = 6,
    MCDNN_DATA_UINT8x4 = 7,
    MCDNN_DATA_INT8x32 = 8,
    MCDNN_DATA_BFLOAT16 = 9,
    MCDNN_DATA_INT64 = 10,
    MCDNN_DATA_BOOLEAN = 11,
    MCDNN_DATA_FP8_E4M3 = 12,
    MCDNN_DATA_FP8_E5M2 = 13,
    MCDNN_DATA_FAST_FLOAT_FOR_FP8 = 14
} mcdnnDataType_t;

typedef enum {
    MCDNN_TENSOR_NCHW = 0,
    MCDNN_TENSOR_NHWC = 1,
    MCDNN_TENSOR_NCHW_VECT_C = 2
} mcdnnTensorFormat_t;

typedef enum { MCDNN_NOT_PROPAGATE_NAN = 0, MCDNN_PROPAGATE_NAN = 1 } mcdnnNanPropagation_t;

typedef enum {
    MCDNN_DEFAULT_MATH = 0,
    MCDNN_TENSOR_OP_MATH = 1,
    MCDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
    MCDNN_FMA_MATH = 3
} mcdnnMathType_t;

typedef enum { MCDNN_NON_DETERMINISTIC = 0, MCDNN_DETERMINISTIC = 1 } mcdnnDeterminism_t;

typedef enum { MCDNN_TRANSFORM_FOLD = 0U, MCDNN_TRANSFORM_UNFOLD = 1U } mcdnnFoldingDirection_t;

typedef enum {
    MCDNN_ERRQUERY_RAWCODE = 0,
    MCDNN_ERRQUERY_NONBLOCKING = 1,
    MCDNN_ERRQUERY_BLOCKING = 2
} mcdnnErrQueryMode_t;

typedef enum {
    MCDNN_SEV_FATAL = 0,
    MCDNN_SEV_ERROR = 1,
    MCDNN_SEV_WARNING = 2,
    MCDNN_SEV_INFO = 3
} mcdnnSeverity_t;

/* Bits of the mask of mcdnnSetCallback. */
#define MCDNN_SEV_ERROR_EN (1U << MCDNN_SEV_ERROR)
#define MCDNN_SEV_WARNING_EN (1U << MCDNN_SEV_WARNING)
#define MCDNN_SEV_INFO_EN (1U << MCDNN_SEV_INFO)

typedef enum {
    MCDNN_ACTIVATION_SIGMOID = 0,
    MCDNN_ACTIVATION_RELU = 1,
    MCDNN_ACTIVATION_TANH = 2,
    MCDNN_ACTIVATION_CLIPPED_RELU = 3,
    MCDNN_ACTIVATION_ELU = 4,
    MCDNN_ACTIVATION_IDENTITY = 5,
    MCDNN_ACTIVATION_SWISH = 6
} mcdnnActivationMode_t;

typedef enum {
    MCDNN_SOFTMAX_FAST = 0,     /* e^x / sum e^x, without a shift: may overflow */
    MCDNN_SOFTMAX_ACCURATE = 1, /* the same after subtracting the group's maximum */
    MCDNN_SOFTMAX_LOG = 2       /* logarithm of the accurate form */
} mcdnnSoftmaxAlgorithm_t;

typedef enum {
    MCDNN_SOFTMAX_MODE_INSTANCE = 0, /* one group per image, over channels and space */
    MCDNN_SOFTMAX_MODE_CHANNEL = 1   /* one group per image and position, over channels */
} mcdnnSoftmaxMode_t;

typedef enum {
    MCDNN_POOLING_MAX = 0,
    MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1,
    MCDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2,
    MCDNN_POOLING_MAX_DETERMINISTIC = 3
} mcdnnPoolingMode_t;

typedef enum { MCDNN_LRN_CROSS_CHANNEL_DIM1 = 0 } mcdnnLRNMode_t;

typedef enum { MCDNN_DIVNORM_PRECOMPUTED_MEANS = 0 } mcdnnDivNormMode_t;

typedef enum {
    MCDNN_BATCHNORM_PER_ACTIVATION = 0,    /* statistics over the batch */
    MCDNN_BATCHNORM_SPATIAL = 1,           /* statistics over batch and space */
    MCDNN_BATCHNORM_SPATIAL_PERSISTENT = 2 /* the same result; selects a faster kernel */
} mcdnnBatchNormMode_t;

typedef enum {
    MCDNN_BATCHNORM_OPS_BN = 0,
    MCDNN_BATCHNORM_OPS_BN_ACTIVATION = 1,
    MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION = 2
} mcdnnBatchNormOps_t;

typedef enum { MCDNN_NORM_PER_ACTIVATION = 0, MCDNN_NORM_PER_CHANNEL = 1 } mcdnnNormMode_t;

typedef enum { MCDNN_NORM_ALGO_STANDARD = 0, MCDNN_NORM_ALGO_PERSIST = 1 } mcdnnNormAlgo_t;

typedef enum {
    MCDNN_NORM_OPS_NORM = 0,
    MCDNN_NORM_OPS_NORM_ACTIVATION = 1,
    MCDNN_NORM_OPS_NORM_ADD_ACTIVATION = 2
} mcdnnNormOps_t;

typedef enum { MCDNN_SAMPLER_BILINEAR = 0 } mcdnnSamplerType_t;

typedef enum {
    MCDNN_OP_TENSOR_ADD = 0,
    MCDNN_OP_TENSOR_MUL = 1,
    MCDNN_OP_TENSOR_MIN = 2,
    MCDNN_OP_TENSOR_MAX = 3,
    MCDNN_OP_TENSOR_SQRT = 4, /* of the first operand */
    MCDNN_OP_TENSOR_NOT = 5   /* 1 - first operand */
} mcdnnOpTensorOp_t;

typedef enum {
    MCDNN_REDUCE_TENSOR_ADD = 0,
    MCDNN_REDUCE_TENSOR_MUL = 1,
    MCDNN_REDUCE_TENSOR_MIN = 2,
    MCDNN_REDUCE_TENSOR_MAX = 3,
    MCDNN_REDUCE_TENSOR_AMAX = 4,
    MCDNN_REDUCE_TENSOR_AVG = 5,
    MCDNN_REDUCE_TENSOR_NORM1 = 6,
    MCDNN_REDUCE_TENSOR_NORM2 = 7,
    MCDNN_REDUCE_TENSOR_MUL_NO_ZEROS = 8
} mcdnnReduceTensorOp_t;

typedef enum {
    MCDNN_REDUCE_TENSOR_NO_INDICES = 0,
    MCDNN_REDUCE_TENSOR_FLATTENED_INDICES = 1
} mcdnnReduceTensorIndices_t;

typedef enum {
    MCDNN_32BIT_INDICES = 0,
    MCDNN_64BIT_INDICES = 1,
    MCDNN_16BIT_INDICES = 2,
    MCDNN_8BIT_INDICES = 3
} mcdnnIndicesType_t;

typedef enum {
    MCDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
    MCDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
    MCDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
    MCDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
    MCDNN_CONVOLUTION_FWD_ALGO_FFT = 4,
    MCDNN_CONVOLUTION_FWD_ALGO_FFT_TILING = 5,
    MCDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
    MCDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7,
    MCDNN_CONVOLUTION_FWD_ALGO_COUNT = 8
} mcdnnConvolutionFwdAlgo_t;

typedef enum {
    MCDNN_CONVOLUTION_BWD_FILTER_ALGO_0 = 0,
    MCDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1,
    MCDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT = 2,
    MCDNN_CONVOLUTION_BWD_FILTER_ALGO_3 = 3,
    MCDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD = 4,
    MCDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED = 5,
    MCDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING = 6,
    MCDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT = 7
} mcdnnConvolutionBwdFilterAlgo_t;

typedef enum {
    MCDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,
    MCDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1,
    MCDNN_CONVOLUTION_BWD_DATA_ALGO_FFT = 2,
    MCDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING = 3,
    MCDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD = 4,
    MCDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED = 5,
    MCDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT = 6
} mcdnnConvolutionBwdDataAlgo_t;

typedef enum {
    MCDNN_RNN_ALGO_STANDARD = 0,
    MCDNN_RNN_ALGO_PERSIST_STATIC = 1,
    MCDNN_RNN_ALGO_PERSIST_DYNAMIC = 2,
    MCDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H = 3,
    MCDNN_RNN_ALGO_COUNT = 4
} mcdnnRNNAlgo_t;

typedef enum {
    MCDNN_CTC_LOSS_ALGO_DETERMINISTIC = 0,
    MCDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC = 1
} mcdnnCTCLossAlgo_t;

/* ---- structures ---- */

typedef struct mcdnnAlgorithmUnionStruct {
    union Algorithm {
        mcdnnConvolutionFwdAlgo_t convFwdAlgo;
        mcdnnConvolutionBwdFilterAlgo_t convBwdFilterAlgo;
        mcdnnConvolutionBwdDataAlgo_t convBwdDataAlgo;
        mcdnnRNNAlgo_t RNNAlgo;
        mcdnnCTCLossAlgo_t CTCLossAlgo;
    } algo;
} mcdnnAlgorithm_t;

/* What a callback is told about the call that reports. Times are those of the call, `stream` that of `handle`. */
typedef struct mcdnnDebugStruct {
    unsigned mcdnn_version;
    mcdnnStatus_t mcdnnStatus;
    unsigned time_sec;
    unsigned time_usec;
    unsigned time_delta;
    mcdnnHandle_t handle;
    mcStream_t stream;
    unsigned long long pid;
    unsigned long long tid;
    int deviceId;
    int reserved[15];
} mcdnnDebug_t;

typedef void (*mcdnnCallback_t)(mcdnnSeverity_t sev, void *udata, const mcdnnDebug_t *dbg, const char *msg);

/* ---- library ---- */

size_t mcdnnGetVersion(void);          /* MCDNN_VERSION of the library that is loaded */
size_t mcdnnGetMaxDeviceVersion(void); /* newest device generation the library knows */
size_t mcdnnGetCudartVersion(void);    /* version of the runtime the library was made for */
/* Name of a status; a fixed text for an unknown one. Never NULL. */
const char *mcdnnGetErrorString(mcdnnStatus_t status);
/* The function that is told of refused calls, on the thread that made them, when the mask has MCDNN_SEV_ERROR_EN; NULL:
 * none. For all handles and threads of the process. */
mcdnnStatus_t mcdnnSetCallback(unsigned mask, void *udata, mcdnnCallback_t fptr);
mcdnnStatus_t mcdnnGetCallback(unsigned *mask, void **udata, mcdnnCallback_t *fptr);
/* One part of the version. BAD_PARAM: unknown type, value NULL. */
mcdnnStatus_t mcdnnGetProperty(libraryPropertyType type, int *value);
/* VERSION_MISMATCH when this part of the library has another version than the rest. */
mcdnnStatus_t mcdnnOpsInferVersionCheck(void);

/* ---- handle ---- */

/* Makes a handle bound to the calling thread's current device, with the default stream. */
mcdnnStatus_t mcdnnCreate(mcdnnHandle_t *handle);
mcdnnStatus_t mcdnnDestroy(mcdnnHandle_t handle);
/* The stream on which the handle's calls are queued from now on; 0 is the default stream. */
mcdnnStatus_t mcdnnSetStream(mcdnnHandle_t handle, mcStream_t streamId);
mcdnnStatus_t mcdnnGetStream(mcdnnHandle_t handle, mcStream_t *streamId);

/* ---- tensor descriptor ----
 * Sizes and strides count elements (vectors of channels with MCDNN_TENSOR_NCHW_VECT_C, for strides only). */

mcdnnStatus_t mcdnnCreateTensorDescriptor(mcdnnTensorDescriptor_t *tensorDesc);
/* Packed in the given format. BAD_PARAM: size not positive, unknown format or type. NOT_SUPPORTED: over 2 Gi
 * elements. */
mcdnnStatus_t mcdnnSetTensor4dDescriptor(
    mcdnnTensorDescriptor_t tensorDesc, mcdnnTensorFormat_t format, mcdnnDataType_t dataType,
    int n, int c, int h, int w);
/* With strides of your own, all positive. */
mcdnnStatus_t mcdnnSetTensor4dDescriptorEx(
    mcdnnTensorDescriptor_t tensorDesc, mcdnnDataType_t dataType, int n, int c, int h, int w,
    int nStride, int cStride, int hStride, int wStride);
/* Any result pointer may be NULL. A tensor of another rank gives its first four sizes, missing ones as 1. */
mcdnnStatus_t mcdnnGetTensor4dDescriptor(
    const mcdnnTensorDescriptor_t tensorDesc, mcdnnDataType_t *dataType, int *n, int *c, int *h,
    int *w, int *nStride, int *cStride, int *hStride, int *wStride);
/* Up to MCDNN_DIM_MAX dimensions (more: NOT_SUPPORTED). strideA NULL: packed, last dimension innermost. */
mcdnnStatus_t mcdnnSetTensorNdDescriptor(
    mcdnnTensorDescriptor_t tensorDesc, mcdnnDataType_t dataType, int nbDims, const int dimA[],
    const int strideA[]);
/* Packed in the given format; NHWC puts dimension 1 innermost. */
mcdnnStatus_t mcdnnSetTensorNdDescriptorEx(
    mcdnnTensorDescriptor_t tensorDesc, mcdnnTensorFormat_t format, mcdnnDataType_t dataType,
    int nbDims, const int dimA[]);
/* Writes at most nbDimsRequested entries and the true rank. Any result pointer may be NULL. */
mcdnnStatus_t mcdnnGetTensorNdDescriptor(
    const mcdnnTensorDescriptor_t tensorDesc, int nbDimsRequested, mcdnnDataType_t *dataType,
    int *nbDims, int dimA[], int strideA[]);
/* Bytes from the first to the last element, gaps included. */
mcdnnStatus_t mcdnnGetTensorSizeInBytes(const mcdnnTensorDescriptor_t tensorDesc, size_t *size);
/* NULL is accepted. */
mcdnnStatus_t mcdnnDestroyTensorDescriptor(mcdnnTensorDescriptor_t tensorDesc);

/* ---- softmax ---- */

/* y may be x when the descriptors are equal. BAD_PARAM: sizes or types of x and y differ, unknown algorithm or mode. */
mcdnnStatus_t mcdnnSoftmaxForward(
    mcdnnHandle_t handle, mcdnnSoftmaxAlgorithm_t algo, mcdnnSoftmaxMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y);

/* ---- activation ---- */

mcdnnStatus_t mcdnnCreateActivationDescriptor(mcdnnActivationDescriptor_t *activationDesc);
/* coef: upper limit of CLIPPED_RELU, alpha of ELU; not used by the other modes. reluNanOpt: whether the two RELU forms
 * pass NaN on or take it as 0. Any mode is stored. */
mcdnnStatus_t mcdnnSetActivationDescriptor(
    mcdnnActivationDescriptor_t activationDesc, mcdnnActivationMode_t mode,
    mcdnnNanPropagation_t reluNanOpt, double coef);
mcdnnStatus_t mcdnnGetActivationDescriptor(
    const mcdnnActivationDescriptor_t activationDesc, mcdnnActivationMode_t *mode,
    mcdnnNanPropagation_t *reluNanOpt, double *coef);
/* Factor b of SWISH, x / (1 + e^(-b x)); 1 in a new descriptor. */
mcdnnStatus_t mcdnnSetActivationDescriptorSwishBeta(
    mcdnnActivationDescriptor_t activationDesc, double swish_beta);
mcdnnStatus_t mcdnnGetActivationDescriptorSwishBeta(
    mcdnnActivationDescriptor_t activationDesc, double *swish_beta);
mcdnnStatus_t mcdnnDestroyActivationDescriptor(mcdnnActivationDescriptor_t activationDesc);
/* y may be x when the descriptors are equal. BAD_PARAM: sizes or types of x and y differ, mode IDENTITY or unknown. */
mcdnnStatus_t mcdnnActivationForward(
    mcdnnHandle_t handle, mcdnnActivationDescriptor_t activationDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y);

/* ---- batch normalization ---- */

/* The descriptor of scale, bias and statistics that belongs to x: 1xCx1x1, or 1xCxHxW per activation; FLOAT, or
 * DOUBLE for DOUBLE data. */
mcdnnStatus_t mcdnnDeriveBNTensorDescriptor(
    mcdnnTensorDescriptor_t derivedBnDesc, const mcdnnTensorDescriptor_t xDesc,
    mcdnnBatchNormMode_t mode);
/* y = alpha * (scale * (x - mean) / sqrt(variance + epsilon) + bias) + beta * y. BAD_PARAM: rank not 4 or 5,
 * parameters of another shape, epsilon below MCDNN_BN_MIN_EPSILON, x and y differ in size or type. */
mcdnnStatus_t mcdnnBatchNormalizationForwardInference(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const mcdnnTensorDescriptor_t yDesc,
    void *y, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, const void *estimatedMean, const void *estimatedVariance, double epsilon);

/* ---- pooling ---- */

mcdnnStatus_t mcdnnCreatePoolingDescriptor(mcdnnPoolingDescriptor_t *poolingDesc);
/* BAD_PARAM: window or stride not positive, padding negative, unknown mode. maxpoolingNanOpt: whether a NaN tap
 * makes the maximum NaN or is ignored. */
mcdnnStatus_t mcdnnSetPooling2dDescriptor(
    mcdnnPoolingDescriptor_t poolingDesc, mcdnnPoolingMode_t mode,
    mcdnnNanPropagation_t maxpoolingNanOpt, int windowHeight, int windowWidth,
    int verticalPadding, int horizontalPadding, int verticalStride, int horizontalStride);
/* Any result pointer may be NULL. */
mcdnnStatus_t mcdnnGetPooling2dDescriptor(
    const mcdnnPoolingDescriptor_t poolingDesc, mcdnnPoolingMode_t *mode,
    mcdnnNanPropagation_t *maxpoolingNanOpt, int *windowHeight, int *windowWidth,
    int *verticalPadding, int *horizontalPadding, int *verticalStride, int *horizontalStride);
/* Windows over 2 or 3 dimensions; others: NOT_SUPPORTED. */
mcdnnStatus_t mcdnnSetPoolingNdDescriptor(
    mcdnnPoolingDescriptor_t poolingDesc, const mcdnnPoolingMode_t mode,
    const mcdnnNanPropagation_t maxpoolingNanOpt, int nbDims, const int windowDimA[],
    const int paddingA[], const int strideA[]);
mcdnnStatus_t mcdnnGetPoolingNdDescriptor(
    const mcdnnPoolingDescriptor_t poolingDesc, int nbDimsRequested, mcdnnPoolingMode_t *mode,
    mcdnnNanPropagation_t *maxpoolingNanOpt, int *nbDims, int windowDimA[], int paddingA[],
    int strideA[]);
/* Sizes of the output: images, channels, and 1 + floor((in + 2 padding - window) / stride). */
mcdnnStatus_t mcdnnGetPoolingNdForwardOutputDim(
    const mcdnnPoolingDescriptor_t poolingDesc, const mcdnnTensorDescriptor_t inputTensorDesc,
    int nbDims, int outputTensorDimA[]);
mcdnnStatus_t mcdnnGetPooling2dForwardOutputDim(
    const mcdnnPoolingDescriptor_t poolingDesc, const mcdnnTensorDescriptor_t inputTensorDesc,
    int *n, int *c, int *h, int *w);
mcdnnStatus_t mcdnnDestroyPoolingDescriptor(mcdnnPoolingDescriptor_t poolingDesc);
/* Taps outside the tensor are skipped; averages divide by the window or by the taps inside. BAD_PARAM: y has other
 * sizes than the window gives, or another type. NOT_SUPPORTED: neither the last dimension nor
 * the channels have stride 1. */
mcdnnStatus_t mcdnnPoolingForward(
    mcdnnHandle_t handle, const mcdnnPoolingDescriptor_t poolingDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y);

/* ---- dropout ---- */

mcdnnStatus_t mcdnnCreateDropoutDescriptor(mcdnnDropoutDescriptor_t *dropoutDesc);
mcdnnStatus_t mcdnnDestroyDropoutDescriptor(mcdnnDropoutDescriptor_t dropoutDesc);
/* Bytes of device memory for the random generator's state. */
mcdnnStatus_t mcdnnDropoutGetStatesSize(mcdnnHandle_t handle, size_t *sizeInBytes);
/* Bytes of device memory for the mask of a tensor like x. */
mcdnnStatus_t mcdnnDropoutGetReserveSpaceSize(mcdnnTensorDescriptor_t xdesc, size_t *sizeInBytes);
/* Binds the descriptor to a state buffer and seeds it: the same seed gives the same sequence of masks. NULL states
 * change only the probability of dropping. INVALID_VALUE: the buffer is too small. */
mcdnnStatus_t mcdnnSetDropoutDescriptor(
    mcdnnDropoutDescriptor_t dropoutDesc, mcdnnHandle_t handle, float dropout, void *states,
    size_t stateSizeInBytes, unsigned long long seed);
/* As mcdnnSetDropoutDescriptor, but the buffer's state goes on where it was. */
mcdnnStatus_t mcdnnRestoreDropoutDescriptor(
    mcdnnDropoutDescriptor_t dropoutDesc, mcdnnHandle_t handle, float dropout, void *states,
    size_t stateSizeInBytes, unsigned long long seed);
/* Any result pointer may be NULL. */
mcdnnStatus_t mcdnnGetDropoutDescriptor(
    mcdnnDropoutDescriptor_t dropoutDesc, mcdnnHandle_t handle, float *dropout, void **states,
    unsigned long long *seed);
/* y = x / (1 - p) where the element is kept, 0 elsewhere; draws a new mask into the reserve space. BAD_PARAM: x and
 * y differ in number of elements or type, in place with other strides, reserve space too small, no states. */
mcdnnStatus_t mcdnnDropoutForward(
    mcdnnHandle_t handle, const mcdnnDropoutDescriptor_t dropoutDesc,
    const mcdnnTensorDescriptor_t xdesc, const void *x, const mcdnnTensorDescriptor_t ydesc,
    void *y, void *reserveSpace, size_t reserveSpaceSizeInBytes);

/* ---- local response and divisive normalization ---- */

/* A new descriptor has n 5, alpha 1e-4, beta 0.75, k 2. */
mcdnnStatus_t mcdnnCreateLRNDescriptor(mcdnnLRNDescriptor_t *normDesc);
/* BAD_PARAM: lrnN outside MCDNN_LRN_MIN_N to MCDNN_LRN_MAX_N, lrnBeta or lrnK below their minimum. */
mcdnnStatus_t mcdnnSetLRNDescriptor(
    mcdnnLRNDescriptor_t normDesc, unsigned lrnN, double lrnAlpha, double lrnBeta, double lrnK);
mcdnnStatus_t mcdnnGetLRNDescriptor(
    mcdnnLRNDescriptor_t normDesc, unsigned *lrnN, double *lrnAlpha, double *lrnBeta,
    double *lrnK);
mcdnnStatus_t mcdnnDestroyLRNDescriptor(mcdnnLRNDescriptor_t lrnDesc);
/* y = x * (k + alpha / n * sum of x^2 over n neighbouring channels)^-beta. BAD_PARAM: fewer than 3 dimensions, 5
 * without packed space. NOT_SUPPORTED: sizes or types differ, a negative stride. */
mcdnnStatus_t mcdnnLRNCrossChannelForward(
    mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc, mcdnnLRNMode_t lrnMode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y);
/* y = x * (k + alpha / n^d * sum of (x - mean of the centre)^2 over the window in space)^-beta; means NULL: all 0.
 * temp and temp2 are scratch space of the size of x. BAD_PARAM: rank not 4 or 5, sizes or types differ, a negative
 * stride. NOT_SUPPORTED: strides of x and y differ. */
mcdnnStatus_t mcdnnDivisiveNormalizationForward(
    mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc, mcdnnDivNormMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *means,
    void *temp, void *temp2, const void *beta, const mcdnnTensorDescriptor_t yDesc, void *y);

/* ---- normalization ---- */

/* As mcdnnDeriveBNTensorDescriptor, for both groups of parameters. groupCnt other than 1: NOT_SUPPORTED. */
mcdnnStatus_t mcdnnDeriveNormTensorDescriptor(
    mcdnnTensorDescriptor_t derivedNormScaleBiasDesc,
    mcdnnTensorDescriptor_t derivedNormMeanVarDesc, const mcdnnTensorDescriptor_t xDesc,
    mcdnnNormMode_t mode, int groupCnt);
/* As mcdnnBatchNormalizationForwardInference, followed by adding z and an activation where normOps says so (packed
 * NHWC only). */
mcdnnStatus_t mcdnnNormalizationForwardInference(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const void *alpha, const void *beta, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnTensorDescriptor_t normScaleBiasDesc, const void *normScale,
    const void *normBias, const mcdnnTensorDescriptor_t normMeanVarDesc,
    const void *estimatedMean, const void *estimatedVariance,
    const mcdnnTensorDescriptor_t zDesc, const void *z,
    mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t yDesc, void *y,
    double epsilon, int groupCnt);

/* ---- spatial transformer ---- */

mcdnnStatus_t mcdnnCreateSpatialTransformerDescriptor(mcdnnSpatialTransformerDescriptor_t *stDesc);
/* dimA: sizes n, c, h, w of the output. BAD_PARAM: fewer than 4 dimensions, a size not positive. */
mcdnnStatus_t mcdnnSetSpatialTransformerNdDescriptor(
    mcdnnSpatialTransformerDescriptor_t stDesc, mcdnnSamplerType_t samplerType,
    mcdnnDataType_t dataType, const int nbDims, const int dimA[]);
mcdnnStatus_t mcdnnDestroySpatialTransformerDescriptor(mcdnnSpatialTransformerDescriptor_t stDesc);
/* grid[n][i][j] = theta[n] * (x, y, 1), theta n x 2 x 3, grid n x h x w x 2; x and y run from -1 to 1 over the
 * output. NOT_SUPPORTED: more than 4 dimensions. */
mcdnnStatus_t mcdnnSpatialTfGridGeneratorForward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *theta,
    void *grid);
/* Samples x (any height and width) bilinearly at the grid's points; outside x there are zeros. BAD_PARAM: y is not
 * as in stDesc, x differs in n or c. */
mcdnnStatus_t mcdnnSpatialTfSamplerForward(
    mcdnnHandle_t handle, mcdnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *grid, const void *beta,
    mcdnnTensorDescriptor_t yDesc, void *y);

/* ---- tensor arithmetic ---- */

/* y = alpha * x + beta * y between layouts and types: floating types, INT8, and INT8x4 in NCHW_VECT_C. Integers are rounded
 * to the nearest and saturate. BAD_PARAM: sizes differ. */
mcdnnStatus_t mcdnnTransformTensor(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const void *beta, const mcdnnTensorDescriptor_t yDesc, void *y);
/* C = alpha * A + beta * C; every size of A is that of C or 1, else BAD_PARAM. NOT_SUPPORTED: more than 5
 * dimensions. */
mcdnnStatus_t mcdnnAddTensor(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t aDesc, const void *A,
    const void *beta, const mcdnnTensorDescriptor_t cDesc, void *C);
/* Every element becomes the value: a host pointer to a float, to a double for DOUBLE data. */
mcdnnStatus_t mcdnnSetTensor(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t yDesc, void *y, const void *valuePtr);
/* y = alpha * y. */
mcdnnStatus_t mcdnnScaleTensor(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t yDesc, void *y, const void *alpha);
mcdnnStatus_t mcdnnCreateOpTensorDescriptor(mcdnnOpTensorDescriptor_t *opTensorDesc);
mcdnnStatus_t mcdnnSetOpTensorDescriptor(
    mcdnnOpTensorDescriptor_t opTensorDesc, mcdnnOpTensorOp_t opTensorOp,
    mcdnnDataType_t opTensorCompType, mcdnnNanPropagation_t opTensorNanOpt);
mcdnnStatus_t mcdnnGetOpTensorDescriptor(
    const mcdnnOpTensorDescriptor_t opTensorDesc, mcdnnOpTensorOp_t *opTensorOp,
    mcdnnDataType_t *opTensorCompType, mcdnnNanPropagation_t *opTensorNanOpt);
mcdnnStatus_t mcdnnDestroyOpTensorDescriptor(mcdnnOpTensorDescriptor_t opTensorDesc);
/* C = op(alpha1 * A, alpha2 * B) + beta * C; B may have sizes of 1. SQRT and NOT ignore B. NOT_SUPPORTED: compute
 * type not FLOAT (DOUBLE for DOUBLE data). */
mcdnnStatus_t mcdnnOpTensor(
    mcdnnHandle_t handle, const mcdnnOpTensorDescriptor_t opTensorDesc, const void *alpha1,
    const mcdnnTensorDescriptor_t aDesc, const void *A, const void *alpha2,
    const mcdnnTensorDescriptor_t bDesc, const void *B, const void *beta,
    const mcdnnTensorDescriptor_t cDesc, void *C);
mcdnnStatus_t mcdnnCreateReduceTensorDescriptor(mcdnnReduceTensorDescriptor_t *reduceTensorDesc);
mcdnnStatus_t mcdnnSetReduceTensorDescriptor(
    mcdnnReduceTensorDescriptor_t reduceTensorDesc, mcdnnReduceTensorOp_t reduceTensorOp,
    mcdnnDataType_t reduceTensorCompType, mcdnnNanPropagation_t reduceTensorNanOpt,
    mcdnnReduceTensorIndices_t reduceTensorIndices, mcdnnIndicesType_t reduceTensorIndicesType);
mcdnnStatus_t mcdnnGetReduceTensorDescriptor(
    const mcdnnReduceTensorDescriptor_t reduceTensorDesc, mcdnnReduceTensorOp_t *reduceTensorOp,
    mcdnnDataType_t *reduceTensorCompType, mcdnnNanPropagation_t *reduceTensorNanOpt,
    mcdnnReduceTensorIndices_t *reduceTensorIndices, mcdnnIndicesType_t *reduceTensorIndicesType);
mcdnnStatus_t mcdnnDestroyReduceTensorDescriptor(mcdnnReduceTensorDescriptor_t reduceTensorDesc);
/* Bytes of the indices that minimum and maximum can return, and of the workspace; may be 0. */
mcdnnStatus_t mcdnnGetReductionIndicesSize(
    mcdnnHandle_t handle, const mcdnnReduceTensorDescriptor_t reduceTensorDesc,
    const mcdnnTensorDescriptor_t aDesc, const mcdnnTensorDescriptor_t cDesc,
    size_t *sizeInBytes);
mcdnnStatus_t mcdnnGetReductionWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnReduceTensorDescriptor_t reduceTensorDesc,
    const mcdnnTensorDescriptor_t aDesc, const mcdnnTensorDescriptor_t cDesc,
    size_t *sizeInBytes);
/* C = alpha * reduce(A) + beta * C over the dimensions in which C has size 1. Indices are 32-bit and count the
 * reduced elements in row-major order; the first one wins. BAD_PARAM: nothing is reduced. */
mcdnnStatus_t mcdnnReduceTensor(
    mcdnnHandle_t handle, const mcdnnReduceTensorDescriptor_t reduceTensorDesc, void *indices,
    size_t indicesSizeInBytes, void *workspace, size_t workspaceSizeInBytes, const void *alpha,
    const mcdnnTensorDescriptor_t aDesc, const void *A, const void *beta,
    const mcdnnTensorDescriptor_t cDesc, void *C);

/* ---- filter descriptor ---- */

mcdnnStatus_t mcdnnCreateFilterDescriptor(mcdnnFilterDescriptor_t *filterDesc);
/* Output channels k, input channels c, height, width; note that the data type comes before the format. BAD_PARAM: a
 * size not positive, unknown type or format. */
mcdnnStatus_t mcdnnSetFilter4dDescriptor(
    mcdnnFilterDescriptor_t filterDesc, mcdnnDataType_t dataType, mcdnnTensorFormat_t format,
    int k, int c, int h, int w);
/* Any result pointer may be NULL. Sizes that the filter does not have are 1. */
mcdnnStatus_t mcdnnGetFilter4dDescriptor(
    const mcdnnFilterDescriptor_t filterDesc, mcdnnDataType_t *dataType,
    mcdnnTensorFormat_t *format, int *k, int *c, int *h, int *w);
mcdnnStatus_t mcdnnSetFilterNdDescriptor(
    mcdnnFilterDescriptor_t filterDesc, mcdnnDataType_t dataType, mcdnnTensorFormat_t format,
    int nbDims, const int filterDimA[]);
mcdnnStatus_t mcdnnGetFilterNdDescriptor(
    const mcdnnFilterDescriptor_t filterDesc, int nbDimsRequested, mcdnnDataType_t *dataType,
    mcdnnTensorFormat_t *format, int *nbDims, int filterDimA[]);
mcdnnStatus_t mcdnnGetFilterSizeInBytes(const mcdnnFilterDescriptor_t filterDesc, size_t *size);
mcdnnStatus_t mcdnnDestroyFilterDescriptor(mcdnnFilterDescriptor_t filterDesc);

/* ---- run-time errors ---- */

/* Writes the status that kernels of the handle have left, always MCDNN_STATUS_SUCCESS here. The tag is not used. */
mcdnnStatus_t mcdnnQueryRuntimeError(
    mcdnnHandle_t handle, mcdnnStatus_t *rstatus, mcdnnErrQueryMode_t mode,
    mcdnnRuntimeTag_t *tag);

/* ---- tensor transform ---- */

mcdnnStatus_t mcdnnCreateTensorTransformDescriptor(mcdnnTensorTransformDescriptor_t *transformDesc);
/* Paddings of all nbDims dimensions, fold factors of the spatial ones (nbDims - 2); NULL: none. BAD_PARAM: nbDims below
 * 3, negative padding, fold factor 0, unknown format or direction. NOT_SUPPORTED: nbDims above MCDNN_DIM_MAX,
 * NCHW_VECT_C. */
mcdnnStatus_t mcdnnSetTensorTransformDescriptor(
    mcdnnTensorTransformDescriptor_t transformDesc, const uint32_t nbDims,
    const mcdnnTensorFormat_t destFormat, const int32_t padBeforeA[], const int32_t padAfterA[],
    const uint32_t foldA[], const mcdnnFoldingDirection_t direction);
mcdnnStatus_t mcdnnGetTensorTransformDescriptor(
    mcdnnTensorTransformDescriptor_t transformDesc, uint32_t nbDimsRequested,
    mcdnnTensorFormat_t *destFormat, int32_t padBeforeA[], int32_t padAfterA[],
    uint32_t foldA[], mcdnnFoldingDirection_t *direction);
mcdnnStatus_t mcdnnDestroyTensorTransformDescriptor(mcdnnTensorTransformDescriptor_t transformDesc);
/* The descriptor of the result, packed in the destination format, and its bytes. */
mcdnnStatus_t mcdnnInitTransformDest(
    const mcdnnTensorTransformDescriptor_t transformDesc, const mcdnnTensorDescriptor_t srcDesc,
    mcdnnTensorDescriptor_t destDesc, size_t *destSizeInBytes);
/* Pads and folds space into channels (position p of the padded source: block p % fold, destination p / fold), or
 * unfolds and then pads. BAD_PARAM: the destination does not have the sizes that mcdnnInitTransformDest gives. NOT_SUPPORTED:
 * beta other than 0 with padding or folding. */
mcdnnStatus_t mcdnnTransformTensorEx(
    mcdnnHandle_t handle, const mcdnnTensorTransformDescriptor_t transDesc, const void *alpha,
    const mcdnnTensorDescriptor_t srcDesc, const void *srcData, const void *beta,
    const mcdnnTensorDescriptor_t destDesc, void *destData);
mcdnnStatus_t mcdnnTransformFilter(
    mcdnnHandle_t handle, const mcdnnTensorTransformDescriptor_t transDesc, const void *alpha,
    const mcdnnFilterDescriptor_t srcDesc, const void *srcData, const void *beta,
    const mcdnnFilterDescriptor_t destDesc, void *destData);

/* ---- algorithm descriptors (deprecated) ---- */

mcdnnStatus_t mcdnnCreateAlgorithmDescriptor(mcdnnAlgorithmDescriptor_t *algoDesc);
/* Any value is stored. */
mcdnnStatus_t mcdnnSetAlgorithmDescriptor(
    mcdnnAlgorithmDescriptor_t algoDesc, mcdnnAlgorithm_t algorithm);
mcdnnStatus_t mcdnnGetAlgorithmDescriptor(
    const mcdnnAlgorithmDescriptor_t algoDesc, mcdnnAlgorithm_t *algorithm);
mcdnnStatus_t mcdnnCopyAlgorithmDescriptor(
    const mcdnnAlgorithmDescriptor_t src, mcdnnAlgorithmDescriptor_t dest);
mcdnnStatus_t mcdnnDestroyAlgorithmDescriptor(mcdnnAlgorithmDescriptor_t algoDesc);
/* An array of numberToCreate measurements. BAD_PARAM: the number is not positive. */
mcdnnStatus_t mcdnnCreateAlgorithmPerformance(
    mcdnnAlgorithmPerformance_t *algoPerf, int numberToCreate);
mcdnnStatus_t mcdnnSetAlgorithmPerformance(
    mcdnnAlgorithmPerformance_t algoPerf, mcdnnAlgorithmDescriptor_t algoDesc,
    mcdnnStatus_t status, float time, size_t memory);
mcdnnStatus_t mcdnnGetAlgorithmPerformance(
    const mcdnnAlgorithmPerformance_t algoPerf, mcdnnAlgorithmDescriptor_t *algoDesc,
    mcdnnStatus_t *status, float *time, size_t *memory);
/* NULL entries are accepted. */
mcdnnStatus_t mcdnnDestroyAlgorithmPerformance(
    mcdnnAlgorithmPerformance_t *algoPerf, int numberToDestroy);
/* Bytes of host memory that a saved algorithm takes. */
mcdnnStatus_t mcdnnGetAlgorithmSpaceSize(
    mcdnnHandle_t handle, mcdnnAlgorithmDescriptor_t algoDesc, size_t *algoSpaceSizeInBytes);
/* Writes the algorithm to host memory. BAD_PARAM: no algorithm was set, too few bytes. */
mcdnnStatus_t mcdnnSaveAlgorithm(
    mcdnnHandle_t handle, mcdnnAlgorithmDescriptor_t algoDesc, void *algoSpace,
    size_t algoSpaceSizeInBytes);
/* Reads what mcdnnSaveAlgorithm wrote. NOT_SUPPORTED: it was not written by this version. */
mcdnnStatus_t mcdnnRestoreAlgorithm(
    mcdnnHandle_t handle, void *algoSpace, size_t algoSpaceSizeInBytes,
    mcdnnAlgorithmDescriptor_t algoDesc);

#ifdef __cplusplus
}
#endif

#endif
