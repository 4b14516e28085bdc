/* The sum of a batch of products. */
#ifndef UNDERSTUDY_MATMUL_SUMMED_H
#define UNDERSTUDY_MATMUL_SUMMED_H

#include "kernels/matmul/matmul.h"

/* views: a [batch, m, k], b [batch, k, n], addend [m, n] or absent, c [m, n]; c = alpha * (sum of all a b) + beta * addend,
 * in float32 or float64, rounded once. */
Kernel us_product_summed; /* attributes ViewProduct */

#endif
