/* Cross entropy of logits with probabilities as labels. */
#ifndef UNDERSTUDY_SOFTMAX_CROSS_ENTROPY_H
#define UNDERSTUDY_SOFTMAX_CROSS_ENTROPY_H

#include "kernels/kernels.h"

/* views: logits and labels (rows, classes), losses (rows), gradients by the logits (rows, classes). In float64. */
Kernel us_softmax_cross_entropy;

#endif
