/* Gradients of the power function and the logarithm (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"

/* Powers that need no logarithm. */
static const MapFormula *formula_of(double power)
{
    static const struct {
        double power;
        const MapFormula *formula;
    } simple[] = {{1, &us_map_power_1_backward}, {2, &us_map_power_2_backward}, {3, &us_map_power_3_backward},
                  {1.5, &us_map_power_3_halves_backward}, {0.5, &us_map_power_half_backward},
                  {-1, &us_map_power_minus_1_backward}};
    for (size_t k = 0; k < sizeof simple / sizeof *simple; k++) {
        if (simple[k].power == power) {
            return simple[k].formula;
        }
    }
    return &us_map_power_backward;
}

void ft_power_grad(FtCall *call, const void *Input1, const void *Input2, void *output, int length, double power,
                   double scale, double shift)
{
    ft_length(call, "length", length);
    const Elementwise work = {
        .formula = formula_of(power),
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
        .formula = &us_map_div,
        .inputs = {{"input0", input0}, {"input1", input1}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, length);
}
