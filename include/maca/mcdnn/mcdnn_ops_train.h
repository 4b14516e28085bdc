/* The backward and training functions of the neural-network library. Conventions: mcdnn_ops_infer.h. */
#ifndef MCDNN_OPS_TRAIN_H_
#define MCDNN_OPS_TRAIN_H_

#include "mcdnn_ops_infer.h"

#define MCDNN_OPS_TRAIN_MAJOR 1
#define MCDNN_OPS_TRAIN_MINOR 1
#define MCDNN_OPS_TRAIN_PATCH 1

#ifdef __cplusplus
extern "C" {
#endif

/* VERSION_MISMATCH when this part of the library has another version than the rest. */
mcdnnStatus_t mcdnnOpsTrainVersionCheck(void);

/* ---- softmax ---- */

/* dx from the forward result y, as stored, and dy. dx may be dy when the descriptors are equal. BAD_PARAM: sizes or
 * types of the three differ, strides of y and dy differ. */
mcdnnStatus_t mcdnnSoftmaxBackward(
    mcdnnHandle_t handle, mcdnnSoftmaxAlgorithm_t algorithm, mcdnnSoftmaxMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t yDesc, const void *yData,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx);

/* ---- activation ---- */

/* RELU, CLIPPED_RELU and SWISH read x, the other modes y; all operands must be given. dx may be dy when the descriptors
 * are equal. BAD_PARAM: in place with other strides, mode IDENTITY or unknown. NOT_SUPPORTED: sizes or types differ,
 * strides of y and dy or of x and dx differ. */
mcdnnStatus_t mcdnnActivationBackward(
    mcdnnHandle_t handle, mcdnnActivationDescriptor_t activationDesc, const void *alpha,
    const mcdnnTensorDescriptor_t yDesc, const void *y, const mcdnnTensorDescriptor_t dyDesc,
    const void *dy, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx);

/* ---- batch normalization ---- */

/* Normalizes with the batch's mean and biased variance. The running pair becomes (1 - factor) * old + factor * new,
 * with the sample variance; the saved pair is the mean and 1 / sqrt(variance + epsilon). Either pair may be NULL.
 * HALF, BFLOAT16 and FLOAT data have FLOAT parameters, DOUBLE data DOUBLE ones. */
mcdnnStatus_t mcdnnBatchNormalizationForwardTraining(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const mcdnnTensorDescriptor_t yDesc,
    void *y, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
    const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean,
    void *resultSaveInvVariance);
/* The same followed by an activation, after adding z where bnOps says so; these forms need packed NHWC tensors and a
 * reserve space, whose contents the backward call reads. RELU and SWISH; z for HALF only. */
mcdnnStatus_t mcdnnBatchNormalizationForwardTrainingEx(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const void *alpha, const void *beta, const mcdnnTensorDescriptor_t xDesc, const void *xData,
    const mcdnnTensorDescriptor_t zDesc, const void *zData, const mcdnnTensorDescriptor_t yDesc,
    void *yData, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScaleData,
    const void *bnBiasData, double exponentialAverageFactor, void *resultRunningMeanData,
    void *resultRunningVarianceData, double epsilon, void *saveMean, void *saveInvVariance,
    const mcdnnActivationDescriptor_t activationDesc, void *workspace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes);
/* Gradients of x (alphaDataDiff, betaDataDiff), scale and bias (alphaParamDiff, betaParamDiff). The saved pair may
 * be NULL: mean and variance are then computed again with epsilon. HALF, FLOAT, DOUBLE. */
mcdnnStatus_t mcdnnBatchNormalizationBackward(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, const void *alphaDataDiff,
    const void *betaDataDiff, const void *alphaParamDiff, const void *betaParamDiff,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const mcdnnTensorDescriptor_t dyDesc,
    const void *dy, const mcdnnTensorDescriptor_t dxDesc, void *dx,
    const mcdnnTensorDescriptor_t bnScaleBiasDiffDesc, const void *bnScale,
    void *resultBnScaleDiff, void *resultBnBiasDiff, double epsilon, const void *savedMean,
    const void *savedInvVariance);
/* The same through the activation (RELU); dz is the gradient of z. With MCDNN_BATCHNORM_OPS_BN, y, z, activation and
 * both spaces may be NULL. */
mcdnnStatus_t mcdnnBatchNormalizationBackwardEx(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const mcdnnTensorDescriptor_t xDesc, const void *xData,
    const mcdnnTensorDescriptor_t yDesc, const void *yData,
    const mcdnnTensorDescriptor_t dyDesc, const void *dyData,
    const mcdnnTensorDescriptor_t dzDesc, void *dzData, const mcdnnTensorDescriptor_t dxDesc,
    void *dxData, const mcdnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScaleData,
    const void *bnBiasData, void *dBnScaleData, void *dBnBiasData, double epsilon,
    const void *savedMean, const void *savedInvVariance,
    const mcdnnActivationDescriptor_t activationDesc, void *workspace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes);
/* Bytes of the spaces that the two Ex functions take; may be 0. */
mcdnnStatus_t mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t zDesc,
    const mcdnnTensorDescriptor_t yDesc, const mcdnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    const mcdnnActivationDescriptor_t activationDesc, size_t *sizeInBytes);
