/* Steps of optimizers: src_c/kernels/map/optimizer.inc. */
#ifndef ASCEND_OPAPI_OPTIMIZER_H
#define ASCEND_OPAPI_OPTIMIZER_H

#include "ascend/opapi/families.h"

/* inputs: weight, gradient, means of the gradient and of its square; numbers: tensors of one element (beta1^(t-1),
 * beta2^(t-1), rate, weight decay, beta1, beta2, eps); bound: what the mean of squares must reach, or NULL. */
aclnnStatus op_adam_w(OpCall *op, Operands inputs, Operands numbers, bool maximize, const Operand *bound,
                      Operands outputs);

typedef struct AdamW {
    double rate, beta1, beta2, weight_decay, eps;
    bool maximize;
} AdamW;
/* largest: the largest mean of squares so far, which is written, or NULL. */
aclnnStatus op_adam_w_v2(OpCall *op, Operands inputs, const Operand *step, AdamW numbers, const Operand *largest,
                         Operands outputs);

/* In place and in float32, item by item. lists: weights, gradients, means of gradients, of their squares; largest: the largest
 * of those so far, or none; scale and found may be absent. */
aclnnStatus op_adam_w_lists(OpCall *op, const Operands *lists, Operands largest, Operands steps, const Operand *scale,
                            const Operand *found, AdamW numbers);

typedef struct EmaAdam {
    double rate, average_decay, beta1, beta2, eps;
    int32_t mode;
    bool corrects_bias;
    double weight_decay;
} EmaAdam;
/* inputs and outputs: also the running mean of the weight. */
aclnnStatus op_ema_adam(OpCall *op, Operands inputs, const Operand *step, EmaAdam numbers, Operands outputs);

/* Each of one element (elements). */
void require_single_numbers(OpCall *op, Operands list);
/* No moments, or one of its type and shape for each weight (length, same-shape, same-dtype). */
void require_moments(OpCall *op, Operands weights, Operands moments);
typedef struct Sgd {
    double weight_decay, moment, rate, dampening;
    bool looks_ahead, maximize, first;
} Sgd;
/* In place and in float32, item by item: gradients over the scale, if there is one, accumulated gradients, if there are any,
 * and weights. */
aclnnStatus op_sgd_lists(OpCall *op, Operands weights, Operands gradients, Operands accumulated, const Operand *scale, Sgd sgd);

/* out[i] = formula(inputs[0][i], inputs[1][i], …; element i of scalars). */
aclnnStatus op_addc_lists(OpCall *op, const MapFormula *formula, int32_t input_count, const Operands *inputs,
                          const Operand *scalars, Operands out);

#endif
