/* Local response normalization over windows of any width (kernels/norm/lrn.h has those of a descriptor). */
#ifndef UNDERSTUDY_WIDE_LRN_H
#define UNDERSTUDY_WIDE_LRN_H

#include "kernels/kernels.h"

/* y[r,c] = x[r,c] * (k + alpha * sum of x[r,j]^2)^-beta, j within `radius` of c; row-major [rows, channels]. Computed in
 * float64, rounded once; y may be x. 2 * radius + 1 can be counted. */
typedef struct WideLrn {
    const void *x;
    void *y;
    DType dtype;
    int64_t rows, channels, radius;
    double alpha, beta, k;
} WideLrn;
KernelStatus us_wide_lrn(const WideLrn *lrn);

#endif
