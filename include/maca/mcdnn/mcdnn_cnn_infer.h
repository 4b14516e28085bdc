/* Convolution: descriptors, forward, backward to the data, algorithms. Conventions: mcdnn_ops_infer.h.
 *
 * x is N,C,(D,)H,W; w is K,C/groups,(T,)R,S; y is N,K and space. Ranks 3, 4 and 5. With out = 1 + floor((in + 2 * pad
 * - ((filter - 1) * dilation + 1)) / stride) of every spatial dimension,
 *   y[n,k,o] = alpha * (sum over c, r of w[k,c,r] * x[n, group's c, o * stride - pad + r * dilation]) + beta * y[n,k,o]
 * in mode CROSS_CORRELATION; mode CONVOLUTION takes the filter mirrored in its spatial dimensions. Tensors may be
 * strided, filters are packed in their own format.
 *
 * Types of x, w, compute, y: HALF, HALF, HALF or FLOAT, HALF; BFLOAT16 likewise; FLOAT; DOUBLE; and forward INT8 or
 * UINT8, INT8, INT32, INT8 or FLOAT in NHWC, and INT8x4, UINT8x4, INT8x32 in NCHW_VECT_C. Sums are formed in float
 * (double for DOUBLE, exactly for integers), results are rounded once. alpha and beta are host pointers to float, or
 * to double for DOUBLE. No algorithm needs a workspace: sizes are 0, and a workspace that is given is not touched. */
#ifndef MCDNN_CNN_INFER_H_
#define MCDNN_CNN_INFER_H_

#include "mcdnn_ops_infer.h"

#define MCDNN_CNN_INFER_MAJOR 1
#define MCDNN_CNN_INFER_MINOR 1
#define MCDNN_CNN_INFER_PATCH 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcdnnConvolutionStruct *mcdnnConvolutionDescriptor_t;

typedef enum { MCDNN_CONVOLUTION = 0, MCDNN_CROSS_CORRELATION = 1 } mcdnnConvolutionMode_t;

typedef enum { MCDNN_DEFAULT_REORDER = 0, MCDNN_NO_REORDER = 1 } mcdnnReorderType_t;

/* What is known of one algorithm: its status, time in milliseconds (-1: not measured), workspace in bytes. */
typedef struct mcdnnConvolutionFwdAlgoPerfStruct {
    mcdnnConvolutionFwdAlgo_t algo;
    mcdnnStatus_t status;
    float time;
    size_t memory;
    mcdnnDeterminism_t determinism;
    mcdnnMathType_t mathType;
    int reserved[3];
} mcdnnConvolutionFwdAlgoPerf_t;

typedef struct mcdnnConvolutionBwdDataAlgoPerfStruct {
    mcdnnConvolutionBwdDataAlgo_t algo;
    mcdnnStatus_t status;
    float time;
    size_t memory;
    mcdnnDeterminism_t determinism;
    mcdnnMathType_t mathType;
    int reserved[3];
} mcdnnConvolutionBwdDataAlgoPerf_t;

/* ---- fused operations ---- */

typedef struct mcdnnFusedOpsConstParamStruct *mcdnnFusedOpsConstParamPack_t;
typedef struct mcdnnFusedOpsVariantParamStruct *mcdnnFusedOpsVariantParamPack_t;
typedef struct mcdnnFusedOpsPlanStruct *mcdnnFusedOpsPlan_t;

typedef enum {
    MCDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS = 0,
    MCDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD = 1,
    MCDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING = 2,
    MCDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE = 3,
    MCDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION = 4,
    MCDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK = 5,
    MCDNN_FUSED_DACTIVATION_FORK_DBATCHNORM = 6
} mcdnnFusedOps_t;

