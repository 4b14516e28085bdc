/* Normalization of lines: `line` elements that follow each other in row-major order share a mean and a deviation.
 * Layer, group, instance and root-mean-square normalization are this with different lines and parameters, after an
 * addition or before an activation where they are fused. Computed in float32, sums in float64, every result rounded
 * once.
 *
 *     t = factor * x + added + bias
 *     centred: u = (t - mean(t)) / sqrt(variance(t) + epsilon), the population's variance
 *     else     u = t / sqrt(mean(t^2) + epsilon)
 *     v = u * scale + offset
 *     y = v, or v / (1 + e^(-swish * v)) where it is `activated`
 */
#ifndef UNDERSTUDY_NORMALIZE_H
#define UNDERSTUDY_NORMALIZE_H

#include "kernels/kernels.h"

typedef struct Normalize {
    int64_t line;
    /* Element p in row-major order has parameter p / parameter_run % parameter_count. */
    int64_t parameter_run, parameter_count;
    double epsilon, factor, swish;
    bool centred, activated;
    bool scale_from_one; /* forwards: 1 + scale in its place */
} Normalize;

/* x, added, bias, sum and y have one shape (bias by strides of 0), scale and offset parameter_count elements, mean and
 * the reciprocal deviation one per line; the types are any real ones. An output may be the same view as an input, sum
 * and y the same one: then it holds y. The mean of a line without elements is 0, 1/deviation is NaN, as in PyTorch.
 * Views: x, added?, bias?, scale?, offset?, sum (t)?, y, mean?, 1/deviation? */
Kernel us_normalize;

/* The gradients. With g = dy * scale: dx = (g - mean(g) - u * mean(g * u)) / deviation + passed; mean(g) only where
 * `centred`; first is factor times that, second that itself. With an activation its slope is multiplied with dy first.
 * dscale and doffset are the sums of dy * u and dy over all elements that have the parameter.
 * Views: dy, x, added?, passed?, scale?, offset? (read with an activation only), mean (centred only), 1/deviation,
 * first?, second?, dscale?, doffset? */
Kernel us_normalize_backward;

#endif
