#include "kernels/blend/activation.h"

#include "kernels/axes.h"
#include "kernels/map/tile_map.h"
#include "kernels/maths/maths.h"
#include "kernels/widened.h"

bool us_activation_backward_reads_x(ActivationFunction function)
{
    return function == ACTIVATION_RELU || function == ACTIVATION_CLIPPED_RELU || function == ACTIVATION_SWISH;
}

/* The kernels' numbers. */
enum { ALPHA, BETA, COEFFICIENT, PROPAGATE };

#define LOOPS "kernels/blend/activation_formulas.inc"
#include "tensor/instantiate.inc"

/* The output is one more input where its old value counts. */
static KernelStatus run(const TileKernel *kernel, const Activation *activation, int inputs, const View *views)
{
    const double numbers[MAP_NUMBERS] = {activation->alpha, activation->beta, activation->coefficient,
                                         activation->propagate_nan};
    View operands[] = {views[0], views[1], views[inputs], views[inputs]};
    us_axes_in_memory_order(4, operands);
    us_tile_run(kernel, numbers, inputs + (activation->beta != 0), operands, 1, &operands[3], DTYPE_NONE);
    return KERNEL_OK;
}

KernelStatus us_activation_forward(const View *views, const void *attributes)
{
    static const TileKernel kernels[] = {
        [ACTIVATION_SIGMOID] = TILE_KERNEL(sigmoid_body), [ACTIVATION_RELU] = TILE_KERNEL(relu_body),
        [ACTIVATION_TANH] = TILE_KERNEL(tanh_body), [ACTIVATION_CLIPPED_RELU] = TILE_KERNEL(clipped_relu_body),
        [ACTIVATION_ELU] = TILE_KERNEL(elu_body), [ACTIVATION_SWISH] = TILE_KERNEL(swish_body),
    };
    const Activation *activation = attributes;
    if (views[0].dtype == DTYPE_INT8) {
        return us_run_widened(us_activation_forward, 2, views, attributes, activation->beta != 0);
    }
    return run(&kernels[activation->function], activation, 1, views);
}

KernelStatus us_activation_backward(const View *views, const void *attributes)
{
    static const TileKernel kernels[] = {
        [ACTIVATION_SIGMOID] = TILE_KERNEL(sigmoid_slope_body), [ACTIVATION_RELU] = TILE_KERNEL(relu_slope_body),
        [ACTIVATION_TANH] = TILE_KERNEL(tanh_slope_body),
        [ACTIVATION_CLIPPED_RELU] = TILE_KERNEL(clipped_relu_slope_body),
        [ACTIVATION_ELU] = TILE_KERNEL(elu_slope_body), [ACTIVATION_SWISH] = TILE_KERNEL(swish_slope_body),
    };
    const Activation *activation = attributes;
    return run(&kernels[activation->function], activation, 2, views);
}
