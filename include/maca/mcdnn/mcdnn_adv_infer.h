/* Recurrent networks: descriptors, sizes and the forward. Conventions: mcdnn_ops_infer.h.
 * RELU, TANH  h' = max(0, .) or tanh of W x + bW + R h + bR
 * LSTM        i, f, o = sigmoid, c~ = tanh of the same; c' = f c + i c~; h' = o tanh(c'), times the projection if there is one
 * GRU         r, i = sigmoid of the same; h~ = tanh(W x + bW + r (R h + bR)); h' = (1 - i) h~ + i h
 * Layer l > 0 takes the h of both directions of the layer below, side by side, after dropout in training. */
#ifndef MCDNN_ADV_INFER_H_
#define MCDNN_ADV_INFER_H_

#include <stdint.h>

#include "mcdnn_ops_infer.h"

#define MCDNN_ADV_INFER_MAJOR 1
#define MCDNN_ADV_INFER_MINOR 1
#define MCDNN_ADV_INFER_PATCH 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcdnnRNNStruct *mcdnnRNNDescriptor_t;
typedef struct mcdnnRNNDataStruct *mcdnnRNNDataDescriptor_t;

typedef enum {
    MCDNN_FWD_MODE_INFERENCE = 0,
    MCDNN_FWD_MODE_TRAINING = 1
} mcdnnForwardMode_t;

typedef enum {
    MCDNN_RNN_RELU = 0,
    MCDNN_RNN_TANH = 1,
    MCDNN_LSTM = 2,
    MCDNN_GRU = 3
} mcdnnRNNMode_t;

typedef enum {
    MCDNN_RNN_NO_BIAS = 0,
    MCDNN_RNN_SINGLE_INP_BIAS = 1,
    MCDNN_RNN_DOUBLE_BIAS = 2,
    MCDNN_RNN_SINGLE_REC_BIAS = 3
} mcdnnRNNBiasMode_t;

typedef enum {
    MCDNN_UNIDIRECTIONAL = 0,
    MCDNN_BIDIRECTIONAL = 1
} mcdnnDirectionMode_t;

/* SKIP_INPUT: each gate of the first layer takes x itself; inputSize is hiddenSize. */
typedef enum {
    MCDNN_LINEAR_INPUT = 0,
    MCDNN_SKIP_INPUT = 1
} mcdnnRNNInputMode_t;

typedef enum {
    MCDNN_RNN_CLIP_NONE = 0,
    MCDNN_RNN_CLIP_MINMAX = 1
} mcdnnRNNClipMode_t;

/* T,B,V and B,T,V with padding; PACKED: step by step the sequences that have the step, longest sequence first. */
typedef enum {
    MCDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0,
    MCDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED = 1,
    MCDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED = 2
} mcdnnRNNDataLayout_t;

/* auxFlags: whether the unpacked layouts may be used. */
#define MCDNN_RNN_PADDED_IO_DISABLED 0
#define MCDNN_RNN_PADDED_IO_ENABLED 1

/* ---- the network ---- */

mcdnnStatus_t mcdnnCreateRNNDescriptor(mcdnnRNNDescriptor_t *rnnDesc);
mcdnnStatus_t mcdnnDestroyRNNDescriptor(mcdnnRNNDescriptor_t rnnDesc);
/* 0 < projSize <= hiddenSize, smaller only with LSTM. dataType and mathPrec: HALF with HALF or FLOAT, FLOAT, DOUBLE.
 * dropoutDesc may be NULL: no dropout. */
mcdnnStatus_t mcdnnSetRNNDescriptor_v8(
    mcdnnRNNDescriptor_t rnnDesc, mcdnnRNNAlgo_t algo, mcdnnRNNMode_t cellMode, mcdnnRNNBiasMode_t biasMode,
    mcdnnDirectionMode_t dirMode, mcdnnRNNInputMode_t inputMode, mcdnnDataType_t dataType,
    mcdnnDataType_t mathPrec, mcdnnMathType_t mathType, int32_t inputSize, int32_t hiddenSize,
    int32_t projSize, int32_t numLayers, mcdnnDropoutDescriptor_t dropoutDesc, uint32_t auxFlags);
/* NULL places are passed over. */
mcdnnStatus_t mcdnnGetRNNDescriptor_v8(
    mcdnnRNNDescriptor_t rnnDesc, mcdnnRNNAlgo_t *algo, mcdnnRNNMode_t *cellMode,
    mcdnnRNNBiasMode_t *biasMode, mcdnnDirectionMode_t *dirMode, mcdnnRNNInputMode_t *inputMode,
    mcdnnDataType_t *dataType, mcdnnDataType_t *mathPrec, mcdnnMathType_t *mathType, int32_t *inputSize,
    int32_t *hiddenSize, int32_t *projSize, int32_t *numLayers, mcdnnDropoutDescriptor_t *dropoutDesc,
    uint32_t *auxFlags);
