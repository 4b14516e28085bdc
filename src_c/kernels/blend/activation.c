#include "kernels/blend/activation.h"

#include "kernels/map/formulas.h"
#include "kernels/widened.h"

#include <math.h>

bool us_activation_backward_reads_x(ActivationFunction function)
{
    return function == ACTIVATION_RELU || function == ACTIVATION_CLIPPED_RELU || function == ACTIVATION_SWISH;
}

/* The coefficient is the first number of the formulas that have one: relu has no limit. Then comes whether NaN stays. */
static KernelStatus run(const MapFormula *formula, const Activation *activation, const View *views)
{
    const bool is_relu = activation->function == ACTIVATION_RELU;
    const DType dtype = views[0].dtype;
    const MapCall call = {
        .formula = formula, .compute = dtype, .result = dtype, .inputs = formula->inputs, .outputs = 1, .items = 1,
        .numbers = {{.real = is_relu ? INFINITY : activation->coefficient}, {.real = activation->propagate_nan}},
        .blend = {activation->alpha != 1 || activation->beta != 0, activation->alpha, activation->beta},
    };
    return us_map(views, &call);
}

KernelStatus us_activation_forward(const View *views, const void *attributes)
{
    static const MapFormula *const formulas[] = {
        [ACTIVATION_SIGMOID] = &us_map_sigmoid, [ACTIVATION_RELU] = &us_map_clipped_relu, [ACTIVATION_TANH] = &us_map_tanh,
        [ACTIVATION_CLIPPED_RELU] = &us_map_clipped_relu, [ACTIVATION_ELU] = &us_map_elu_of_alpha,
        [ACTIVATION_SWISH] = &us_map_swish,
    };
    const Activation *activation = attributes;
    if (views[0].dtype == DTYPE_INT8) {
        return us_run_widened(us_activation_forward, 2, views, attributes, activation->beta != 0);
    }
    return run(formulas[activation->function], activation, views);
}

KernelStatus us_activation_backward(const View *views, const void *attributes)
{
    static const MapFormula *const formulas[] = {
        [ACTIVATION_SIGMOID] = &us_map_sigmoid_backward, [ACTIVATION_RELU] = &us_map_clipped_relu_backward,
        [ACTIVATION_TANH] = &us_map_tanh_backward, [ACTIVATION_CLIPPED_RELU] = &us_map_clipped_relu_backward,
        [ACTIVATION_ELU] = &us_map_elu_result_slope, [ACTIVATION_SWISH] = &us_map_swish_slope,
    };
    const Activation *activation = attributes;
    return run(formulas[activation->function], activation, (const View[]){views[1], views[0], views[2]});
}
