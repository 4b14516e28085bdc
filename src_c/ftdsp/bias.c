/* biasadd and its gradient (ft-dsp 4). */
#include "ftdsp/broadcast.h"
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"

#include <string.h>

/* [outer, channels, inner] */
enum { OUTER, CHANNELS, INNER, AXES };

static void add_bias(const FtCall *call, const void *x, const void *bias, void *out, const int64_t *sizes)
{
    ArrayMap map;
    ft_map_call(&map.call, &us_map_add, (const double[ELEMENTWISE_NUMBERS]){1}, call->dtype);
    View views[] = {us_view_contiguous((void *)x, call->dtype, AXES, sizes),
                    us_view_contiguous((void *)bias, call->dtype, 1, &sizes[CHANNELS]),
                    us_view_contiguous(out, call->dtype, AXES, sizes)};
    views[1] = us_view_insert_axis(views[1], 1, 1, 0);
    us_map_prepare(&map.item, &map.call, views, 0);
    ft_split(call, map.item.elements, FT_GRAIN, ft_run_array_map, &map);
}

void ft_biasadd(FtCall *call, const void *input_x, const void *input_bias, void *output, const int *dims,
                int shape_size,
                const char *data_format, int length)
{
    ft_rank(call, "shape_size", shape_size, 2);
    const Shape shape = ft_shape(call, "dims", dims, shape_size);
    ft_require(call, data_format, "data_format", "null", FT_BAD_POINTER, "data_format is NULL");
    ft_require(call, strcmp(data_format, "NCHW") == 0 || strcmp(data_format, "NHWC") == 0, "data_format", "value",
               FT_BAD_ATTRIBUTE, "data_format is \"%.16s\"; \"NCHW\" and \"NHWC\" are defined", data_format);
    ft_require(call, length == shape.elements, "length", "mismatch", FT_BAD_SIZE,
               "length is %d, but dims has %lld elements",
               length, (long long)shape.elements);
    if (!ft_ok(call) || length == 0) {
        return;
    }
    const int channel_axis = strcmp(data_format, "NCHW") == 0 ? 1 : shape_size - 1;
    int64_t sizes[AXES] = {1, 1, 1};
    for (int axis = 0; axis < shape_size; axis++) {
        sizes[axis < channel_axis ? OUTER : axis == channel_axis ? CHANNELS : INNER] *= shape.size[axis];
    }
    const int64_t size = (int64_t)us_dtype_size(call->dtype);
    ft_operand(call, "input_x", input_x, length, call->dtype);
    ft_operand(call, "input_bias", input_bias, sizes[CHANNELS], call->dtype);
    ft_operand(call, "output", output, length, call->dtype);
    ft_same_or_apart(call, "output", output, "input_x", input_x, length, call->dtype);
    ft_apart(call, "output", output, length * size, "input_bias", input_bias, sizes[CHANNELS] * size);
    if (ft_ok(call)) {
        add_bias(call, input_x, input_bias, output, sizes);
    }
}

void ft_biasaddgrad(FtCall *call, const void *dy, const int *dy_dims, int shape_size, void *dbias)
{
    ft_rank(call, "shape_size", shape_size, 1);
    const Shape shape = ft_shape(call, "dy_dims", dy_dims, shape_size);
    if (!ft_ok(call) || shape.size[shape_size - 1] == 0) {
        return;
    }
    const int64_t columns = shape.size[shape_size - 1], size = (int64_t)us_dtype_size(call->dtype);
    ft_operand(call, "dy", dy, shape.elements, call->dtype);
    ft_operand(call, "dbias", dbias, columns, call->dtype);
    ft_apart(call, "dbias", dbias, columns * size, "dy", dy, shape.elements * size);
    const Shape sums = {.rank = 2, .size = {1, columns}, .elements = columns};
    const Shape rows = {.rank = 2, .size = {shape.elements / columns, columns}, .elements = shape.elements};
    ft_sum_to(call, ft_array(call, dy, &rows), ft_array(call, dbias, &sums));
}
