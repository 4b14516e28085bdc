/* Connectionist temporal classification (Graves et al. 2006): the probability of a sequence of labels, whatever the
 * blanks and repetitions between them. */
#ifndef UNDERSTUDY_CTC_H
#define UNDERSTUDY_CTC_H

#include "kernels/kernels.h"

/* log_probabilities (steps, batch, classes); targets (batch, most), or the sequences of all entries in one dimension.
 * lengths: steps of each entry, then labels of each. A label that is no class has probability 0. All in float64. */
typedef struct Ctc {
    int64_t blank, batch;
    bool zero_infinity; /* infinite losses, and their gradients, become 0 */
    int64_t lengths[];
} Ctc;

/* views: log_probabilities, targets, losses (batch), logarithms of the forward probabilities (batch, steps, states),
 * states 2 * labels + 1 or more: -infinity where an entry has none. */
Kernel us_ctc_loss;
/* views: gradient of the losses (batch), log_probabilities, targets, out. As PyTorch's: the gradient by the logits
 * whose logarithms of softmax are given; 0 behind the last step of an entry. */
Kernel us_ctc_loss_backward;

#endif