mcdnnStatus_t mcdnnGetBatchNormalizationBackwardExWorkspaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t yDesc,
    const mcdnnTensorDescriptor_t dyDesc, const mcdnnTensorDescriptor_t dzDesc,
    const mcdnnTensorDescriptor_t dxDesc, const mcdnnTensorDescriptor_t dBnScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc, size_t *sizeInBytes);
mcdnnStatus_t mcdnnGetBatchNormalizationTrainingExReserveSpaceSize(
    mcdnnHandle_t handle, mcdnnBatchNormMode_t mode, mcdnnBatchNormOps_t bnOps,
    const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes);

/* ---- pooling ---- */

/* The maximum's gradient goes to the first largest tap in row-major order, in the deterministic mode to the first
 * tap equal to y. For averages x, y and their descriptors may be NULL. BAD_PARAM: sizes or strides within a pair
 * differ, types differ. */
mcdnnStatus_t mcdnnPoolingBackward(
    mcdnnHandle_t handle, const mcdnnPoolingDescriptor_t poolingDesc, const void *alpha,
    const mcdnnTensorDescriptor_t yDesc, const void *y, const mcdnnTensorDescriptor_t dyDesc,
    const void *dy, const mcdnnTensorDescriptor_t xDesc, const void *xData, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx);

/* ---- dropout ---- */

/* dx = dy / (1 - p) where the forward call that filled the reserve space kept the element, 0 elsewhere. Errors as
 * mcdnnDropoutForward. */
mcdnnStatus_t mcdnnDropoutBackward(
    mcdnnHandle_t handle, const mcdnnDropoutDescriptor_t dropoutDesc,
    const mcdnnTensorDescriptor_t dydesc, const void *dy, const mcdnnTensorDescriptor_t dxdesc,
    void *dx, void *reserveSpace, size_t reserveSpaceSizeInBytes);

/* ---- local response and divisive normalization ---- */

/* Reads x, y and dy. Errors as mcdnnLRNCrossChannelForward. */
mcdnnStatus_t mcdnnLRNCrossChannelBackward(
    mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc, mcdnnLRNMode_t lrnMode,
    const void *alpha, const mcdnnTensorDescriptor_t yDesc, const void *y,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const mcdnnTensorDescriptor_t xDesc,
    const void *x, const void *beta, const mcdnnTensorDescriptor_t dxDesc, void *dx);
/* means, dy, temp and temp2 are laid out as x, dMeans as dx. means NULL: all 0; dMeans NULL: not wanted. Both
 * gradients are blended with alpha and beta. Errors as mcdnnDivisiveNormalizationForward. */
mcdnnStatus_t mcdnnDivisiveNormalizationBackward(
    mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc, mcdnnDivNormMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *means,
    const void *dy, void *temp, void *temp2, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx, void *dMeans);

