#include "kernels/kernels.h"

#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/tile.h"

/* ft-dsp 3.2, every operation rounded. eps is the fp32 (fp64) value nearest 1e-12. */
US_ALWAYS_INLINE float gradient_float(float x, float y, float w, float d)
{
    return w * (x - y) / (x * (1.0f - x) + 1e-12f) * d;
}

US_ALWAYS_INLINE double gradient_double(double x, double y, double w, double d)
{
    return w * (x - y) / (x * (1.0 - x) + 1e-12) * d;
}

/* The upstream gradient when it is one number: read and divided once, before anything is written (dx may be dloss). */
typedef struct Upstream {
    float single;
    double twofold;
} Upstream;

#define BODY(form) form##_float
#define ELEMENT float
#define FUNCTION gradient_float
#define UPSTREAM single
#define READ(element) (element)
#define WRITE(value) (value)
#include "kernels/binary_cross_entropy_backward.inc"

#define BODY(form) form##_double
#define ELEMENT double
#define FUNCTION gradient_double
#define UPSTREAM twofold
#define READ(element) (element)
#define WRITE(value) (value)
#include "kernels/binary_cross_entropy_backward.inc"

#define BODY(form) form##_half
#define ELEMENT uint16_t
#define FUNCTION gradient_float
#define UPSTREAM single
#define READ(element) half_to_float(element)
#define WRITE(value) float_to_half(value)
#include "kernels/binary_cross_entropy_backward.inc"

#define BODY(form) form##_bfloat
#define ELEMENT uint16_t
#define FUNCTION gradient_float
#define UPSTREAM single
#define READ(element) bfloat_to_float(element)
#define WRITE(value) float_to_bfloat(value)
#include "kernels/binary_cross_entropy_backward.inc"

static Upstream upstream(const View *dloss, int64_t divide_by)
{
    Upstream d;
    us_load_float(&d.single, dloss->data, dloss->dtype, 1, 1);
    us_load_double(&d.twofold, dloss->data, dloss->dtype, 1, 1);
    if (divide_by > 1) {
        d.single /= (float)divide_by;
        d.twofold /= (double)divide_by;
    }
    return d;
}

KernelStatus us_binary_cross_entropy_backward(const View *views, const void *attributes)
{
    static const TileKernel plain = {plain_float, plain_double, plain_half, plain_bfloat};
    static const TileKernel weighted = {weighted_float, weighted_double, weighted_half, weighted_bfloat};
    static const TileKernel plain_one = {plain_one_float, plain_one_double, plain_one_half, plain_one_bfloat};
    static const TileKernel weighted_one = {weighted_one_float, weighted_one_double, weighted_one_half,
                                            weighted_one_bfloat};
    const int64_t divide_by = ((const BinaryCrossEntropyBackward *)attributes)->divide_by;
    const View *weight = &views[2], *dloss = &views[3], *dx = &views[4];
    if (us_view_elements(dx) <= 0) {
        return KERNEL_OK;
    }
    const bool has_weight = !us_view_is_absent(weight);
    const bool one_gradient = us_view_elements(dloss) == 1 || (dloss->rank == 1 && dloss->strides[0] == 0);
    View inputs[4] = {views[0], views[1]};
    int count = 2;
    if (has_weight) {
        inputs[count++] = *weight;
    }
    if (one_gradient) {
        Upstream d = upstream(dloss, divide_by);
        us_tile_run(has_weight ? &weighted_one : &plain_one, &d, count, inputs, 1, dx, DTYPE_NONE);
    } else {
        inputs[count++] = *dloss;
        us_tile_run(has_weight ? &weighted : &plain, NULL, count, inputs, 1, dx, DTYPE_NONE);
    }
    return KERNEL_OK;
}
