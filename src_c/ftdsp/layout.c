/* Operators that move elements of any type: concat, stack, slice (ft-dsp 4). */
#include "ftdsp/broadcast.h"
#include "ftdsp/operators.h"
#include "kernels/move/copy_view.h"

#include <string.h>

/* Joining: the output is `outer` times the inputs' blocks, one behind the other. */
typedef struct Join {
    const void *const *inputs;
    const int *const *shapes; /* NULL: all blocks have the same size */
    int axis;
    int input_count;
    int64_t block;  /* bytes: of one entry along the axis (concat), of each input's block (stack) */
    int64_t stride; /* bytes of the output per outer index */
    char *output;
} Join;

static int64_t block_bytes(const Join *join, int input)
{
    return join->shapes ? join->shapes[input][join->axis] * join->block : join->block;
}

/* Of each input a block per outer index, `stride` bytes apart. */
static void run_join(const FtCall *call, const Join *join, int64_t outer)
{
    const int64_t size = (int64_t)us_dtype_size(call->dtype);
    char *to = join->output;
    for (int input = 0; input < join->input_count; input++) {
        const int64_t bytes = block_bytes(join, input), shape[] = {outer, bytes / size};
        const View source = us_view_contiguous((void *)join->inputs[input], call->dtype, 2, shape);
        View target = us_view_contiguous(to, call->dtype, 2, shape);
        target.strides[0] = join->stride / size;
        us_copy_view(&target, &source);
        to += bytes;
    }
}

static int64_t product(const int64_t *sizes, int begin, int end)
{
    int64_t elements = 1;
    for (; begin < end; begin++) {
        elements *= sizes[begin];
    }
    return elements;
}

/* Checks the operands of a join whose sizes are known, and runs it. The tables are read while the output is written. */
static void join_blocks(FtCall *call, Join *join, int64_t outer)
{
    const int64_t size = (int64_t)us_dtype_size(call->dtype), written = outer * join->stride;
    const int64_t table_bytes = join->input_count * (int64_t)sizeof(void *);
    ft_operand(call, "output", join->output, written / size, call->dtype);
    ft_apart(call, "output", join->output, written, "the table of inputs", join->inputs, table_bytes);
    ft_apart(call, "output", join->output, written, "input_shapes", join->shapes, table_bytes);
    for (int input = 0; ft_ok(call) && input < join->input_count; input++) {
        const int64_t bytes = outer * block_bytes(join, input);
        ft_entry(call, "inputs", input, join->inputs[input], bytes / size, call->dtype);
        ft_apart(call, "output", join->output, written, "inputs", join->inputs[input], bytes);
        if (join->shapes) {
            ft_apart(call, "output", join->output, written, "input_shapes", join->shapes[input] + join->axis, sizeof(int));
        }
    }
    if (ft_ok(call) && join->stride > 0) {
        run_join(call, join, outer);
    }
}

static void check_inputs(FtCall *call, const void *const *inputs, int num_inputs)
{
    ft_require(call, num_inputs >= 1, "num_inputs", "range", FT_BAD_SIZE, "num_inputs is %d", num_inputs);
    ft_require(call, inputs, "inputs", "table", FT_BAD_POINTER, "inputs is NULL; it has %d entries", num_inputs);
}

/* The sizes of input k along all axes but the joined one are those of input 0; returns the sum along that axis. */
static int64_t joined_size(FtCall *call, const int *const *shapes, int num_inputs, int axis, const Shape *first)
{
    int64_t sum = 0;
    for (int input = 0; ft_ok(call) && input < num_inputs; input++) {
        const Shape shape = ft_shape(call, "input_shapes", shapes[input], first->rank);
        for (int d = 0; ft_ok(call) && d < first->rank; d++) {
            ft_require(call, d == axis || shape.size[d] == first->size[d], "input_shapes", "mismatch", FT_BAD_SIZE,
                       "axis %d has size %lld in input %d and %lld in input 0", d, (long long)shape.size[d], input,
                       (long long)first->size[d]);
        }
        sum += shape.size[axis];
    }
    return sum;
}

