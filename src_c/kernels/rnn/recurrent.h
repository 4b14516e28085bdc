/* Recurrent networks: LSTM and GRU of any number of layers and directions, and their gradients, in float32. */
#ifndef UNDERSTUDY_RECURRENT_H
#define UNDERSTUDY_RECURRENT_H

#include "kernels/kernels.h"

/* With x the input of a step, h and c what the step before left (in the order in which the direction runs):
 *     LSTM   i, f, o = sigmoid, g = tanh of W_ih x + b_ih + W_hh h + b_hh; c' = f c + i g; h' = o tanh(c')
 *     GRU    r, z = sigmoid of the same; hn = W_hh h + b_hh of n; n = tanh(W_ih x + b_ih + r hn); h' = (1 - z) n + z h
 * Rows of weights and biases stand in the order i, f, g, o and r, z, n. The second direction runs from the last step; a
 * layer's output are the h of its directions side by side, and the input of the layer above. */
typedef enum CellKind { CELL_LSTM, CELL_GRU } CellKind;

/* Lists hold a tensor (steps, batch, hidden) for each direction of each layer: directions first, then layers. */
enum { LSTM_LISTS = 7, GRU_LISTS = 5 }; /* i, g, f, o, h, c, tanh(c); r, z, n, hn, h */

typedef struct Recurrent {
    CellKind kind;
    int32_t layers, directions;
    bool has_bias, batch_first; /* batch_first: input and output are (batch, steps, …), else (steps, batch, …) */
    bool keeps;                 /* the forward leaves the lists for the backward */
} Recurrent;

int32_t us_recurrent_lists(CellKind kind);
/* Tensors of `parameters`: for each direction of each layer W_ih, W_hh and, with bias, b_ih, b_hh. */
int32_t us_recurrent_parameters(const Recurrent *network);

/* views: input, h0, c0 (absent: zeros; of GRU always absent), parameters …, output, last h, last c (of GRU absent), and
 * where it keeps them the lists, one after the other. States are (layers * directions, batch, hidden). */
Kernel us_recurrent_forward;
/* views: input, h0, c0, parameters …, gradients of output, of last h and of last c, lists …, then what is written:
 * gradients of input, h0, c0 and parameters …. What is absent is not wanted, or 0. */
Kernel us_recurrent_backward;

#endif
