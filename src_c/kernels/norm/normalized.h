/* Normalization, and what is made of its result at once. */
#ifndef UNDERSTUDY_NORMALIZED_H
#define UNDERSTUDY_NORMALIZED_H

#include "kernels/norm/normalize.h"

/* Views: those of us_normalize, with a y; then the same numbers once more, as y rounded them. */
Kernel us_normalize_and_copy;

/* y = v * (1 + factor) + summand, v as us_normalize finds it, in float32.
 * Views: x, scale?, offset?, factor, summand (of x's shape), y, mean?, 1/deviation? as those of us_normalize. */
Kernel us_normalize_and_modulate;
/* Its gradients: those of us_normalize_backward for dy * (1 + factor); of factor and summand, whose lines are one for each
 * sample, all axes but the last two, the sums of dy * v and dy over the lines of the sample, in double.
 * Views: dy, x, scale?, offset?, factor (of x's shape), mean, 1/deviation, dx?, dfactor? and dsummand? (a line for each
 * sample), dscale?, doffset?. */
Kernel us_normalize_and_modulate_backward;
/* The same y, not rounded, quantized as by us_quantize_rows.
 * Views: x, scale?, offset?, factor, summand as there; smooth? [last size], y, and each row's scale, step. */
Kernel us_normalize_modulate_and_quantize;

/* v as us_normalize finds it, in float32, and y = round(v / step), as us_quantize does it.
 * Views: x, scale, offset, mean, 1/deviation as those of us_normalize; step (of x's shape), y. */
Kernel us_normalize_groups_and_quantize;

/* v as us_normalize finds it, in float32, and `plain`, v without the offset; then, twice, where there is a y with elements,
 * what us_quantize makes of v with scale and zero, or, `by_rows`, us_quantize_rows with scale as smooth, and each row's scale
 * in step.
 * Views: x, added?, bias?, scale?, offset?, sum?, plain? as those of us_normalize; then twice: scale? and zero? (of x's
 * shape, or with `by_rows` of the last axis), y?, step?. */
typedef struct NormalizeAndQuantize {
    Normalize norm;
    bool by_rows, divides, packed; /* v / scale in place of v * scale; y as in nibbles.h */
    bool whole;                    /* `plain` is v */
} NormalizeAndQuantize;
Kernel us_normalize_and_quantize;

#endif
