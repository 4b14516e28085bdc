/* Soft margin loss (aclnn-ops 4.1). */
#ifndef UNDERSTUDY_SOFT_MARGIN_LOSS_H
#define UNDERSTUDY_SOFT_MARGIN_LOSS_H

#include "kernels/kernels.h"

/* ln(1 + e^(-x*y)) in fp32, in this order: infinite where the exponential overflows, 0 where it vanishes beside 1.
 * views: x, y (each broadcastable to their joint shape), out: that shape for LOSS_NONE, else one element. Sums are
 * taken in fp64 over blocks of a fixed size. Results are rounded to `promoted` first and then to out's type. */
typedef enum LossReduction { LOSS_NONE, LOSS_MEAN, LOSS_SUM } LossReduction;
typedef struct SoftMarginLoss {
    LossReduction reduction;
    DType promoted;
} SoftMarginLoss;
Kernel us_soft_margin_loss;

#endif
