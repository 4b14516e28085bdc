/* Weights of which two of every four integers are kept. */
#ifndef UNDERSTUDY_SPARSE_H
#define UNDERSTUDY_SPARSE_H

#include "kernels/kernels.h"

/* Integers 2 g and 2 g + 1 of a row of `kept` are from elements 4 g to 4 g + 3 of a row of the weight: the first is element
 * 4 g + place, the second element 4 g + 1 + place. Places are of 2 bits, 0, 1 or 2, four in a byte, the first in the lowest
 * bits; that of a kept 0 does not count. Another place, and one element for two numbers, are faults; elements behind the
 * last are not multiplied.
 * out = (x weight^T) * row_scale * column_scale + bias, as us_quantized_product has it. Views: x [m, k] (int8), kept
 * [n, two for every four of k] (int8), places [n, a byte for four] (uint8), out [m, n], column_scale [1, n],
 * row_scale [m, 1], bias [1, n], or absent. */
Kernel us_sparse_product;

#endif
