/* Gradients of the power function and the logarithm (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"

void ft_power_grad(FtCall *call, const void *Input1, const void *Input2, void *output, int length, double power,
                   double scale, double shift)
{
    ft_length(call, "length", length);
    const Elementwise work = {
        .kernel = &us_ft_power_grad,
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
        .kernel = &us_ft_log_grad,
        .inputs = {{"input0", input0}, {"input1", input1}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, length);
}