void ft_concat(FtCall *call, const void *const *inputs, const int *const *input_shapes, int num_inputs, int axis,
               int input_ndim, void *output)
{
    check_inputs(call, inputs, num_inputs);
    ft_rank(call, "input_ndim", input_ndim, 1);
    ft_require(call, axis >= 0 && axis < input_ndim, "axis", "range", FT_BAD_ATTRIBUTE, "axis is %d of %d axes", axis,
               input_ndim);
    ft_require(call, input_shapes, "input_shapes", "null", FT_BAD_POINTER, "input_shapes is NULL; it has %d entries",
               num_inputs);
    if (!ft_ok(call)) {
        return;
    }
    Shape whole = ft_shape(call, "input_shapes", input_shapes[0], input_ndim);
    const Shape first = whole;
    whole.size[axis] = joined_size(call, input_shapes, num_inputs, axis, &first);
    const int64_t elements = us_shape_elements(input_ndim, whole.size);
    ft_require(call, elements >= 0 && elements <= FT_ELEMENT_LIMIT, "output", "overflow", FT_BAD_SIZE,
               "the output has more elements than any memory holds");
    if (!ft_ok(call) || elements == 0) {
        return;
    }
    Join join = {.inputs = inputs, .shapes = input_shapes, .axis = axis, .input_count = num_inputs, .output = output};
    join.block = product(whole.size, axis + 1, input_ndim) * (int64_t)us_dtype_size(call->dtype);
    join.stride = whole.size[axis] * join.block;
    join_blocks(call, &join, product(whole.size, 0, axis));
}

void ft_stack(FtCall *call, const void *const *inputs, const int *input_shape, int num_inputs, int axis, int input_ndim,
              void *output)
{
    check_inputs(call, inputs, num_inputs);
    ft_rank(call, "input_ndim", input_ndim, 0);
    ft_require(call, axis >= 0 && axis <= input_ndim, "axis", "range", FT_BAD_ATTRIBUTE,
               "axis is %d; the new axis stands before one of %d axes or behind them", axis, input_ndim);
    const Shape shape = ft_shape(call, "input_shape", input_shape, ft_ok(call) ? input_ndim : 0);
    int64_t elements = 0;
    ft_require(call, !__builtin_mul_overflow(shape.elements, num_inputs, &elements) && elements <= FT_ELEMENT_LIMIT,
               "output", "overflow", FT_BAD_SIZE, "%d inputs have more elements than any memory holds", num_inputs);
    if (!ft_ok(call) || elements == 0) {
        return;
    }
    Join join = {.inputs = inputs, .input_count = num_inputs, .output = output};
    join.block = product(shape.size, axis, input_ndim) * (int64_t)us_dtype_size(call->dtype);
    join.stride = num_inputs * join.block;
    join_blocks(call, &join, product(shape.size, 0, axis));
}

void ft_slice(FtCall *call, const void *input, void *output, const int *input_shape, int ndim, const int *begin,
              const int *size)
{
    ft_rank(call, "ndim", ndim, 1);
    const Shape shape = ft_shape(call, "input_shape", input_shape, ndim);
    ft_require(call, begin, "begin", "null", FT_BAD_POINTER, "begin is NULL; it has %d entries", ndim);
    const Shape box = ft_shape(call, "size", size, ndim);
    for (int axis = 0; ft_ok(call) && axis < ndim; axis++) {
        ft_require(call, begin[axis] >= 0 && begin[axis] + box.size[axis] <= shape.size[axis], "begin", "range",
                   FT_BAD_SIZE,
                   "axis %d: %lld elements from %d on, of %lld", axis, (long long)box.size[axis], begin[axis],
                   (long long)shape.size[axis]);
    }
    if (!ft_ok(call) || box.elements == 0) {
        return;
    }
    ft_operand(call, "input", input, shape.elements, call->dtype);
    ft_operand(call, "output", output, box.elements, call->dtype);
    ft_apart(call, "output", output, ft_bytes(box.elements, call->dtype), "input", input,
             ft_bytes(shape.elements, call->dtype));
    if (ft_ok(call)) {
        int64_t first = 0; /* element of the input */
        for (int axis = 0; axis < ndim; axis++) {
            first = first * shape.size[axis] + begin[axis];
        }
        const View target = ft_array(call, output, &box);
        View source = ft_array(call, (const char *)input + ft_bytes(first, call->dtype), &shape);
        memcpy(source.shape, target.shape, sizeof source.shape);
        us_copy_view(&target, &source);
    }
}
