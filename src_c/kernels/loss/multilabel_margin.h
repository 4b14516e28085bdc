/* Hinge loss of several labels (aclnn MultilabelMarginLoss). */
#ifndef UNDERSTUDY_MULTILABEL_MARGIN_H
#define UNDERSTUDY_MULTILABEL_MARGIN_H

#include "kernels/loss/negative_log_likelihood.h"

/* views: x (samples, classes), target of the same shape, out (samples, or one element), is_target of x's shape. Labels
 * of a sample are its targets before the first negative one, as often as they stand there; its loss is the sum over labels j and
 * other classes i of max(0, 1 - x[j] + x[i]) / classes, in float64. */
typedef struct MultilabelMargin {
    LossReduction reduction;
} MultilabelMargin;
Kernel us_multilabel_margin;

#endif
