/* The gradients of a convolution, or of a transposed one, in one kernel. */
#ifndef UNDERSTUDY_CONV_GRADIENTS_H
#define UNDERSTUDY_CONV_GRADIENTS_H

#include "kernels/conv/conv.h"

typedef struct ConvGradients {
    Convolution conv;
    bool transposed; /* dy stands for the convolution's x, and x for its y: w is [C of x, C of dy / groups, taps…] */
} ConvGradients;

/* views: dy, x, w, dx, dw, dbias [channels of dy]; any of the last three may be absent. */
Kernel us_conv_gradients;

#endif
