#include "kernels/kernels.h"

#include "kernels/map/tile_map.h"
#include "kernels/maths/maths.h"

#define LOOPS "kernels/loss/binary_cross_entropy_backward.inc"
#include "tensor/instantiate.inc"

/* The upstream gradient when it is one number: read and divided once, in the type of the arithmetic, before anything is
 * written (dx may be dloss). A double holds either result exactly. */
static double one_upstream(const View *dloss, const View *dx, int64_t divide_by)
{
    double wide;
    us_load_double(&wide, dloss->data, dloss->dtype, 1, 1);
    if (divide_by <= 1) {
        return wide;
    }
    return dx->dtype == DTYPE_FLOAT64 ? wide / (double)divide_by : (double)((float)wide / (float)divide_by);
}

KernelStatus us_binary_cross_entropy_backward(const View *views, const void *attributes)
{
    static const TileKernel plain = TILE_KERNEL(plain_body);
    static const TileKernel weighted = TILE_KERNEL(weighted_body);
    static const TileKernel plain_one = TILE_KERNEL(plain_one_body);
    static const TileKernel weighted_one = TILE_KERNEL(weighted_one_body);
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
        const double numbers[MAP_NUMBERS] = {one_upstream(dloss, dx, divide_by)};
        us_tile_run(has_weight ? &weighted_one : &plain_one, numbers, count, inputs, 1, dx, DTYPE_NONE);
    } else {
        static const double none[MAP_NUMBERS];
        inputs[count++] = *dloss;
        us_tile_run(has_weight ? &weighted : &plain, none, count, inputs, 1, dx, DTYPE_NONE);
    }
    return KERNEL_OK;
}
