/* Kernels made of reductions and maps. */
#ifndef UNDERSTUDY_REDUCE_COMPOUND_H
#define UNDERSTUDY_REDUCE_COMPOUND_H

#include "kernels/reduce/reduce.h"

/* A list: the views of an item (input, outputs) follow those of the one before it. */
typedef struct ReduceLists {
    ReduceCall call;
    int32_t items;
} ReduceLists;
Kernel us_reduce_lists;

/* views: a, b, out (one element): whether a and b have one shape and equal elements, of the type `compute`. */
typedef struct Comparison {
    DType compute;
} Comparison;
Kernel us_equal;

/* views: `items` tensors, found, scale (one element each): found becomes 1 if any element is infinite or NaN, then every
 * element is multiplied by scale in float32, whatever was found. */
typedef struct Unscale {
    int32_t items;
} Unscale;
Kernel us_unscale;

#endif