typedef enum {
    MCDNN_PARAM_XDESC = 0,
    MCDNN_PARAM_XDATA_PLACEHOLDER = 1,
    MCDNN_PARAM_BN_MODE = 2,
    MCDNN_PARAM_BN_EQSCALEBIAS_DESC = 3,
    MCDNN_PARAM_BN_EQSCALE_PLACEHOLDER = 4,
    MCDNN_PARAM_BN_EQBIAS_PLACEHOLDER = 5,
    MCDNN_PARAM_ACTIVATION_DESC = 6,
    MCDNN_PARAM_CONV_DESC = 7,
    MCDNN_PARAM_WDESC = 8,
    MCDNN_PARAM_WDATA_PLACEHOLDER = 9,
    MCDNN_PARAM_DWDESC = 10,
    MCDNN_PARAM_DWDATA_PLACEHOLDER = 11,
    MCDNN_PARAM_YDESC = 12,
    MCDNN_PARAM_YDATA_PLACEHOLDER = 13,
    MCDNN_PARAM_DYDESC = 14,
    MCDNN_PARAM_DYDATA_PLACEHOLDER = 15,
    MCDNN_PARAM_YSTATS_DESC = 16,
    MCDNN_PARAM_YSUM_PLACEHOLDER = 17,
    MCDNN_PARAM_YSQSUM_PLACEHOLDER = 18,
    MCDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC = 19,
    MCDNN_PARAM_BN_SCALE_PLACEHOLDER = 20,
    MCDNN_PARAM_BN_BIAS_PLACEHOLDER = 21,
    MCDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER = 22,
    MCDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER = 23,
    MCDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER = 24,
    MCDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER = 25,
    MCDNN_PARAM_ZDESC = 26,
    MCDNN_PARAM_ZDATA_PLACEHOLDER = 27,
    MCDNN_PARAM_BN_Z_EQSCALEBIAS_DESC = 28,
    MCDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER = 29,
    MCDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER = 30,
    MCDNN_PARAM_ACTIVATION_BITMASK_DESC = 31,
    MCDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER = 32,
    MCDNN_PARAM_DXDESC = 33,
    MCDNN_PARAM_DXDATA_PLACEHOLDER = 34,
    MCDNN_PARAM_DZDESC = 35,
    MCDNN_PARAM_DZDATA_PLACEHOLDER = 36,
    MCDNN_PARAM_BN_DSCALE_PLACEHOLDER = 37,
    MCDNN_PARAM_BN_DBIAS_PLACEHOLDER = 38
} mcdnnFusedOpsConstParamLabel_t;

typedef enum {
    MCDNN_PTR_NULL = 0,
    MCDNN_PTR_ELEM_ALIGNED = 1,
    MCDNN_PTR_16B_ALIGNED = 2
} mcdnnFusedOpsPointerPlaceHolder_t;

typedef enum {
    MCDNN_PTR_XDATA = 0,
    MCDNN_PTR_BN_EQSCALE = 1,
    MCDNN_PTR_BN_EQBIAS = 2,
    MCDNN_PTR_WDATA = 3,
    MCDNN_PTR_DWDATA = 4,
    MCDNN_PTR_YDATA = 5,
    MCDNN_PTR_DYDATA = 6,
    MCDNN_PTR_YSUM = 7,
    MCDNN_PTR_YSQSUM = 8,
    MCDNN_PTR_WORKSPACE = 9,
    MCDNN_PTR_BN_SCALE = 10,
    MCDNN_PTR_BN_BIAS = 11,
    MCDNN_PTR_BN_SAVED_MEAN = 12,
    MCDNN_PTR_BN_SAVED_INVSTD = 13,
    MCDNN_PTR_BN_RUNNING_MEAN = 14,
    MCDNN_PTR_BN_RUNNING_VAR = 15,
    MCDNN_PTR_ZDATA = 16,
    MCDNN_PTR_BN_Z_EQSCALE = 17,
    MCDNN_PTR_BN_Z_EQBIAS = 18,
    MCDNN_PTR_ACTIVATION_BITMASK = 19,
    MCDNN_PTR_DXDATA = 20,
    MCDNN_PTR_DZDATA = 21,
    MCDNN_PTR_BN_DSCALE = 22,
    MCDNN_PTR_BN_DBIAS = 23,
    MCDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES = 100,
    MCDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT = 101,
    MCDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR = 102,
    MCDNN_SCALAR_DOUBLE_BN_EPSILON = 103
} mcdnnFusedOpsVariantParamLabel_t;

/* VERSION_MISMATCH when this part of the library has another version than the rest. */
mcdnnStatus_t mcdnnCnnInferVersionCheck(void);

/* ---- descriptors ---- */

/* Using a descriptor that was not set is BAD_PARAM. NULL is destroyed quietly. */
mcdnnStatus_t mcdnnCreateConvolutionDescriptor(mcdnnConvolutionDescriptor_t *convDesc);
mcdnnStatus_t mcdnnDestroyConvolutionDescriptor(mcdnnConvolutionDescriptor_t convDesc);
/* BAD_PARAM: a padding below 0, a stride (u, v) or dilation below 1, an unknown mode or type. Nd: NOT_SUPPORTED above
 * MCDNN_DIM_MAX dimensions. The group count, math type and reorder type stay as they were. */
