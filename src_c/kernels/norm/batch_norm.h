/* Normalization over the batch: training, inference, backward (mcdnn 6.2). */
#ifndef UNDERSTUDY_BATCH_NORM_H
#define UNDERSTUDY_BATCH_NORM_H

#include "kernels/kernels.h"

typedef enum NormActivation { NORM_NO_ACTIVATION, NORM_RELU, NORM_SWISH } NormActivation;

/* What the view after the mean holds: what the kernel lists there, or always the variance, or 1/std. */
typedef enum NormSpread { SPREAD_AS_LISTED, SPREAD_VARIANCE, SPREAD_INVERSE } NormSpread;

typedef struct BatchNorm {
    bool per_activation; /* statistics over axis 0 only; otherwise over all axes but 1 */
    NormActivation activation;
    bool propagate_nan; /* of NORM_RELU */
    double swish_beta;
    double alpha, beta;             /* y, dx, dz = alpha * result + beta * prior */
    double alpha_param, beta_param; /* the same for dScale and dBias */
    double factor;                  /* weight of the new value in the running statistics; 1 does not read the old one */
    double epsilon;
    NormSpread spread;
    bool constant; /* backward: mean and variance do not depend on x */
} BatchNorm;

/* Views may be absent where it says so. Parameters have the size of the tensors on the axes that are kept, 1 elsewhere.
 * The activation mask is one bit per element, rows of whole bytes: us_batch_norm_mask_bytes. With an activation the
 * tensors must be packed with the channels last. Any output may be any input. */
/* x, z?, y?, scale?, bias?, running mean?, running variance?, saved mean?, saved 1/std?, mask? */
Kernel us_batch_norm_training;
Kernel us_batch_norm_inference; /* x, z?, y, scale?, bias?, mean, variance */
Kernel us_batch_norm_backward;  /* x, dy, dz?, dx?, scale?, dScale?, dBias?, mean?, 1/std?, mask? */

/* The parts of a batch norm over several devices. */
Kernel us_batch_norm_totals; /* x, sum of x, sum of x^2 */
/* With given statistics; x, dy, mean, 1/std, sum of dy?, sum of dy * (x - mean)?, dScale?, dBias? */
Kernel us_batch_norm_slopes;
/* dx from the sums over all devices: x, dy, dx, scale?, mean, 1/std, sum of dy, sum of dy * (x - mean), elements of a
 * group, whose sum counts */
Kernel us_batch_norm_from_sums;

int64_t us_batch_norm_mask_bytes(int32_t rank, const int64_t *sizes, bool per_activation);

#endif
