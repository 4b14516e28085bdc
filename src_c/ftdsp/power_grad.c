/* Gradients of the power function and the logarithm (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"

/* Powers that need no logarithm. */
static const TileKernel *kernel_of(double power)
{
    static const struct {
        double power;
        const TileKernel *kernel;
    } simple[] = {{1, &us_array_power_grad_1}, {2, &us_array_power_grad_2}, {3, &us_array_power_grad_3},
                  {1.5, &us_array_power_grad_3_halves}, {0.5, &us_array_power_grad_half}, {-1, &us_array_power_grad_minus_1}};
    for (size_t k = 0; k < sizeof simple / sizeof *simple; k++) {
        if (simple[k].power == power) {
            return simple[k].kernel;
        }
    }
    return &us_array_power_grad;
}

void ft_power_grad(FtCall *call, const void *Input1, const void *Input2, void *output, int length, double power,
                   double scale, double shift)
{
    ft_length(call, "length", length);
    const Elementwise work = {
        .kernel = kernel_of(power),
        .numbers = {power, scale, shift},
        .inputs = {{"Input1", Input1}, {"Input2", Input2}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, length);
}

void ft_log_grad(FtCall *call, const void *input0, const void *input1, void *output, int length)
{
    ft_length(call, "length", length);
    const Elementwise work = {
        .kernel = &us_array_log_grad,
        .inputs = {{"input0", input0}, {"input1", input1}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, length);
}