mcdnnStatus_t mcdnnSetConvolution2dDescriptor(
    mcdnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w,
    mcdnnConvolutionMode_t mode, mcdnnDataType_t computeType);
mcdnnStatus_t mcdnnGetConvolution2dDescriptor(
    const mcdnnConvolutionDescriptor_t convDesc, int *pad_h, int *pad_w, int *u, int *v, int *dilation_h,
    int *dilation_w, mcdnnConvolutionMode_t *mode, mcdnnDataType_t *computeType);
mcdnnStatus_t mcdnnSetConvolutionNdDescriptor(
    mcdnnConvolutionDescriptor_t convDesc, int arrayLength, const int padA[], const int filterStrideA[],
    const int dilationA[], mcdnnConvolutionMode_t mode, mcdnnDataType_t computeType);
mcdnnStatus_t mcdnnGetConvolutionNdDescriptor(
    const mcdnnConvolutionDescriptor_t convDesc, int arrayLengthRequested, int *arrayLength, int padA[],
    int strideA[], int dilationA[], mcdnnConvolutionMode_t *mode, mcdnnDataType_t *computeType);
/* The math type is stored and given back; arithmetic is never less exact than described above. */
mcdnnStatus_t mcdnnSetConvolutionMathType(mcdnnConvolutionDescriptor_t convDesc, mcdnnMathType_t mathType);
mcdnnStatus_t mcdnnGetConvolutionMathType(mcdnnConvolutionDescriptor_t convDesc, mcdnnMathType_t *mathType);
mcdnnStatus_t mcdnnSetConvolutionGroupCount(mcdnnConvolutionDescriptor_t convDesc, int groupCount);
mcdnnStatus_t mcdnnGetConvolutionGroupCount(mcdnnConvolutionDescriptor_t convDesc, int *groupCount);
mcdnnStatus_t mcdnnSetConvolutionReorderType(
    mcdnnConvolutionDescriptor_t convDesc, mcdnnReorderType_t reorderType);
mcdnnStatus_t mcdnnGetConvolutionReorderType(
    mcdnnConvolutionDescriptor_t convDesc, mcdnnReorderType_t *reorderType);
/* Sizes of y. */
mcdnnStatus_t mcdnnGetConvolution2dForwardOutputDim(
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t inputTensorDesc,
    const mcdnnFilterDescriptor_t filterDesc, int *n, int *c, int *h, int *w);
mcdnnStatus_t mcdnnGetConvolutionNdForwardOutputDim(
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t inputTensorDesc,
    const mcdnnFilterDescriptor_t filterDesc, int nbDims, int tensorOutputDimA[]);

/* ---- forward ---- */

/* BAD_PARAM: ranks, channels or types do not fit together, the dilated filter is larger than the padded input.
 * NOT_SUPPORTED: y has other spatial sizes, types or layouts outside the table, an algorithm outside its limits. */
mcdnnStatus_t mcdnnConvolutionForward(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnFilterDescriptor_t wDesc, const void *w, const mcdnnConvolutionDescriptor_t convDesc,
    mcdnnConvolutionFwdAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y);
/* y = act(alpha1 * conv(x, w) + alpha2 * z + bias), act RELU or IDENTITY. z has the descriptor of y and may be y;
 * with alpha2 0 it is not read. bias is 1,K,1,1 in the type of y, FLOAT for integer x. */
mcdnnStatus_t mcdnnConvolutionBiasActivationForward(
    mcdnnHandle_t handle, const void *alpha1, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnFilterDescriptor_t wDesc, const void *w, const mcdnnConvolutionDescriptor_t convDesc,
    mcdnnConvolutionFwdAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *alpha2,
    const mcdnnTensorDescriptor_t zDesc, const void *z, const mcdnnTensorDescriptor_t biasDesc,
    const void *bias, const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t yDesc,
    void *y);

/* ---- backward to the data ---- */

/* dx may have any spatial sizes that give those of dy. */
mcdnnStatus_t mcdnnConvolutionBackwardData(
    mcdnnHandle_t handle, const void *alpha, const mcdnnFilterDescriptor_t wDesc, const void *w,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const mcdnnConvolutionDescriptor_t convDesc,
    mcdnnConvolutionBwdDataAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx);

/* ---- algorithms ---- */

