/* biasadd and its gradient (ft-dsp 4). */
#include "ftdsp/broadcast.h"
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"
#include "kernels/arrays/complex.h"
#include "kernels/scratch.h"

#include <string.h>

/* [outer, channels, inner] */
enum { OUTER, CHANNELS, INNER, AXES };

enum { WIDE_ROW = 1024 }; /* elements */

static void add_bias(const FtCall *call, DType dtype, const void *x, const void *bias, void *out, const int64_t *sizes)
{
    ArrayMap map;
    const MapFormula *formula = us_array_is_complex(dtype) ? &us_map_add : &us_map_sum; /* 1 * bias in the one */
    ft_map_call(&map.call, formula, (const double[ELEMENTWISE_NUMBERS]){1}, dtype);
    View views[] = {us_view_contiguous((void *)x, dtype, AXES, sizes),
                    us_view_contiguous((void *)bias, dtype, 1, &sizes[CHANNELS]),
                    us_view_contiguous(out, dtype, AXES, sizes)};
    views[1] = us_view_insert_axis(views[1], 1, 1, 0);
    us_map_prepare(&map.item, &map.call, views, 0);
    ft_split(call, map.item.elements, FT_GRAIN, ft_run_array_map, &map);
}

/* Channels that follow each other: both parts of a complex number are treated alike, and short rows are taken several at a
 * time, beside as many copies of the bias. */
static KernelStatus add_bias_to_rows(const FtCall *call, const char *x, const void *bias, char *out, int64_t rows,
                                     int64_t channels)
{
    const bool is_complex = us_array_is_complex(call->dtype);
    const DType dtype = !is_complex ? call->dtype : call->dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    const int64_t width = channels * (is_complex ? 2 : 1), bytes = width * (int64_t)us_dtype_size(dtype);
    const int64_t wanted = (WIDE_ROW + width - 1) / width, together = wanted < rows ? wanted : rows;
    char *copies = us_scratch_array(together, (size_t)bytes);
    if (!copies) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t row = 0; row < together; row++) {
        memcpy(copies + row * bytes, bias, (size_t)bytes);
    }
    const int64_t rest = rows % together, done = (rows - rest) * bytes;
    add_bias(call, dtype, x, copies, out, (int64_t[AXES]){rows / together, together * width, 1});
    if (rest > 0) {
        add_bias(call, dtype, x + done, copies, out + done, (int64_t[AXES]){1, rest * width, 1});
    }
    us_scratch_give_back(copies);
    return KERNEL_OK;
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
    if (ft_ok(call) && sizes[INNER] == 1) {
        ft_finish(call, add_bias_to_rows(call, input_x, input_bias, output, sizes[OUTER], sizes[CHANNELS]));
    } else if (ft_ok(call)) {
        add_bias(call, call->dtype, input_x, input_bias, output, sizes);
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
