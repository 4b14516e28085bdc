/* Matrices turned from both sides and quantized. */
#ifndef UNDERSTUDY_QUANTIZE_FLAT_H
#define UNDERSTUDY_QUANTIZE_FLAT_H

#include "kernels/kernels.h"

/* v = left (x right) of each matrix, in float32; y and scale as us_quantize_rows finds them of all numbers of a matrix, with
 * packed integers and this clip.
 * Views: x [count, m, n], left [m, m], right [n, n], y [count, m, n / 2] (bytes of nibbles.h), scale [count]. */
typedef struct QuantizeFlat {
    float clip;
} QuantizeFlat;
Kernel us_quantize_flat;

#endif