/* Bytes of workspace: 0. What the call refuses is refused here too. */
mcdnnStatus_t mcdnnGetConvolutionForwardWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const mcdnnFilterDescriptor_t wDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t yDesc,
    mcdnnConvolutionFwdAlgo_t algo, size_t *sizeInBytes);
mcdnnStatus_t mcdnnGetConvolutionBackwardDataWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t wDesc, const mcdnnTensorDescriptor_t dyDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t dxDesc,
    mcdnnConvolutionBwdDataAlgo_t algo, size_t *sizeInBytes);
/* How many results the functions below can give. */
mcdnnStatus_t mcdnnGetConvolutionForwardAlgorithmMaxCount(mcdnnHandle_t handle, int *count);
mcdnnStatus_t mcdnnGetConvolutionBackwardDataAlgorithmMaxCount(mcdnnHandle_t handle, int *count);
/* The algorithms that are methods of their own, in the order in which they are expected to be fast, then the others
 * with NOT_SUPPORTED. Find measures them, on memory of its own; the Ex forms leave the caller's data alone. */
mcdnnStatus_t mcdnnGetConvolutionForwardAlgorithm_v7(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t srcDesc, const mcdnnFilterDescriptor_t filterDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t destDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionFwdAlgoPerf_t *perfResults);
mcdnnStatus_t mcdnnFindConvolutionForwardAlgorithm(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const mcdnnFilterDescriptor_t wDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t yDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionFwdAlgoPerf_t *perfResults);
mcdnnStatus_t mcdnnFindConvolutionForwardAlgorithmEx(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnFilterDescriptor_t wDesc, const void *w, const mcdnnConvolutionDescriptor_t convDesc,
    const mcdnnTensorDescriptor_t yDesc, void *y, const int requestedAlgoCount, int *returnedAlgoCount,
    mcdnnConvolutionFwdAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes);
mcdnnStatus_t mcdnnGetConvolutionBackwardDataAlgorithm_v7(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t filterDesc, const mcdnnTensorDescriptor_t diffDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t gradDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionBwdDataAlgoPerf_t *perfResults);
mcdnnStatus_t mcdnnFindConvolutionBackwardDataAlgorithm(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t wDesc, const mcdnnTensorDescriptor_t dyDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t dxDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionBwdDataAlgoPerf_t *perfResults);
mcdnnStatus_t mcdnnFindConvolutionBackwardDataAlgorithmEx(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t wDesc, const void *w,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const mcdnnConvolutionDescriptor_t convDesc,
    const mcdnnTensorDescriptor_t dxDesc, void *dx, const int requestedAlgoCount, int *returnedAlgoCount,
    mcdnnConvolutionBwdDataAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes);

/* ---- layouts ---- */

/* The column matrix of the forward product in x's type: C*R*S rows in the order c, r, s, one column per n and
 * position. */
mcdnnStatus_t mcdnnIm2Col(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnFilterDescriptor_t wDesc, const mcdnnConvolutionDescriptor_t convDesc, void *colBuffer);
/* The order of an INT8x32 filter and its bias for descriptors with MCDNN_NO_REORDER, which take no other. With the
 * reorder type MCDNN_NO_REORDER here, a copy. */
mcdnnStatus_t mcdnnReorderFilterAndBias(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t filterDesc, mcdnnReorderType_t reorderType,
    const void *filterData, void *reorderedFilterData, int reorderBias, const void *biasData,
    void *reorderedBiasData);
/* Folding is NOT_SUPPORTED. */
mcdnnStatus_t mcdnnGetFoldedConvBackwardDataDescriptors(
    const mcdnnHandle_t handle, const mcdnnFilterDescriptor_t filterDesc,
    const mcdnnTensorDescriptor_t diffDesc, const mcdnnConvolutionDescriptor_t convDesc,
    const mcdnnTensorDescriptor_t gradDesc, const mcdnnTensorFormat_t transformFormat,
    mcdnnFilterDescriptor_t foldedFilterDesc, mcdnnTensorDescriptor_t paddedDiffDesc,
    mcdnnConvolutionDescriptor_t foldedConvDesc, mcdnnTensorDescriptor_t foldedGradDesc,
    mcdnnTensorTransformDescriptor_t filterFoldTransDesc, mcdnnTensorTransformDescriptor_t diffPadTransDesc,
    mcdnnTensorTransformDescriptor_t gradFoldTransDesc, mcdnnTensorTransformDescriptor_t gradUnfoldTransDesc);

#ifdef __cplusplus
}
#endif

#endif
