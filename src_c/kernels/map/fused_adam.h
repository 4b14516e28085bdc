/* Steps of AdamW over a list, with what a scaler of losses found. */
#ifndef UNDERSTUDY_FUSED_ADAM_H
#define UNDERSTUDY_FUSED_ADAM_H

#include "kernels/kernels.h"

/* The formula fused_adam_w in float32, item by item; nothing where found is 1. Views: found, scale (one number each, or
 * absent: 0 and 1), and for each item: its step (one number), weight, gradient, m, v and, with amsgrad, the largest v so far;
 * all but the gradient are written. Numbers are float32 or int64. */
typedef struct FusedAdamW {
    double rate, beta1, beta2, weight_decay, eps;
    bool maximize, amsgrad;
    int32_t items;
} FusedAdamW;
Kernel us_fused_adam_w;

#endif
