/* Products with a quantized weight whose scale and offset come in two parts. */
#ifndef UNDERSTUDY_FACTORED_WEIGHT_H
#define UNDERSTUDY_FACTORED_WEIGHT_H

#include "kernels/kernels.h"

/* y = x (((weight - offset) * scale + added) * factor) + bias, as x ((weight + added / scale - offset) * (factor * scale))
 * in float32. Views: x [m, k], weight [k, n], factor? [1, n], y [m, n], added? [1, n], bias? [1, n]; without factor 1,
 * without added 0. */
typedef struct FactoredWeight {
    float scale, offset;
} FactoredWeight;
Kernel us_factored_weight_product;

#endif
