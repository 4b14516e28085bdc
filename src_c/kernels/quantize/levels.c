#include "kernels/quantize/levels.h"

#include "kernels/maths/maths.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <math.h>
#include <string.h>

typedef struct Step {
    float size, zero_point, inverse;
    bool by_inverse; /* faster than a division; neither it nor a remainder comes near the ends of the range */
} Step;

#define LOOPS_WITHOUT_BFLOAT
#define LOOPS "kernels/quantize/levels.inc"
#include "tensor/instantiate.inc"

typedef void Quantise(const void *x, int8_t *out, int64_t count, int64_t follow, Step step);

void us_quantise_levels(const void *x, int8_t *out, int64_t count, int64_t follow, DType dtype, float step, float zero_point)
{
    const bool has_inverse = fabsf(step) >= 0x1p-100f && fabsf(step) <= 0x1p100f;
    const Step values = {step, zero_point, 1 / step, has_inverse && !us_divides_fast()};
    Quantise *const quantise = dtype == DTYPE_FLOAT16 ? quantise_half : quantise_float;
    quantise(x, out, count, follow, values);
}
