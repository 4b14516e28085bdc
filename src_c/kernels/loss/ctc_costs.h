/* CTC of activations or probabilities: costs and gradients in one call, with labels and lengths that may be known only when
 * it runs. */
#ifndef UNDERSTUDY_CTC_COSTS_H
#define UNDERSTUDY_CTC_COSTS_H

#include "kernels/kernels.h"

/* views: values (steps, batch, classes), costs (batch), gradients like values or absent, memory of us_ctc_costs_memory
 * bytes; then labels, one sequence after the other, numbers of labels and numbers of steps, int32, or absent: the
 * attributes have them. Class 0 is the blank. The gradient is that by the activations. A step count that is more than there
 * are, and a label count above `longest`, is a fault. */
typedef struct CtcCosts {
    bool softmax; /* values are activations, else probabilities */
    bool drops_nan; /* gradients of sequences without a path are 0, else NaN */
    int32_t longest;
    int32_t numbers[]; /* of labels, of steps, labels: where the views are absent */
} CtcCosts;
Kernel us_ctc_costs;
size_t us_ctc_costs_memory(int64_t steps, int64_t batch, int64_t classes);

#endif
