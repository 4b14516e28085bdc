/* Mixing matrices whose rows and columns are divided by their sums in turn, so that each adds up to 1. */
#ifndef UNDERSTUDY_BALANCE_H
#define UNDERSTUDY_BALANCE_H

#include "kernels/streams/streams.h"

/* What is kept of every step: 0 the softmax of the rows + epsilon, then by turns columns (odd steps) and rows are divided. */
typedef struct Balance {
    const View *matrices; /* [2 iterations, tokens…, N, N]; may be absent where they are made */
    const View *sums;     /* [2 iterations, tokens…, N], step 0 has none: 0 */
    int64_t iterations, tokens, streams;
    float epsilon; /* of the sums as well */
} Balance;

void us_balance(const Balance *balance, int64_t token, float *mix);
/* From the slopes of what us_balance leaves to those of what it is given, where step 0 counts as the softmax. */
void us_balance_backward(const Balance *balance, int64_t token, float *slopes);

#endif
