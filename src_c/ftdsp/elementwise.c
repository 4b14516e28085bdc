#include "ftdsp/elementwise.h"

enum { SLICE_GRAIN = TILE_ELEMENTS };

/* A complex array is an array of twice as many real numbers to the operators that treat both parts alike. */
static DType part_type(DType dtype)
{
    return dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64 : dtype;
}

static const void *element(const void *data, DType dtype, int64_t index)
{
    return (const char *)data + index * (int64_t)us_dtype_size(dtype);
}

static int operand_count(const Operand *operands, int limit)
{
    int count = 0;
    while (count < limit && operands[count].name) {
        count++;
    }
    return count;
}

static void check(FtCall *call, const Elementwise *work, const ArrayMap *map, int64_t count)
{
    const int64_t end = work->first + count;
    for (int k = 0; k < map->inputs; k++) {
        ft_operand(call, work->inputs[k].name, work->inputs[k].data, end, map->dtype);
    }
    for (int k = 0; k < map->outputs; k++) {
        const Operand *output = &work->outputs[k];
        ft_operand(call, output->name, output->data, end, map->output_dtype);
        for (int i = 0; i < map->inputs; i++) {
            ft_same_or_apart(call, output->name, output->data, work->inputs[i].name, work->inputs[i].data, count,
                             map->dtype);
        }
        for (int o = 0; o < k; o++) {
            const int64_t bytes = count * (int64_t)us_dtype_size(map->output_dtype);
            ft_apart(call, output->name, output->data, bytes, work->outputs[o].name, work->outputs[o].data, bytes);
        }
    }
}

static void run_slice(void *context, int64_t begin, int64_t end)
{
    us_array_map(context, begin, end);
}

void ft_elementwise(FtCall *call, const Elementwise *work, int64_t count)
{
    if (!ft_ok(call) || count == 0) {
        return;
    }
    const DType dtype = part_type(call->dtype);
    const int64_t parts = count * (int64_t)(us_dtype_size(call->dtype) / us_dtype_size(dtype));
    ArrayMap map = {.kernel = work->kernel, .dtype = dtype};
    map.output_dtype = work->output_dtype == DTYPE_NONE ? dtype : work->output_dtype;
    map.inputs = operand_count(work->inputs, ARRAY_INPUTS);
    map.outputs = operand_count(work->outputs, ARRAY_OUTPUTS);
    for (int k = 0; k < ARRAY_NUMBERS; k++) {
        map.numbers[k] = work->numbers[k];
    }
    check(call, work, &map, parts);
    if (!ft_ok(call)) {
        return;
    }
    for (int k = 0; k < map.inputs; k++) {
        map.input[k] = element(work->inputs[k].data, map.dtype, work->first);
    }
    for (int k = 0; k < map.outputs; k++) {
        map.output[k] = (void *)element(work->outputs[k].data, map.output_dtype, work->first);
    }
    ft_split(call, parts, SLICE_GRAIN, run_slice, &map);
}
