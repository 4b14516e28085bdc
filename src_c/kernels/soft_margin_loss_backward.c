#include "kernels/kernels.h"

#include "kernels/exponential.h"
#include "tensor/clones.h"
#include "tensor/tile.h"

/* aclnn-ops 1.2, in the order in which the vendor's kernel evaluates it. Where e^(-xy) overflows the quotient is
 * inf/inf = NaN (1.5): no rewriting into a stable sigmoid. */
US_ALWAYS_INLINE float soft_margin_float(float g, float x, float y, float factor)
{
    float n = -y;
    float e = exp_float(x * n);
    float q = e / (e + 1.0f);
    return n * q * g * factor;
}

US_ALWAYS_INLINE double soft_margin_double(double g, double x, double y, double factor)
{
    double n = -y;
    double e = exp_double(x * n);
    double q = e / (e + 1.0);
    return n * q * g * factor;
}

#define BODY body_float
#define ELEMENT float
#define COMPUTE float
#define FUNCTION soft_margin_float
#define READ(element) (element)
#define WRITE(value) (value)
#include "kernels/soft_margin_loss_backward.inc"

#define BODY body_double
#define ELEMENT double
#define COMPUTE double
#define FUNCTION soft_margin_double
#define READ(element) (element)
#define WRITE(value) (value)
#include "kernels/soft_margin_loss_backward.inc"

#define BODY body_half
#define ELEMENT uint16_t
#define COMPUTE float
#define FUNCTION soft_margin_float
#define READ(element) half_to_float(element)
#define WRITE(value) float_to_half(value)
#include "kernels/soft_margin_loss_backward.inc"

#define BODY body_bfloat
#define ELEMENT uint16_t
#define COMPUTE float
#define FUNCTION soft_margin_float
#define READ(element) bfloat_to_float(element)
#define WRITE(value) float_to_bfloat(value)
#include "kernels/soft_margin_loss_backward.inc"

KernelStatus us_soft_margin_loss_backward(const View *views, const void *attributes)
{
    static const TileKernel kernel = {body_float, body_double, body_half, body_bfloat};
    const SoftMarginLossBackward *parameters = attributes;
    const View *out = &views[3];
    View inputs[3];
    for (int i = 0; i < 3; i++) {
        inputs[i] = us_view_broadcast(&views[i], out->rank, out->shape);
    }
    us_tile_run(&kernel, parameters, 3, inputs, 1, out, parameters->promoted);
    return KERNEL_OK;
}
