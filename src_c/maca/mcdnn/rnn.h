/* Descriptors of recurrent networks and of their sequences (mcdnn-cnn 15). */
#ifndef MCDNN_RNN_H
#define MCDNN_RNN_H

#include "check.h"
#include "kernels/rnn/network.h"

typedef struct RnnDescriptor {
    bool set;
    mcdnnRNNAlgo_t algorithm;
    mcdnnRNNMode_t cell;
    mcdnnRNNBiasMode_t bias;
    mcdnnDirectionMode_t direction;
    mcdnnRNNInputMode_t input;
    mcdnnDataType_t type, precision;
    mcdnnMathType_t math;
    int32_t input_size, hidden_size, projection_size, layers;
    mcdnnDropoutDescriptor_t dropout;
    uint32_t flags;
    mcdnnRNNClipMode_t clip;
    mcdnnNanPropagation_t clip_nan;
    double lowest, highest;
    int32_t built_batch; /* of mcdnnBuildRNNDynamic; 0 until then */
} RnnDescriptor;

/* What one call sets, as a whole: it does not change any more, so that a call may use what another thread has replaced. */
typedef struct RnnData {
    bool fills;
    mcdnnDataType_t type;
    mcdnnRNNDataLayout_t layout;
    int32_t steps, batch, vector;
    _Alignas(8) unsigned char padding[8]; /* the bytes of a number of the type */
    int32_t lengths[];                    /* `batch` of them */
} RnnData;

typedef struct RnnDataDescriptor {
    _Atomic(RnnData *) data; /* NULL: it was given no sizes */
} RnnDataDescriptor;

/* parameter/alive, parameter/set */
const RnnDescriptor *check_rnn(Call *call, mcdnnRNNDescriptor_t rnnDesc);
const RnnData *check_rnn_data(Call *call, const char *parameter, mcdnnRNNDataDescriptor_t descriptor);

/* The network of a descriptor, for sequences of x or, where that is NULL, for none. */
PackedNetwork rnn_network(const RnnDescriptor *rnn, const RnnData *x);
bool rnn_is_uniform(const RnnData *data); /* all sequences have every step */

#endif
