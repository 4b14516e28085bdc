/* Tensors of random numbers. Draw i of a seed and an offset is the same for any number of threads. */
#ifndef UNDERSTUDY_RANDOM_DRAWS_H
#define UNDERSTUDY_RANDOM_DRAWS_H

#include "kernels/kernels.h"
#include "kernels/random/philox.h"

typedef enum Distribution {
    DRAW_UNIFORM,   /* of [a, b); a where b is not above it. For integers the real number is truncated. */
    DRAW_NORMAL,    /* mean a, standard deviation b */
    DRAW_TRUNCATED_NORMAL, /* the same, but within two standard deviations; computed in float32 */
    DRAW_EXPONENTIAL, /* rate a; computed in float32 */
    DRAW_BERNOULLI, /* 1 with probability a, else 0 */
    DRAW_INTEGER    /* from … from + range - 1; range 0 stands for 2^64 */
} Distribution;

typedef struct Draws {
    Distribution distribution;
    RandomStream stream;
    double a, b;
    int64_t from;
    uint64_t range;
} Draws;

/* views: out, seed, offset, a, b. seed: one integer instead of the stream's; offset: one that is added to the stream's;
 * a and b: tensors instead of the numbers, which broadcast to out (of DRAW_BERNOULLI: taken in row-major order, and out
 * keeps its elements beyond the last one). All but out may be absent. Elements in row-major order of out. */
Kernel us_draws;

/* A mask of dropout (kernels/random/dropout.h). views: mask, of one dimension. Bits of elements are 1 but with probability
 * `drop`, the others 0. */
typedef struct DropoutMask {
    RandomStream stream;
    double drop;
    int64_t elements;
} DropoutMask;
Kernel us_dropout_mask;

/* views: out, seed, offset, a, b, as for us_draws, but a and b are one number each; with `bits`: the mask of so many
 * elements, each of which is dropped with probability a. */
typedef struct DrawsWith {
    Draws draws;
    int64_t bits; /* 0: no mask */
} DrawsWith;
Kernel us_draws_with;

/* views: out, of one dimension: a permutation of 0 … size - 1. */
Kernel us_permutation; /* RandomStream */

/* views: weights (rows, classes), out (rows, samples), int64, seed, offset (as above). Draws classes with probabilities
 * proportional to the weights; a weight that is not above 0 has probability 0. Without replacement those come last, in
 * order; with it, a row without weight gives class 0. */
typedef struct Multinomial {
    RandomStream stream;
    bool replaces;
} Multinomial;
Kernel us_multinomial;

/* The stream of a call whose seed and offset may be tensors. */
RandomStream us_stream_of(RandomStream stream, const View *seed, const View *offset);

#endif
