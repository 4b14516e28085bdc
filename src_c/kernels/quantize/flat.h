/* Matrices turned from both sides and quantized. */
#ifndef UNDERSTUDY_QUANTIZE_FLAT_H
#define UNDERSTUDY_QUANTIZE_FLAT_H

#include "kernels/quantize/quantize.h"

/* v = left (x right) of each matrix, in float32; y and scale as us_quantize_rows finds them of all numbers of a matrix, with
 * packed integers and this clip. Matrices behind those of all groups give 0 and 0; numbers below 0 count as 0.
 * Views: x [count, m, n], left [m, m], right [n, n], y [count, m, n / 2] (bytes of nibbles.h), scale [count], groups? (int64):
 * where each ends, [groups]; how many it has, [groups]; or its number and how many, [groups, 2]. */
typedef enum FlatGroups { FLAT_ENDS, FLAT_COUNTS, FLAT_PAIRS } FlatGroups;
typedef struct QuantizeFlat {
    float clip;
    FlatGroups groups;
} QuantizeFlat;
Kernel us_quantize_flat;

/* v = each run of `size` neighbours of a row, times rotation, in float32; y and scale of each row as us_quantize_rows finds
 * them, of 4 bits where y is int32: eight in each (nibbles.h).
 * Views: x [rows, width], rotation [size, size], y [rows, width] (int8) or [rows, width / 8] (int32), scale [rows]. */
typedef struct QuantizeRotated {
    Rounding rounding;
} QuantizeRotated;
Kernel us_quantize_rotated;

#endif
