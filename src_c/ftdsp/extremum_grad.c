/* Gradients of maximum and minimum of two broadcast inputs (ft-dsp 4). */
#include "ftdsp/broadcast.h"
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"
#include "kernels/scratch.h"

/* Same shapes: element by element. */
static void equal_shapes(FtCall *call, bool minimum, const Operand *operands, int64_t elements)
{
    const Elementwise work = {
        .formula = minimum ? &us_map_minimum_backward : &us_map_maximum_backward,
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

/* The part of dy whose input was chosen is put into scratch memory, and summed where the input was repeated. */
static void broadcast_shapes(FtCall *call, bool minimum, const Operand *operands, const Shape *shapes, const Shape *whole)
{
    const int64_t counts[] = {shapes[0].elements, shapes[1].elements, whole->elements, shapes[0].elements, shapes[1].elements};
    check_operands(call, operands, counts);
    const size_t places = us_scratch_bytes(whole->elements, 1), bytes = (size_t)ft_bytes(whole->elements, call->dtype);
    char *memory = ft_ok(call) ? us_scratch_take(places + bytes + 1) : NULL;
    ft_finish(call, memory || !ft_ok(call) ? KERNEL_OK : KERNEL_NO_MEMORY);
    if (!ft_ok(call)) {
        return;
    }
    const View x0 = ft_array(call, operands[0].data, &shapes[0]), x1 = ft_array(call, operands[1].data, &shapes[1]);
    const View dy = ft_array(call, operands[2].data, whole), chosen = ft_array(call, memory + places, whole);
    const View first = us_view_contiguous(memory, DTYPE_BOOL, whole->rank, whole->size);
    float none = 0;
    const View zero = us_view_broadcast(&(View){.data = &none, .dtype = DTYPE_FLOAT32}, whole->rank, whole->size);
    ft_map(call, minimum ? &us_map_lt : &us_map_gt, call->dtype, 2, (const View[]){x0, x1, first});
    for (int k = 0; k < 2; k++) {
        const View values[] = {first, k == 0 ? dy : zero, k == 0 ? zero : dy, chosen};
        ft_map(call, &us_map_where, call->dtype, 3, values);
        ft_sum_to(call, chosen, ft_array(call, operands[3 + k].data, &shapes[k]));
    }
    us_scratch_give_back(memory);
}

static void extremum_grad(FtCall *call, bool minimum, const Operand *operands, const int *dims0, const int *dims1,
                          int num_dims)
{
    ft_rank(call, "num_dims", num_dims, 0);
    const Shape shapes[2] = {ft_shape(call, "Input0_dims", dims0, num_dims),
                             ft_shape(call, "Input1_dims", dims1, num_dims)};
    Shape whole = {.rank = shapes[1].rank};
    bool equal = true;
    for (int axis = 0; ft_ok(call) && axis < num_dims; axis++) {
        const int64_t a = shapes[0].size[axis], b = shapes[1].size[axis];
        ft_require(call, a == b || a == 1 || b == 1, "Input1_dims", "broadcast", FT_BAD_SIZE,
                   "axis %d has size %lld in Input0_dims and %lld in Input1_dims", axis, (long long)a, (long long)b);
        whole.size[axis] = a == 1 ? b : a;
        equal = equal && a == b;
    }
    whole.elements = ft_ok(call) ? us_shape_elements(num_dims, whole.size) : 0;
    ft_require(call, whole.elements >= 0 && whole.elements <= FT_ELEMENT_LIMIT, "Input1_dims", "overflow", FT_BAD_SIZE,
               "the broadcast shape has more elements than any memory holds");
    if (!ft_ok(call)) {
        return;
    }
    if (equal) {
        equal_shapes(call, minimum, operands, whole.elements);
    } else {
        broadcast_shapes(call, minimum, operands, shapes, &whole);
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
