/* Cross entropy of logits = input . weight^T that are never stored as a whole. Shapes: BT tokens, H features, V
 * entries of the vocabulary (or of this device's part of it). input and weight are float16 or bfloat16; logits stay
 * in fp32. */
#ifndef UNDERSTUDY_FUSED_CROSS_ENTROPY_H
#define UNDERSTUDY_FUSED_CROSS_ENTROPY_H

#include "kernels/kernels.h"

/* Q[i,v] = (P[i,v] - [v == target_i, unless masked]) * grad_i, rounded to input's type; inputGrad = Q . weight,
 * weightGrad = Q^T . input, each rounded once (aclnn-ops 3.2). P is softmax when given, else exp(logits - logitsMax)
 * / sumExp. views: grad [BT], input [BT,H], weight [V,H], mask (bool [BT], or uint8 bits, lowest first), target [BT]
 * (outside 0 … V-1: no subtraction), logitsMax [BT], sumExp [BT], softmax [BT,V], inputGrad [BT,H], weightGrad
 * [V,H]. Not both of softmax and logitsMax/sumExp are absent. No attributes. */
Kernel us_fused_cross_entropy_backward;

/* Bytes of scratch memory that it takes when inputGrad is apart from what it reads: below BT x V x 4 / 8 wherever the
 * formula in its file allows it. */
size_t us_fused_cross_entropy_backward_scratch(int64_t tokens, int64_t features, int64_t vocabulary);

/* logitsMax, sumExp of exp(logits - max), predicted = logits[i, maskedTarget_i] - max, or 0 when masked; mask_i:
 * target_i is outside start … end-1; maskedTarget = target - start, or 0 (aclnn-ops 4.3). views: input, weight,
 * target [BT], logitsMax, sumExp, predicted [BT], mask (uint8 bits, lowest first, those beyond BT 1), maskedTarget
 * [BT], logits [BT,V] or absent. */
typedef struct OnlineMaxSum {
    int64_t start, end;
} OnlineMaxSum;
Kernel us_fused_linear_online_max_sum;

/* loss = ln(sumExp) - predicted; softmax = exp(logits - max) * (1 / sumExp) (aclnn-ops 4.4). views: logitsMax,
 * sumExp, predicted [BT], logits [BT,V] or absent, loss [BT], softmax [BT,V] or absent. No attributes. */
Kernel us_fused_cross_entropy_loss;

#endif
