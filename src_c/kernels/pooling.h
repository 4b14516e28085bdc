/* Pooling over two or three spatial axes (mcdnn 6.15, 7.3). */
#ifndef UNDERSTUDY_POOLING_H
#define UNDERSTUDY_POOLING_H

#include "kernels/kernels.h"

typedef enum PoolingMode { POOLING_MAX, POOLING_MAX_BY_RESULT, POOLING_AVERAGE, POOLING_AVERAGE_INSIDE } PoolingMode;

/* Three spatial axes, outermost first; two are written as {1, h, w} with padding 0 and stride 1 in front. */
typedef struct Pooling {
    /* BY_RESULT: the gradient goes to the first x that equals y. INSIDE: divide by the taps inside */
    PoolingMode mode;
    bool propagate_nan;  /* of the maximum; otherwise NaN is ignored */
    int64_t window[3], padding[3], stride[3];
    double alpha, beta;
} Pooling;

/* Views have rank 4 or 5 (images, channels, space), floating types; forward also int8. */
Kernel us_pooling_forward;  /* x, y */
Kernel us_pooling_backward; /* y?, dy, x?, dx: x for the maximum, y for BY_RESULT */

#endif
