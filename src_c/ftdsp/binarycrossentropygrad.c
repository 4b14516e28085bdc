#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"
#include "tensor/convert.h"

enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM }; /* ft-dsp 3.3: not nnacl's numbering */

/* One gradient of all elements: read, and divided in the type of the arithmetic, before anything is written: dx may lie on
 * top of it (ft-dsp 3.4). A double holds either result exactly. */
static double one_gradient(const FtCall *call, const void *dloss, int divisor)
{
    double wide;
    us_load_double(&wide, dloss, call->dtype, 1, 1);
    return call->dtype == DTYPE_FLOAT64 ? wide / divisor : (double)((float)wide / (float)divisor);
}

void ft_binarycrossentropygrad(FtCall *call, int input_size, int reduction, const void *input_x, const void *input_y,
                               const void *weight, const void *dloss, void *dx, int weight_defined)
{
    const DType dtype = call->dtype;
    ft_require(call, input_size >= 0, "input_size", "negative", FT_BAD_SIZE, "input_size is %d", input_size);
    ft_require(call, reduction >= REDUCTION_NONE && reduction <= REDUCTION_SUM, "reduction", "range", FT_BAD_ATTRIBUTE,
               "reduction is %d; 0 is none, 1 mean, 2 sum", reduction);
    if (!ft_ok(call) || input_size == 0) {
        return;
    }
    weight = weight_defined ? weight : NULL;
    ft_operand(call, "input_x", input_x, input_size, dtype);
    ft_operand(call, "input_y", input_y, input_size, dtype);
    ft_operand(call, "weight", weight, weight_defined ? input_size : 0, dtype);
    ft_operand(call, "dloss", dloss, reduction == REDUCTION_NONE ? input_size : 1, dtype);
    ft_operand(call, "dx", dx, input_size, dtype);
    ft_same_or_apart(call, "dx", dx, "input_x", input_x, input_size, dtype);
    ft_same_or_apart(call, "dx", dx, "input_y", input_y, input_size, dtype);
    ft_same_or_apart(call, "dx", dx, "weight", weight, weight_defined ? input_size : 0, dtype);
    ft_same_or_apart(call, "dx", dx, "dloss", dloss, reduction == REDUCTION_NONE ? input_size : 0, dtype);
    if (ft_ok(call)) {
        const bool everywhere = reduction != REDUCTION_NONE;
        Elementwise work = {
            .formula = weight ? &us_map_finite_cross_entropy_backward_weighted : &us_map_finite_cross_entropy_backward,
            .inputs = {{"input_x", input_x}, {"input_y", input_y}, {"weight", weight}},
            .outputs = {{"dx", dx}},
        };
        work.inputs[weight ? 3 : 2] = (Operand){"dloss", dloss};
        if (everywhere) {
            work.formula = weight ? &us_map_finite_cross_entropy_slope_weighted : &us_map_finite_cross_entropy_slope;
            work.numbers[0] = one_gradient(call, dloss, reduction == REDUCTION_MEAN ? input_size : 1);
        }
        ft_elementwise(call, &work, input_size);
    }
}
