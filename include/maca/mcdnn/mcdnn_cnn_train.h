/* Gradients of convolutions by the filter and the bias. Conventions: mcdnn_cnn_infer.h. */
#ifndef MCDNN_CNN_TRAIN_H_
#define MCDNN_CNN_TRAIN_H_

#include "mcdnn_cnn_infer.h"
#include "mcdnn_ops_infer.h"
#include "mcdnn_ops_train.h"

#define MCDNN_CNN_TRAIN_MAJOR 1
#define MCDNN_CNN_TRAIN_MINOR 1
#define MCDNN_CNN_TRAIN_PATCH 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcdnnConvolutionBwdFilterAlgoPerfStruct {
    mcdnnConvolutionBwdFilterAlgo_t algo;
    mcdnnStatus_t status;
    float time;
    size_t memory;
    mcdnnDeterminism_t determinism;
    mcdnnMathType_t mathType;
    int reserved[3];
} mcdnnConvolutionBwdFilterAlgoPerf_t;

/* VERSION_MISMATCH when this part of the library has another version than the rest. */
mcdnnStatus_t mcdnnCnnTrainVersionCheck(void);

/* ---- gradients ---- */

/* dw = alpha * (sum over n and positions of dy * x) + beta * dw; mode CONVOLUTION stores it mirrored. */
mcdnnStatus_t mcdnnConvolutionBackwardFilter(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const mcdnnConvolutionDescriptor_t convDesc,
    mcdnnConvolutionBwdFilterAlgo_t algo, void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const mcdnnFilterDescriptor_t dwDesc, void *dw);
/* db[k] = alpha * (sum of dy over n and space) + beta * db[k]; db is 1,K,1,1. */
mcdnnStatus_t mcdnnConvolutionBackwardBias(
    mcdnnHandle_t handle, const void *alpha, const mcdnnTensorDescriptor_t dyDesc, const void *dy,
    const void *beta, const mcdnnTensorDescriptor_t dbDesc, void *db);

/* ---- algorithms: as in mcdnn_cnn_infer.h ---- */

mcdnnStatus_t mcdnnGetConvolutionBackwardFilterWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t dyDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnFilterDescriptor_t gradDesc,
    mcdnnConvolutionBwdFilterAlgo_t algo, size_t *sizeInBytes);
mcdnnStatus_t mcdnnGetConvolutionBackwardFilterAlgorithmMaxCount(mcdnnHandle_t handle, int *count);
mcdnnStatus_t mcdnnGetConvolutionBackwardFilterAlgorithm_v7(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t srcDesc, const mcdnnTensorDescriptor_t diffDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnFilterDescriptor_t gradDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionBwdFilterAlgoPerf_t *perfResults);
mcdnnStatus_t mcdnnFindConvolutionBackwardFilterAlgorithm(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t dyDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnFilterDescriptor_t dwDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionBwdFilterAlgoPerf_t *perfResults);
mcdnnStatus_t mcdnnFindConvolutionBackwardFilterAlgorithmEx(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnTensorDescriptor_t dyDesc, const void *y, const mcdnnConvolutionDescriptor_t convDesc,
    const mcdnnFilterDescriptor_t dwDesc, void *dw, const int requestedAlgoCount, int *returnedAlgoCount,
    mcdnnConvolutionBwdFilterAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes);

/* ---- fused operations ---- */

/* Packs hold what they are given: for constants a descriptor, mode or placeholder by label, for variants a device
 * pointer or a number. A NULL parameter clears a label. BAD_PARAM: a label that the operation has not. */
mcdnnStatus_t mcdnnCreateFusedOpsConstParamPack(
    mcdnnFusedOpsConstParamPack_t *constPack, mcdnnFusedOps_t ops);
mcdnnStatus_t mcdnnDestroyFusedOpsConstParamPack(mcdnnFusedOpsConstParamPack_t constPack);
mcdnnStatus_t mcdnnSetFusedOpsConstParamPackAttribute(
    mcdnnFusedOpsConstParamPack_t constPack, mcdnnFusedOpsConstParamLabel_t paramLabel, const void *param);
mcdnnStatus_t mcdnnGetFusedOpsConstParamPackAttribute(
    const mcdnnFusedOpsConstParamPack_t constPack, mcdnnFusedOpsConstParamLabel_t paramLabel, void *param,
    int *isNULL);
mcdnnStatus_t mcdnnCreateFusedOpsVariantParamPack(
    mcdnnFusedOpsVariantParamPack_t *varPack, mcdnnFusedOps_t ops);
mcdnnStatus_t mcdnnDestroyFusedOpsVariantParamPack(mcdnnFusedOpsVariantParamPack_t varPack);
mcdnnStatus_t mcdnnSetFusedOpsVariantParamPackAttribute(
    mcdnnFusedOpsVariantParamPack_t varPack, mcdnnFusedOpsVariantParamLabel_t paramLabel, void *ptr);
mcdnnStatus_t mcdnnGetFusedOpsVariantParamPackAttribute(
    const mcdnnFusedOpsVariantParamPack_t varPack, mcdnnFusedOpsVariantParamLabel_t paramLabel, void *ptr);
/* No plan can be made: NOT_SUPPORTED. */
mcdnnStatus_t mcdnnCreateFusedOpsPlan(mcdnnFusedOpsPlan_t *plan, mcdnnFusedOps_t ops);
mcdnnStatus_t mcdnnDestroyFusedOpsPlan(mcdnnFusedOpsPlan_t plan);
mcdnnStatus_t mcdnnMakeFusedOpsPlan(
    mcdnnHandle_t handle, mcdnnFusedOpsPlan_t plan, const mcdnnFusedOpsConstParamPack_t constPack,
    size_t *workspaceSizeInBytes);
mcdnnStatus_t mcdnnFusedOpsExecute(
    mcdnnHandle_t handle, const mcdnnFusedOpsPlan_t plan, mcdnnFusedOpsVariantParamPack_t varPack);

#ifdef __cplusplus
}
#endif

#endif
