/* Recurrent networks: plain, LSTM and GRU, of any number of layers and directions, and their gradients, in float32 or
 * float64. */
#ifndef UNDERSTUDY_RECURRENT_H
#define UNDERSTUDY_RECURRENT_H

#include "kernels/kernels.h"

/* With x the input of a step, h and c what the step before left (in the order in which the direction runs):
 *     RELU, TANH   h' = max(0, ·) or tanh of W_ih x + b_ih + W_hh h + b_hh
 *     LSTM   i, f, o = sigmoid, g = tanh of the same; c' = f c + i g; h' = o tanh(c')
 *     GRU    r, z = sigmoid of the same; hn = W_hh h + b_hh of n; n = tanh(W_ih x + b_ih + r hn); h' = (1 - z) n + z h
 * Rows of weights and biases stand in the order i, f, g, o and r, z, n. An LSTM with W_hr projects: h' = W_hr (o tanh(c')).
 * The second direction runs from the last step; a layer's output are the h of its directions side by side, and the input
 * of the layer above. */
typedef enum CellKind { CELL_RELU, CELL_TANH, CELL_LSTM, CELL_GRU } CellKind;

/* Lists hold a tensor (steps, batch, hidden) for each direction of each layer: directions first, then layers. */
enum { LSTM_LISTS = 7, GRU_LISTS = 5 }; /* i, g, f, o, h, c, tanh(c); r, z, n, hn, h */

/* Tensors of parameters that a direction of a layer has, in this order; the later ones may be left out. W_ih is absent
 * where every gate takes x itself. */
enum { PARAMETER_W_IH, PARAMETER_W_HH, PARAMETER_B_IH, PARAMETER_B_HH, PARAMETER_W_HR, PARAMETER_COUNT };

typedef struct Recurrent {
    CellKind kind;
    int32_t layers, directions;
    int32_t each;     /* tensors of parameters of a direction of a layer: 2, 4 or all 5 */
    bool batch_first; /* input and output are (batch, steps, …), else (steps, batch, …) */
    bool keeps;       /* the forward leaves the lists for the backward */
    bool reversed;    /* the first direction runs from the last step, too */
    /* Cells of an LSTM are held within lowest … highest; NaN becomes `lowest` where it is dropped. */
    bool clips, drops_nan;
    double lowest, highest;
    float dropout; /* between layers, where a trace is kept: the probability of dropping */
    /* The steps of each of the batch's sequences; NULL: all have every step. Behind a sequence's end nothing is read, its
     * states stay, the gradient of the input is 0, and the output is `fill`, or stays where it does not fill. Packed:
     * input and output are (steps in all, …), step by step those sequences that have the step. */
    const int32_t *lengths;
    bool packed, fills;
    double fill;
} Recurrent;

/* hidden: of the cells; output: of h, smaller only where the network projects. */
typedef struct RecurrentSizes {
    int64_t steps, batch, input, hidden, output;
} RecurrentSizes;

int32_t us_recurrent_gates(CellKind kind); /* 1, 4 or 3 */
int32_t us_recurrent_lists(CellKind kind);
/* Tensors of `parameters`: for each direction of each layer W_ih, W_hh and, with bias, b_ih, b_hh. */
int32_t us_recurrent_parameters(const Recurrent *network);

/* Of both, the last view, where it is not absent, tells the lengths: int64 (steps) of 0 … batch; sequence number b has as
 * many steps as there are numbers above b. Or a mask (steps, batch, …), which is not 0 up to the end of a sequence. Then the
 * output is 0 behind the ends, and gates are 0 in the lists.
 * views: input, h0, c0 (absent: zeros; c0 of LSTM only), parameters …, output, last h, last c (of LSTM only), and
 * where it keeps them the lists, one after the other. States are (layers * directions, batch, hidden). */
Kernel us_recurrent_forward;
/* views: input, h0, c0, parameters …, gradients of output, of last h and of last c, lists …, then what is written:
 * gradients of input, h0, c0 and parameters …. What is absent is not wanted, or 0. */
Kernel us_recurrent_backward;

/* ---- in memory of the caller, with a trace instead of lists ------------------------------------------------------ */

/* What one run reads and writes; unused ones are NULL or absent. `parameters` and `to_parameters`: an array. */
typedef struct RecurrentRun {
    const Recurrent *network;
    RecurrentSizes sizes;
    const View *input, *h, *c, *parameters;
    const View *output, *last_h, *last_c, *lists;
    const View *output_slope, *h_slope, *c_slope;
    const View *to_input, *to_h, *to_c, *to_parameters;
    bool adds;           /* gradients of parameters are added to what is there */
    void *memory;        /* for values that are needed until the end of the run; NULL: scratch memory */
    void *trace;         /* from the forward to its gradients; NULL: lists, or nothing */
    void *dropout_state; /* kernels/random/dropout.h */
} RecurrentRun;

/* The gradients: of the data, which the trace keeps what is needed for the parameters of, and of the parameters. */
typedef enum RecurrentGradients { GRADIENTS_OF_DATA = 1, GRADIENTS_OF_PARAMETERS = 2 } RecurrentGradients;

/* Bytes of memory that a forward, or with `trains` any run, needs, and of a trace. `compute`: float32 or float64. */
size_t us_recurrent_memory(const Recurrent *network, RecurrentSizes sizes, DType compute, bool trains);
size_t us_recurrent_trace(const Recurrent *network, RecurrentSizes sizes, DType compute);

KernelStatus us_recurrent_run(const RecurrentRun *run, DType compute);
KernelStatus us_recurrent_run_back(const RecurrentRun *run, DType compute, int gradients);

#endif
