#include "kernels/activation.h"

#include "kernels/axes.h"
#include "kernels/expm1.h"
#include "tensor/clones.h"
#include "tensor/tile.h"

bool us_activation_backward_reads_x(ActivationFunction function)
{
    return function == ACTIVATION_RELU || function == ACTIVATION_CLIPPED_RELU || function == ACTIVATION_SWISH;
}

#define COMPUTE float
#define NAME(name) name##_float
#include "kernels/activation_functions.inc"
#undef COMPUTE
#undef NAME

#define COMPUTE double
#define NAME(name) name##_double
#include "kernels/activation_functions.inc"
#undef COMPUTE
#undef NAME

#define COMPUTE float
#define NAME(name) name##_float

#define BODY(name) name##_of_float
#define ELEMENT float
#define READ(element) (element)
#define WRITE(value) (value)
#include "kernels/activation_body.inc"

#define BODY(name) name##_of_half
#define ELEMENT uint16_t
#define READ(element) half_to_float(element)
#define WRITE(value) float_to_half(value)
#include "kernels/activation_body.inc"

#define BODY(name) name##_of_bfloat
#define ELEMENT uint16_t
#define READ(element) bfloat_to_float(element)
#define WRITE(value) float_to_bfloat(value)
#include "kernels/activation_body.inc"

#undef COMPUTE
#undef NAME
#define COMPUTE double
#define NAME(name) name##_double

#define BODY(name) name##_of_double
#define ELEMENT double
#define READ(element) (element)
#define WRITE(value) (value)
#include "kernels/activation_body.inc"

/* The output is one more input where its old value counts. */
static KernelStatus run(const TileKernel *kernel, const Activation *activation, int inputs, const View *views)
{
    View operands[] = {views[0], views[1], views[inputs], views[inputs]};
    us_axes_in_memory_order(4, operands);
    us_tile_run(kernel, activation, inputs + (activation->beta != 0), operands, 1, &operands[3], DTYPE_NONE);
    return KERNEL_OK;
}

KernelStatus us_activation_forward(const View *views, const void *attributes)
{
    static const TileKernel kernel = {forward_of_float, forward_of_double, forward_of_half, forward_of_bfloat};
    return run(&kernel, attributes, 1, views);
}

KernelStatus us_activation_backward(const View *views, const void *attributes)
{
    static const TileKernel kernel = {backward_of_float, backward_of_double, backward_of_half, backward_of_bfloat};
    return run(&kernel, attributes, 2, views);
}
