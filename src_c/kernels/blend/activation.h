/* Activations, element by element (mcdnn 6.1). */
#ifndef UNDERSTUDY_ACTIVATION_H
#define UNDERSTUDY_ACTIVATION_H

#include "kernels/kernels.h"

typedef enum ActivationFunction {
    ACTIVATION_SIGMOID,
    ACTIVATION_RELU,
    ACTIVATION_TANH,
    ACTIVATION_CLIPPED_RELU,
    ACTIVATION_ELU,
    ACTIVATION_SWISH,
} ActivationFunction;

/* dst = alpha * result + beta * prior; beta 0 never reads the prior value. */
typedef struct Activation {
    ActivationFunction function;
    bool propagate_nan;    /* of the two relu forms; otherwise NaN counts as 0 */
    double coefficient;    /* upper limit of CLIPPED_RELU, alpha of ELU, b of SWISH */
    double alpha, beta;
} Activation;

/* Whether the derivative is computed from the input x (otherwise from the result y). */
bool us_activation_backward_reads_x(ActivationFunction function);

Kernel us_activation_forward;  /* views: x, y: floating types, or both int8 */
Kernel us_activation_backward; /* views: x or y, dy, dx */

#endif