/* Holds the cells of an LSTM within lclip ... rclip; a cell that is NaN stays so, or becomes lclip. */
mcdnnStatus_t mcdnnRNNSetClip_v8(
    mcdnnRNNDescriptor_t rnnDesc, mcdnnRNNClipMode_t clipMode, mcdnnNanPropagation_t clipNanOpt, double lclip,
    double rclip);
mcdnnStatus_t mcdnnRNNGetClip_v8(
    mcdnnRNNDescriptor_t rnnDesc, mcdnnRNNClipMode_t *clipMode, mcdnnNanPropagation_t *clipNanOpt,
    double *lclip, double *rclip);
/* Of a network with the algorithm PERSIST_DYNAMIC, before it runs with batches of this size. */
mcdnnStatus_t mcdnnBuildRNNDynamic(mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, int miniBatch);

/* ---- sequences ---- */

mcdnnStatus_t mcdnnCreateRNNDataDescriptor(mcdnnRNNDataDescriptor_t *rnnDataDesc);
mcdnnStatus_t mcdnnDestroyRNNDataDescriptor(mcdnnRNNDataDescriptor_t rnnDataDesc);
/* seqLengthArray: batchSize lengths of 0 ... maxSeqLength, for PACKED in descending order. paddingFill: an element of
 * dataType that outputs hold behind the ends of sequences; NULL: what is there stays. */
mcdnnStatus_t mcdnnSetRNNDataDescriptor(
    mcdnnRNNDataDescriptor_t rnnDataDesc, mcdnnDataType_t dataType, mcdnnRNNDataLayout_t layout,
    int maxSeqLength, int batchSize, int vectorSize, const int seqLengthArray[], void *paddingFill);
/* At most arrayLengthRequested lengths. NULL places are passed over. */
mcdnnStatus_t mcdnnGetRNNDataDescriptor(
    mcdnnRNNDataDescriptor_t rnnDataDesc, mcdnnDataType_t *dataType, mcdnnRNNDataLayout_t *layout,
    int *maxSeqLength, int *batchSize, int *vectorSize, int arrayLengthRequested, int seqLengthArray[],
    void *paddingFill);

/* ---- parameters and sizes ---- */

/* Bytes of the buffers for sequences like xDesc's; a place that is NULL is passed over. No reserve is needed in
 * inference mode. */
mcdnnStatus_t mcdnnGetRNNTempSpaceSizes(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, mcdnnForwardMode_t fMode,
    mcdnnRNNDataDescriptor_t xDesc, size_t *workSpaceSize, size_t *reserveSpaceSize);
mcdnnStatus_t mcdnnGetRNNWeightSpaceSize(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, size_t *weightSpaceSize);
/* Where a gate's matrix (1, rows, columns) and bias (1, rows, 1) stand; NULL, and a descriptor without shape, where the
 * network has none. pseudoLayer: the layer, or 2 * layer + direction. linLayerID: RELU, TANH 0 input, 1 recurrent; LSTM 0 to
 * 3 input's i, f, c~, o, 4 to 7 recurrent, 8 projection; GRU 0 to 2 input's r, i, h~, 3 to 5 recurrent. */
mcdnnStatus_t mcdnnGetRNNWeightParams(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, int32_t pseudoLayer, size_t weightSpaceSize,
    const void *weightSpace, int32_t linLayerID, mcdnnTensorDescriptor_t mDesc, void **mAddr,
    mcdnnTensorDescriptor_t bDesc, void **bAddr);

/* ---- forward ---- */

/* hDesc, cDesc: (numLayers * directions, batchSize, projSize or hiddenSize) packed; c only with LSTM. NULL hx, cx: zeros;
 * NULL hy, cy: not wanted. y has vectors of directions * projSize. devSeqLengths is not read. reserveSpace: only in
 * training, for the gradients. */
mcdnnStatus_t mcdnnRNNForward(
    mcdnnHandle_t handle, mcdnnRNNDescriptor_t rnnDesc, mcdnnForwardMode_t fwdMode,
    const int32_t devSeqLengths[], mcdnnRNNDataDescriptor_t xDesc, const void *x,
    mcdnnRNNDataDescriptor_t yDesc, void *y, mcdnnTensorDescriptor_t hDesc, const void *hx, void *hy,
    mcdnnTensorDescriptor_t cDesc, const void *cx, void *cy, size_t weightSpaceSize, const void *weightSpace,
    size_t workSpaceSize, void *workSpace, size_t reserveSpaceSize, void *reserveSpace);

#ifdef __cplusplus
}
#endif

#endif
