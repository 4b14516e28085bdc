#include "ftdsp/elementwise.h"

#include "kernels/arrays/complex.h"

/* A complex array is an array of twice as many real numbers to the operators that treat both parts alike: all but the
 * product. */
static DType operand_type(const MapFormula *formula, DType dtype)
{
    const bool as_parts = us_array_is_complex(dtype) && formula != &us_map_mul;
    return !as_parts ? dtype : dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
}

static const void *element(const void *data, DType dtype, int64_t index)
{
    return (const char *)data + index * (int64_t)us_dtype_size(dtype);
}

static void check(FtCall *call, const Elementwise *work, DType dtype, DType output_dtype, int64_t count)
{
    const int64_t end = work->first + count;
    const int inputs = work->formula->inputs, outputs = work->formula->outputs;
    for (int k = 0; k < inputs; k++) {
        ft_operand(call, work->inputs[k].name, work->inputs[k].data, work->inputs[k].name ? end : 0, dtype);
    }
    for (int k = 0; k < outputs; k++) {
        const Operand *output = &work->outputs[k];
        ft_operand(call, output->name, output->data, end, output_dtype);
        for (int i = 0; i < inputs; i++) {
            ft_same_or_apart(call, output->name, output->data, work->inputs[i].name, work->inputs[i].data,
                             work->inputs[i].name ? count : 0, dtype);
        }
        for (int o = 0; o < k; o++) {
            const int64_t bytes = count * (int64_t)us_dtype_size(output_dtype);
            ft_apart(call, output->name, output->data, bytes, work->outputs[o].name, work->outputs[o].data, bytes);
        }
    }
}

/* Sums and differences of integers of 8 and 16 bits are exact in float32, and so are products that do not saturate. */
static DType compute_type(const MapFormula *formula, DType dtype)
{
    const bool is_short = dtype == DTYPE_INT8 || dtype == DTYPE_INT16;
    const bool is_exact = formula == &us_map_sum || formula == &us_map_difference || formula == &us_map_mul ||
                          formula == &us_map_relu_of_difference || formula == &us_map_relu6_of_difference;
    return us_dtype_is_float(dtype) || us_array_is_complex(dtype) ? dtype
           : is_short && is_exact                                 ? DTYPE_FLOAT32
                                                                  : DTYPE_FLOAT64;
}

/* Nothing is cleared that is not looked at, here and in set_array: that would take longer than small arrays do. */
void ft_map_call(MapCall *call, const MapFormula *formula, const double *numbers, DType dtype)
{
    const DType compute = compute_type(formula, dtype);
    call->formula = formula;
    call->compute = call->result = compute;
    call->inputs = formula->inputs;
    call->outputs = formula->outputs;
    call->items = 1;
    call->number_count = 0;
    call->blend.wanted = false;
    for (int k = 0; k < ELEMENTWISE_NUMBERS; k++) {
        call->numbers[k] = (Number){numbers[k], 0, 0};
    }
}

static void set_array(View *view, const void *data, DType dtype, int64_t count)
{
    view->data = (void *)data;
    view->dtype = data ? dtype : DTYPE_NONE;
    view->rank = 1;
    view->shape[0] = count;
    view->strides[0] = 1;
}

void ft_array_map(ArrayMap *map, const MapFormula *formula, const double *numbers, DType dtype, const void *const *inputs,
                  DType output_dtype, void *const *outputs, int64_t count)
{
    View views[ELEMENTWISE_INPUTS + ELEMENTWISE_OUTPUTS];
    ft_map_call(&map->call, formula, numbers, dtype);
    for (int k = 0; k < formula->inputs; k++) {
        set_array(&views[k], inputs[k], dtype, count);
    }
    for (int k = 0; k < formula->outputs; k++) {
        set_array(&views[formula->inputs + k], outputs[k], output_dtype, count);
    }
    us_map_prepare(&map->item, &map->call, views, 0);
}

void ft_run_array_map(void *map, int64_t begin, int64_t end)
{
    us_map_run(&((const ArrayMap *)map)->item, begin, end);
}

void ft_elementwise(FtCall *call, const Elementwise *work, int64_t count)
{
    if (!ft_ok(call) || count == 0) {
        return;
    }
    const DType dtype = operand_type(work->formula, call->dtype);
    const DType output_dtype = work->output_dtype == DTYPE_NONE ? dtype : work->output_dtype;
    const int64_t parts = count * (int64_t)(us_dtype_size(call->dtype) / us_dtype_size(dtype));
    check(call, work, dtype, output_dtype, parts);
    if (!ft_ok(call)) {
        return;
    }
    const void *inputs[ELEMENTWISE_INPUTS];
    void *outputs[ELEMENTWISE_OUTPUTS];
    for (int k = 0; k < work->formula->inputs; k++) {
        inputs[k] = work->inputs[k].name ? element(work->inputs[k].data, dtype, work->first) : NULL;
    }
    for (int k = 0; k < work->formula->outputs; k++) {
        outputs[k] = (void *)element(work->outputs[k].data, output_dtype, work->first);
    }
    ArrayMap map;
    ft_array_map(&map, work->formula, work->numbers, dtype, inputs, output_dtype, outputs, parts);
    ft_split(call, parts, FT_GRAIN, ft_run_array_map, &map);
}
