#include "kernels/kernels.h"

#include "kernels/map/tile_map.h"
#include "kernels/maths/maths.h"

#define LOOPS "kernels/loss/soft_margin_loss_backward.inc"
#include "tensor/instantiate.inc"

KernelStatus us_soft_margin_loss_backward(const View *views, const void *attributes)
{
    static const TileKernel kernel = TILE_KERNEL(soft_margin_body);
    const SoftMarginLossBackward *parameters = attributes;
    const double numbers[MAP_NUMBERS] = {(double)parameters->factor};
    const View *out = &views[3];
    View inputs[3];
    for (int i = 0; i < 3; i++) {
        inputs[i] = us_view_broadcast(&views[i], out->rank, out->shape);
    }
    us_tile_run(&kernel, numbers, 3, inputs, 1, out, parameters->promoted);
    return KERNEL_OK;
}
