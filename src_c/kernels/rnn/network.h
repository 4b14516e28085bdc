/* A recurrent network whose parameters stand in one block, as networks of a library with a weight space do. */
#ifndef UNDERSTUDY_RNN_NETWORK_H
#define UNDERSTUDY_RNN_NETWORK_H

#include "kernels/rnn/recurrent.h"

typedef struct PackedNetwork {
    Recurrent recurrent; /* `each` is PARAMETER_COUNT */
    RecurrentSizes sizes;
    bool skips_input;    /* the first layer's gates take x itself: it has no W_ih */
    bool has_b_ih, has_b_hh;
    DType dtype;         /* of parameters, sequences and states */
} PackedNetwork;

/* A parameter's place in the block, in elements: direction by direction of layer by layer, each in the order of
 * recurrent.h. No rows: the network has no such. */
typedef struct ParameterPlace {
    int64_t first, rows, columns;
} ParameterPlace;
ParameterPlace us_network_parameter(const PackedNetwork *network, int64_t index, int which);
int64_t us_network_elements(const PackedNetwork *network); /* of the block */

/* Bytes of the memory of a run, and of what goes from the forward to the gradients. They need no alignment. */
size_t us_network_memory(const PackedNetwork *network, bool trains);
size_t us_network_trace(const PackedNetwork *network);

/* views of the kernels; sequences are packed arrays in the order that the network says, (…, vector).
 * forward     x, h0, c0, parameters, memory, state of dropout, y, last h, last c, trace
 * data        y, gradients of y, h0, gradient of the last h, c0, gradient of the last c, parameters, memory,
 *             gradients of x, h0, c0, trace
 * parameters  x, h0, y, trace, memory, gradients of the parameters, which are added */
typedef struct NetworkRun {
    PackedNetwork network;
    bool has_lengths; /* else all sequences have every step */
    int32_t lengths[];
} NetworkRun;
Kernel us_network_forward;
Kernel us_network_data_gradients;
Kernel us_network_parameter_gradients;

#endif
