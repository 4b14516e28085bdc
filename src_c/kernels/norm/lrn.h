/* Local response normalization across channels, and divisive normalization over space (mcdnn 6.8, 6.10). */
#ifndef UNDERSTUDY_LRN_H
#define UNDERSTUDY_LRN_H

#include "kernels/kernels.h"

enum { LRN_WINDOW_LIMIT = 16 };

typedef struct LocalNorm {
    int32_t window; /* n, up to LRN_WINDOW_LIMIT for the former: (n - 1) / 2 back and the rest ahead, clipped to the tensor */
    double norm_alpha, norm_beta, norm_k;
    double alpha, beta; /* dst = alpha * result + beta * prior */
} LocalNorm;

Kernel us_lrn_forward;       /* x, y: rank 2 or more, axis 1 are the channels */
Kernel us_lrn_backward;      /* x, dy, dx */
Kernel us_divisive_forward;  /* x, means?, y: rank 4 or 5 */
Kernel us_divisive_backward; /* x, means?, dy, dx, dMeans? */

#endif
