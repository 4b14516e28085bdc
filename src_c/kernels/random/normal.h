/* Draws from the normal distribution, by number: draw i of a seed is the same wherever and however many are made. */
#ifndef UNDERSTUDY_RANDOM_NORMAL_H
#define UNDERSTUDY_RANDOM_NORMAL_H

#include "tensor/view.h"

/* out[i] = mean + deviation * draw i of the seed, for i = begin … end-1; Box-Muller in float64, rounded once. */
typedef struct NormalDraws {
    void *out;
    DType dtype;
    uint64_t seed;
    double mean, deviation;
} NormalDraws;
void us_normal_draws(const NormalDraws *draws, int64_t begin, int64_t end);

#endif
