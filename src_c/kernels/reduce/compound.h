/* Kernels made of reductions and maps. */
#ifndef UNDERSTUDY_REDUCE_COMPOUND_H
#define UNDERSTUDY_REDUCE_COMPOUND_H

#include "kernels/map/map.h"
#include "kernels/reduce/reduce.h"

/* A list: the views of an item (input, outputs) follow those of the one before it. */
typedef struct ReduceLists {
    ReduceCall call;
    int32_t items;
} ReduceLists;
Kernel us_reduce_lists;

/* views: inputs, out: out = formula(formula(input 0, input 1), input 2) …, inputs broadcast to out. Computed in the
 * lane's type `compute` and rounded once. The formula's own number is 1. */
typedef struct Fold {
    const MapFormula *formula;
    DType compute;
    int32_t inputs;
} Fold;
Kernel us_fold;

/* views: a, b, out (one element, bool or uint32): whether a and b have one shape and equal elements, of the type `compute`; of
 * uint32, 0 where they have and `code` where not. */
typedef struct Comparison {
    DType compute;
    uint32_t code;
} Comparison;
Kernel us_equal;

/* views: `items` tensors, found, scale (one element each): found becomes 1 if any element is infinite or NaN, then
 * every element is multiplied by scale in float32, whatever was found. */
typedef struct Unscale {
    int32_t items;
} Unscale;
Kernel us_unscale;

/* Gradients of x > 0 ? x : weight * x. views: gradient, x, weight, dx, dweight, all of x's rank; weight and dweight
 * have the size of x along `channel` and 1 elsewhere; channel -1: 1 everywhere. Sums of dweight are in float64. */
typedef struct PreluBackward {
    DType compute;
    int32_t channel;
} PreluBackward;
Kernel us_prelu_backward;

#endif
