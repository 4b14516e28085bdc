#include "kernels/quantize/fake.h"

#include "kernels/map/formulas.h"

/* As the two results are written, so that out may be x. */
enum { X, SCALE, ZERO, OUT, INSIDE };

static KernelStatus map(const MapFormula *formula, int32_t inputs, const FakeQuantize *how, const View *views, const View *to)
{
    const MapCall call = {.formula = formula, .compute = DTYPE_FLOAT32, .inputs = inputs, .outputs = 1, .items = 1,
                          .result = formula->result == MAP_BOOL ? DTYPE_BOOL : DTYPE_FLOAT32,
                          .numbers = {{.real = how->least}, {.real = how->most}}};
    View operands[4];
    for (int32_t i = 0; i < inputs; i++) {
        operands[i] = views[i];
    }
    operands[inputs] = *to;
    return us_map(operands, &call);
}

KernelStatus us_fake_quantize(const View *views, const void *attributes)
{
    FakeQuantize how = *(const FakeQuantize *)attributes;
    if (how.off) {
        how.least = 1; /* what fill fills with */
        const KernelStatus status = map(&us_map_fill, 1, &how, views, &views[INSIDE]);
        return status != KERNEL_OK ? status : map(&us_map_copy, 1, &how, views, &views[OUT]);
    }
    const KernelStatus status = map(&us_map_in_levels, 3, &how, views, &views[INSIDE]);
    return status != KERNEL_OK ? status : map(&us_map_nearest_level, 3, &how, views, &views[OUT]);
}
