/* Pooling over two or three spatial axes (mcdnn 6.15, 7.3). */
#ifndef UNDERSTUDY_POOLING_H
#define UNDERSTUDY_POOLING_H

#include "kernels/kernels.h"

typedef enum PoolingMode {
    POOLING_MAX,
    POOLING_MAX_BY_RESULT,   /* the gradient goes to the first x that equals y */
    POOLING_AVERAGE,         /* divided by all taps of a window */
    POOLING_AVERAGE_INSIDE,  /* by those inside x */
    POOLING_AVERAGE_PADDED,  /* by those inside x and its padding, which is the same behind as before */
} PoolingMode;

/* Three spatial axes, outermost first; two are written as {1, h, w} with padding 0 and stride 1 in front. */
typedef struct Pooling {
    PoolingMode mode;
    bool propagate_nan;  /* of the maximum; otherwise NaN is ignored */
    int64_t window[3], padding[3], stride[3];
    double alpha, beta;
    double divide_by; /* averages, if it is not 0 */
    double lowest;    /* a maximum over no number; 0: the lowest finite value of the views' type */
} Pooling;

/* Views have rank 4 or 5 (images, channels, space), one floating type; forward also int8. */
Kernel us_pooling_forward;  /* x, y */
Kernel us_pooling_backward; /* y?, dy, x?, dx: x for the maximum, y for BY_RESULT */

#endif
