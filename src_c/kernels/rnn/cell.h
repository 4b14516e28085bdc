/* One step of an LSTM whose matrix products are done, and its gradients. Gates are i, f, g, o beside each other, h wide each;
 * computed in float32 and rounded once. */
#ifndef UNDERSTUDY_LSTM_CELL_H
#define UNDERSTUDY_LSTM_CELL_H

#include "kernels/kernels.h"

/* The sums of the four first views (parameters broadcast) are activated: i, f and o by sigmoid, g by tanh; c' = f c + i g,
 * h' = o tanh(c').
 * views: of the input and of the state [n, 4 h], two parameters [4 h] or absent, c [n, h]; h', c' [n, h], activated [n, 4 h]. */
Kernel us_lstm_cell;

/* Views: gradients of h' and of c' [n, h] or absent: 0; c, c' [n, h], activated [n, 4 h]; gradients of the sums [n, 4 h], of c
 * [n, h], and of a parameter [4 h] or absent: the sum of the first over n, as they are rounded. */
Kernel us_lstm_cell_backward;

#endif
