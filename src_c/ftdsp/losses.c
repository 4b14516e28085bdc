/* Losses and their gradients (ft-dsp 3.7, 4); the gradient of the binary cross entropy has a file of its own. */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"
#include "tensor/convert.h"

#include <stdlib.h>

enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM }; /* ft-dsp 3.3: not nnacl's numbering */
enum { SUM_BLOCK = TILE_ELEMENTS };

typedef struct Sums {
    const ArrayMap *map;
    double *blocks;
} Sums;

static void sum_blocks(void *context, int64_t begin, int64_t end)
{
    const Sums *sums = context;
    for (; begin < end; begin += SUM_BLOCK) {
        const int64_t block_end = end < begin + SUM_BLOCK ? end : begin + SUM_BLOCK;
        sums->blocks[begin / SUM_BLOCK] = us_array_map_sum(sums->map, begin, block_end);
    }
}

/* Sums in blocks of a fixed size, then the blocks in order: the mask does not change the result. */
static void reduce(FtCall *call, const ArrayMap *map, int64_t count, double divisor, void *loss)
{
    const int64_t block_count = (count + SUM_BLOCK - 1) / SUM_BLOCK;
    Sums sums = {map, malloc((size_t)block_count * sizeof(double))};
    ft_require(call, sums.blocks, "loss", "no-memory", FT_NO_MEMORY, "no host memory for %lld partial sums",
               (long long)block_count);
    if (!ft_ok(call)) {
        return;
    }
    ft_split(call, count, SUM_BLOCK, sum_blocks, &sums);
    double total = 0;
    for (int64_t block = 0; block < block_count; block++) {
        total += sums.blocks[block];
    }
    free(sums.blocks);
    total /= divisor;
    us_store_double(loss, call->dtype, 1, &total, 1);
}

static void reduced_loss(FtCall *call, const Elementwise *work, int64_t count, int reduction, void *tmp_loss)
{
    const Operand *loss = &work->outputs[0];
    ArrayMap map = {.kernel = work->kernel, .dtype = call->dtype, .output_dtype = call->dtype, .outputs = 1};
    for (; map.inputs < ARRAY_INPUTS && work->inputs[map.inputs].name; map.inputs++) {
        const Operand *input = &work->inputs[map.inputs];
        map.input[map.inputs] = input->data;
        ft_operand(call, input->name, input->data, count, call->dtype);
    }
    ft_operand(call, loss->name, loss->data, 1, call->dtype);
    ft_operand(call, "tmp_loss", tmp_loss, count, call->dtype); /* the chip's scratch; the sums here need none of it */
    if (ft_ok(call)) {
        reduce(call, &map, count, reduction == REDUCTION_MEAN ? (double)count : 1, (void *)loss->data);
    }
}

void ft_binarycrossentropy(FtCall *call, int input_size, int reduction, const void *input_x, const void *input_y,
                           const void *weight, void *loss, void *tmp_loss, int weight_defined)
{
    ft_length(call, "input_size", input_size);
    ft_require(call, reduction >= REDUCTION_NONE && reduction <= REDUCTION_SUM, "reduction", "range", FT_BAD_ATTRIBUTE,
               "reduction is %d; 0 is none, 1 mean, 2 sum", reduction);
    const Elementwise work = {
        .kernel = weight_defined ? &us_array_binary_cross_entropy_weighted : &us_array_binary_cross_entropy,
        .inputs = {{"input_x", input_x}, {"input_y", input_y}, {weight_defined ? "weight" : NULL, weight}},
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
        .kernel = &us_array_sigmoid_cross_entropy,
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
        .kernel = &us_array_sigmoid_cross_entropy_grad,
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
        .kernel = &us_array_smooth_l1_grad,
        .numbers = {beta},
        .inputs = {{"dy", dy}, {"x1", x1}, {"x2", x2}},
        .outputs = {{"dx1", dx1}},
    };
    ft_elementwise(call, &work, length);
}
