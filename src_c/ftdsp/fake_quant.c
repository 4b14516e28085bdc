/* Fake quantisation (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"

#include <math.h>

/* Moves the range so that 0 is exactly one of the levels. */
static void nudge(double lowest, double highest, int quant_min, int quant_max, double *numbers)
{
    const double step = (highest - lowest) / ((double)quant_max - quant_min);
    double zero = floor(quant_min - lowest / step + 0.5);
    zero = zero < quant_min ? quant_min : zero > quant_max ? quant_max : zero;
    numbers[0] = (quant_min - zero) * step;
    numbers[1] = (quant_max - zero) * step;
    numbers[2] = step;
}

void ft_fake_quant_with_min_max_vars(FtCall *call, const void *src, double min_val, double max_val, void *output,
                                     int length, int quant_min, int quant_max, bool symmetric)
{
    ft_length(call, "length", length);
    ft_require(call, min_val < max_val, "max_val", "range", FT_BAD_ATTRIBUTE, "max_val %g is not above min_val %g",
               max_val,
               min_val);
    ft_require(call, quant_min < quant_max, "quant_max", "range", FT_BAD_ATTRIBUTE,
               "quant_max %d is not above quant_min %d",
               quant_max, quant_min);
    Elementwise work = {
        .formula = &us_map_fake_quantise,
        .inputs = {{"src", src}},
        .outputs = {{"output", output}},
    };
    if (ft_ok(call)) {
        const double magnitude = fabs(min_val) > fabs(max_val) ? fabs(min_val) : fabs(max_val);
        nudge(symmetric ? -magnitude : min_val, symmetric ? magnitude : max_val, quant_min, quant_max, work.numbers);
    }
    ft_elementwise(call, &work, length);
}
