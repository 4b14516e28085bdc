/* Products that an activation follows. */
#ifndef UNDERSTUDY_ACTIVATED_H
#define UNDERSTUDY_ACTIVATED_H

#include "kernels/map/map.h"
#include "kernels/quantize/product.h"

/* The kernel with its result, one of `operands`, in float32, then activated and rounded. The operands' own view of it is
 * changed meanwhile. */
KernelStatus us_activate_result(Kernel *kernel, const void *attributes, View *operands, View *result,
                                const MapFormula *activation);

/* Views: those of us_quantized_product, whose result is activated. */
typedef struct ActivatedProduct {
    QuantizedProduct product;
    const MapFormula *activation;
} ActivatedProduct;
Kernel us_activated_product;

#endif
