/* Gradients of maximum and minimum of two broadcast inputs (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"
#include "ftdsp/shape.h"

static void run_extremum_grad(void *context, int64_t begin, int64_t end)
{
    us_ft_extremum_grad(context, begin, end);
}

/* Same shapes: element by element. */
static void equal_shapes(FtCall *call, bool minimum, const Operand *operands, int64_t elements)
{
    const Elementwise work = {
        .kernel = minimum ? &us_ft_minimum_grad : &us_ft_maximum_grad,
        .inputs = {operands[0], operands[1], operands[2]},
        .outputs = {operands[3], operands[4]},
    };
    ft_elementwise(call, &work, elements);
}

static void check_operands(FtCall *call, const Operand *operands, const int64_t *counts)
{
    const int64_t size = (int64_t)us_dtype_size(call->dtype);
    for (int k = 0; k < 5; k++) {
        ft_operand(call, operands[k].name, operands[k].data, counts[k], call->dtype);
    }
    for (int output = 3; output < 5; output++) {
        for (int other = 0; other < output; other++) {
            ft_apart(call, operands[output].name, operands[output].data, counts[output] * size, operands[other].name,
                     operands[other].data, counts[other] * size);
        }
    }
}

static void broadcast_shapes(FtCall *call, FtExtremumGrad *work, const Operand *operands, const Shape *shapes,
                             int64_t elements)
{
    const int64_t counts[] = {shapes[0].elements, shapes[1].elements, elements, shapes[0].elements, shapes[1].elements};
    check_operands(call, operands, counts);
    if (!ft_ok(call)) {
        return;
    }
    work->inputs[0] = operands[0].data;
    work->inputs[1] = operands[1].data;
    work->dy = operands[2].data;
    for (work->which = 0; work->which < 2; work->which++) {
        work->dx = (void *)operands[3 + work->which].data;
        for (int axis = 0; axis < work->rank; axis++) {
            work->own[axis] = shapes[work->which].size[axis];
        }
        ft_split(call, shapes[work->which].elements, 16, run_extremum_grad, work);
    }
}

static void extremum_grad(FtCall *call, bool minimum, const Operand *operands, const int *dims0, const int *dims1,
                          int num_dims)
{
    ft_rank(call, "num_dims", num_dims, 0);
    const Shape shapes[2] = {ft_shape(call, "Input0_dims", dims0, num_dims),
                             ft_shape(call, "Input1_dims", dims1, num_dims)};
    FtExtremumGrad work = {.dtype = call->dtype, .minimum = minimum, .rank = shapes[1].rank};
    bool equal = true;
    for (int axis = 0; ft_ok(call) && axis < num_dims; axis++) {
        const int64_t a = shapes[0].size[axis], b = shapes[1].size[axis];
        ft_require(call, a == b || a == 1 || b == 1, "Input1_dims", "broadcast", FT_BAD_SIZE,
                   "axis %d has size %lld in Input0_dims and %lld in Input1_dims", axis, (long long)a, (long long)b);
        work.shape[axis] = a == 1 ? b : a;
        equal = equal && a == b;
    }
    const int64_t elements = ft_ok(call) ? us_shape_elements(num_dims, work.shape) : 0;
    ft_require(call, elements >= 0 && elements <= FT_ELEMENT_LIMIT, "Input1_dims", "overflow", FT_BAD_SIZE,
               "the broadcast shape has more elements than any memory holds");
    if (!ft_ok(call)) {
        return;
    }
    for (int input = 0; input < 2; input++) {
        us_strides_contiguous(num_dims, shapes[input].size, work.strides[input]);
        for (int axis = 0; axis < num_dims; axis++) {
            work.strides[input][axis] *= shapes[input].size[axis] != 1;
        }
    }
    if (equal) {
        equal_shapes(call, minimum, operands, elements);
    } else {
        broadcast_shapes(call, &work, operands, shapes, elements);
    }
}

void ft_maximumgrad(FtCall *call, const void *Input0, const void *Input1, const void *dy, const int *Input0_dims,
                    const int *Input1_dims, int num_dims, void *dx0, void *dx1)
{
    const Operand operands[] = {{"Input0", Input0}, {"Input1", Input1}, {"dy", dy}, {"dx0", dx0}, {"dx1", dx1}};
    extremum_grad(call, false, operands, Input0_dims, Input1_dims, num_dims);
}

void ft_minimumgrad(FtCall *call, const void *Input0, const void *Input1, const void *dy, const int *Input0_dims,
                    const int *Input1_dims, int num_dims, void *dx0, void *dx1)
{
    const Operand operands[] = {{"Input0", Input0}, {"Input1", Input1}, {"dy", dy}, {"dx0", dx0}, {"dx1", dx1}};
    extremum_grad(call, true, operands, Input0_dims, Input1_dims, num_dims);
}