/* ---- normalization ---- */

/* As mcdnnBatchNormalizationForwardTrainingEx; normMeanVarDesc describes the running and saved statistics. epsilon
 * from 0 on; groupCnt 1. */
mcdnnStatus_t mcdnnNormalizationForwardTraining(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const void *alpha, const void *beta, const mcdnnTensorDescriptor_t xDesc, const void *xData,
    const mcdnnTensorDescriptor_t normScaleBiasDesc, const void *normScale,
    const void *normBias, double exponentialAverageFactor,
    const mcdnnTensorDescriptor_t normMeanVarDesc, void *resultRunningMean,
    void *resultRunningVariance, double epsilon, void *resultSaveMean,
    void *resultSaveInvVariance, mcdnnActivationDescriptor_t activationDesc,
    const mcdnnTensorDescriptor_t zDesc, const void *zData, const mcdnnTensorDescriptor_t yDesc,
    void *yData, void *workspace, size_t workSpaceSizeInBytes, void *reserveSpace,
    size_t reserveSpaceSizeInBytes, int groupCnt);
/* As mcdnnBatchNormalizationBackwardEx. */
mcdnnStatus_t mcdnnNormalizationBackward(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
    const void *betaParamDiff, const mcdnnTensorDescriptor_t xDesc, const void *xData,
    const mcdnnTensorDescriptor_t yDesc, const void *yData,
    const mcdnnTensorDescriptor_t dyDesc, const void *dyData,
    const mcdnnTensorDescriptor_t dzDesc, void *dzData, const mcdnnTensorDescriptor_t dxDesc,
    void *dxData, const mcdnnTensorDescriptor_t dNormScaleBiasDesc, const void *normScaleData,
    const void *normBiasData, void *dNormScaleData, void *dNormBiasData, double epsilon,
    const mcdnnTensorDescriptor_t normMeanVarDesc, const void *savedMean,
    const void *savedInvVariance, mcdnnActivationDescriptor_t activationDesc, void *workSpace,
    size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes,
    int groupCnt);
/* Bytes of the spaces that the two functions take; may be 0. */
mcdnnStatus_t mcdnnGetNormalizationForwardTrainingWorkspaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t zDesc,
    const mcdnnTensorDescriptor_t yDesc, const mcdnnTensorDescriptor_t normScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc,
    const mcdnnTensorDescriptor_t normMeanVarDesc, size_t *sizeInBytes, int groupCnt);
mcdnnStatus_t mcdnnGetNormalizationBackwardWorkspaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t yDesc,
    const mcdnnTensorDescriptor_t dyDesc, const mcdnnTensorDescriptor_t dzDesc,
    const mcdnnTensorDescriptor_t dxDesc, const mcdnnTensorDescriptor_t dNormScaleBiasDesc,
    const mcdnnActivationDescriptor_t activationDesc,
    const mcdnnTensorDescriptor_t normMeanVarDesc, size_t *sizeInBytes, int groupCnt);
mcdnnStatus_t mcdnnGetNormalizationTrainingReserveSpaceSize(
    mcdnnHandle_t handle, mcdnnNormMode_t mode, mcdnnNormOps_t normOps, mcdnnNormAlgo_t algo,
    const mcdnnActivationDescriptor_t activationDesc, const mcdnnTensorDescriptor_t xDesc,
    size_t *sizeInBytes, int groupCnt);

/* ---- spatial transformer ---- */

/* Gradient of theta; overwritten, there are no scaling factors. */
mcdnnStatus_t mcdnnSpatialTfGridGeneratorBackward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *dgrid,
    void *dtheta);
/* Gradients of x (alpha, beta) and of the grid (alphaDgrid, betaDgrid). BAD_PARAM: dy is not as in stDesc. */
mcdnnStatus_t mcdnnSpatialTfSamplerBackward(
    mcdnnHandle_t handle, const mcdnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
    const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx, const void *alphaDgrid,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const void *grid,
    const void *betaDgrid, void *dgrid);

#ifdef __cplusplus
}
#endif

#endif
