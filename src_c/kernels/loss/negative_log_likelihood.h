/* Negative log likelihood of classes (aclnn NLLLoss and NLLLoss2d). */
#ifndef UNDERSTUDY_NEGATIVE_LOG_LIKELIHOOD_H
#define UNDERSTUDY_NEGATIVE_LOG_LIKELIHOOD_H

#include "kernels/kernels.h"

typedef enum LossReduction { LOSS_NONE, LOSS_MEAN, LOSS_SUM } LossReduction;

/* self has its classes along axis 1, or along axis 0 where it has no other; a row is what is left of it, and target has
 * the shape of the rows. With y the row's target and w = weight[y]: the loss of a row is -w * self[y], the total weight
 * the sum of w; the mean is the sum of the losses / the total weight. A row whose target is ignore_index, or no class,
 * counts as nothing. An absent weight is 1. With smoothing e a row's loss is (1 - e) times that and e / classes times
 * the sum of -weight[c] * self[c] over all classes. Products and sums are in float64, in an order that does not depend
 * on the number of threads. */
typedef struct NegativeLogLikelihood {
    LossReduction reduction;
    int64_t ignore_index;
    double smoothing; /* of cross entropy; 0 in us_negative_log_likelihood_backward */
} NegativeLogLikelihood;

/* views: self, target, weight, out (target's shape for LOSS_NONE, else one element), total weight (one element). */
Kernel us_negative_log_likelihood;
/* views: gradient of the loss (target's shape for LOSS_NONE, else one element), target, weight, total weight, out (of
 * self's shape: 0, but the row's -w * gradient at its target, for LOSS_MEAN divided by the total weight). */
Kernel us_negative_log_likelihood_backward;

/* Cross entropy: the same of the logarithms of softmax of logits (rows, classes).
 * views: logits, target, weight, loss, total weight (one element, or absent), logarithms (of the logits' shape). */
Kernel us_cross_entropy;
/* The gradient by the logits, smoothing too. views: gradient of the loss, logarithms, target, weight, out. */
Kernel us_cross_entropy_backward;

#endif
