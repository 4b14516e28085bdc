#include "ftdsp/operators.h"
#include "kernels/kernels.h"

#include <string.h>

enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM }; /* ft-dsp 3.3: not nnacl's numbering */
enum { X, Y, WEIGHT, DLOSS, DX, OPERANDS };
enum { SLICE_GRAIN = 1024 };

typedef struct Work {
    View operands[OPERANDS]; /* over all elements */
    BinaryCrossEntropyBackward attributes;
} Work;

static void run_slice(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;
    View slices[OPERANDS];
    for (int k = 0; k < OPERANDS; k++) {
        slices[k] = work->operands[k];
        if (!us_view_is_absent(&slices[k])) {
            slices[k].data = (char *)slices[k].data +
                             begin * slices[k].strides[0] * (int64_t)us_dtype_size(slices[k].dtype);
            slices[k].shape[0] = end - begin;
        }
    }
    us_binary_cross_entropy_backward(slices, &work->attributes);
}

static View operand(const FtCall *call, const void *data, int64_t count)
{
    return us_view_contiguous((void *)data, call->dtype, 1, &count);
}

static void compute(const FtCall *call, int input_size, int reduction, const void *input_x, const void *input_y,
                    const void *weight, const void *dloss, void *dx)
{
    /* One dloss for all elements is read before anything is written: dx may lie on top of it (ft-dsp 3.4). */
    double first_dloss;
    memcpy(&first_dloss, dloss, us_dtype_size(call->dtype));
    const bool everywhere = reduction != REDUCTION_NONE;
    Work work = {.attributes.divide_by = reduction == REDUCTION_MEAN ? input_size : 1};
    work.operands[X] = operand(call, input_x, input_size);
    work.operands[Y] = operand(call, input_y, input_size);
    work.operands[WEIGHT] = weight ? operand(call, weight, input_size) : us_view_absent();
    work.operands[DLOSS] = operand(call, everywhere ? &first_dloss : dloss, input_size);
    work.operands[DLOSS].strides[0] = everywhere ? 0 : 1;
    work.operands[DX] = operand(call, dx, input_size);
    ft_split(call, input_size, SLICE_GRAIN, run_slice, &work);
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
        compute(call, input_size, reduction, input_x, input_y, weight, dloss, dx);
    }
}
