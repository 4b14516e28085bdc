/* Losses and their gradients (ft-dsp 3.7, 4); the gradient of the binary cross entropy has a file of its own. */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"
#include "kernels/loss/mapped_sum.h"

enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM }; /* ft-dsp 3.3: not nnacl's numbering */

static void reduced_loss(FtCall *call, const Elementwise *work, int64_t count, int reduction, void *tmp_loss)
{
    const Operand *loss = &work->outputs[0];
    View views[ELEMENTWISE_INPUTS + 1];
    const int inputs = work->formula->inputs;
    for (int k = 0; k < inputs; k++) {
        const Operand *input = &work->inputs[k];
        views[k] = us_view_contiguous((void *)input->data, call->dtype, 1, &count);
        ft_operand(call, input->name, input->data, count, call->dtype);
    }
    views[inputs] = us_view_contiguous((void *)loss->data, call->dtype, 0, NULL);
    ft_operand(call, loss->name, loss->data, 1, call->dtype);
    ft_operand(call, "tmp_loss", tmp_loss, count, call->dtype); /* the chip's scratch; the sums here need none of it */
    if (ft_ok(call)) {
        MappedSum sum = {.divisor = reduction == REDUCTION_MEAN ? (double)count : 1};
        ft_map_call(&sum.map, work->formula, work->numbers, call->dtype);
        ft_require(call, us_mapped_sum(views, &sum) == KERNEL_OK, "loss", "no-memory", FT_NO_MEMORY,
                   "no host memory for the partial sums of %lld elements", (long long)count);
    }
}

void ft_binarycrossentropy(FtCall *call, int input_size, int reduction, const void *input_x, const void *input_y,
                           const void *weight, void *loss, void *tmp_loss, int weight_defined)
{
    ft_length(call, "input_size", input_size);
    ft_require(call, reduction >= REDUCTION_NONE && reduction <= REDUCTION_SUM, "reduction", "range", FT_BAD_ATTRIBUTE,
               "reduction is %d; 0 is none, 1 mean, 2 sum", reduction);
    const Elementwise work = {
        .formula = weight_defined ? &us_map_finite_cross_entropy_weighted : &us_map_finite_cross_entropy,
        .inputs = {{"input_x", input_x}, {"input_y", input_y}, {"weight", weight}},
        .outputs = {{"loss", loss}},
    };
    if (reduction == REDUCTION_NONE || !ft_ok(call) || input_size == 0) {
        ft_elementwise(call, &work, input_size);
    } else {
        reduced_loss(call, &work, input_size, reduction, tmp_loss);
    }
}

void ft_sigmoidcrossentropywithlogits(FtCall *call, const void *input0, const void *input1, void *output, int length)
{
    ft_length(call, "length", length);
    const Elementwise work = {
        .formula = &us_map_sigmoid_cross_entropy,
        .inputs = {{"input0", input0}, {"input1", input1}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, length);
}

void ft_sigmoidcrossentropywithlogitsgrad(FtCall *call, const void *Input0, const void *Input1, void *output,
                                          int length)
{
    ft_length(call, "length", length);
    const Elementwise work = {
        .formula = &us_map_sigmoid_cross_entropy_slope,
        .inputs = {{"Input0", Input0}, {"Input1", Input1}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, length);
}

void ft_smoothl1lossgrad(FtCall *call, const void *dy, void *dx1, const void *x1, const void *x2, int length,
                         double beta)
{
    ft_length(call, "length", length);
    const Elementwise work = {
        .formula = &us_map_smooth_l1_slope,
        .numbers = {beta},
        .inputs = {{"dy", dy}, {"x1", x1}, {"x2", x2}},
        .outputs = {{"dx1", dx1}},
    };
    ft_elementwise(call, &work, length);
}
