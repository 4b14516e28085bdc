#include "kernels/quantize/sums.h"

#include "kernels/matmul/matmul.h"
#include "kernels/pieces.h"
#include "kernels/quantize/parameters.h"
#include "kernels/quantize/product.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"
#include "tensor/convert.h"

enum { TILE = 512 };
enum { X, COLUMN, OUT, ROW, BIAS };

static void load(const View *view, int32_t axis, int64_t row, int64_t begin, int64_t count, double missing, double *to)
{
    if (us_view_is_absent(view)) {
        for (int64_t i = 0; i < count; i++) {
            to[i] = missing;
        }
        return;
    }
    const Line line = us_line_of(view, axis, row);
    us_load_double(to, us_line_element(&line, begin), line.dtype, line.stride, count);
}

static void convert_row(void *context, int64_t row)
{
    const View *views = context;
    const Line out = us_line_of(&views[OUT], 1, row);
    const bool first = !us_view_is_absent(&views[BIAS]) && views[BIAS].dtype == DTYPE_INT32;
    double factor;
    load(&views[ROW], 0, 0, row, 1, 1, &factor);
    for (int64_t begin = 0, count; begin < out.size; begin += count) {
        double x[TILE], column[TILE], bias[TILE];
        count = out.size - begin < TILE ? out.size - begin : TILE;
        load(&views[X], 1, row, begin, count, 0, x);
        load(&views[COLUMN], 0, 0, begin, count, 1, column);
        load(&views[BIAS], 0, 0, begin, count, 0, bias);
        for (int64_t i = 0; i < count; i++) {
            x[i] = first ? (x[i] + bias[i]) * column[i] * factor : x[i] * column[i] * factor + bias[i];
        }
        us_store_double(us_line_element(&out, begin), out.dtype, out.stride, x, count);
    }
}

KernelStatus us_dequantize_sums(const View *views, const void *attributes)
{
    (void)attributes;
    run_pieces(views[OUT].shape[0], us_view_elements(&views[OUT]), convert_row, (void *)views);
    return KERNEL_OK;
}

KernelStatus us_scaled_product(const View *views, const void *attributes)
{
    const ScaledProduct *how = attributes;
    const View *c = &views[2], absent = us_view_absent();
    float scale = how->scale;
    int64_t shape[VIEW_RANK_LIMIT];
    for (int32_t axis = 0; axis < c->rank; axis++) {
        shape[axis] = axis == c->rank - 2 ? 1 : c->shape[axis];
    }
    const View one = us_view_contiguous(&scale, DTYPE_FLOAT32, 0, NULL), scales = us_view_broadcast(&one, c->rank, shape);
    return us_quantized_product((const View[]){views[0], views[1], scales, *c, views[3], absent, absent, absent, absent},
                                &(QuantizedProduct){.group = INT64_MAX, .scale_columns = 1, .packed_a = NOT_PACKED,
                                                    .packed_b = NOT_PACKED});
}

/* For every row, by strides of 0. */
static View offsets_of(const View *parameters, const View *c, float *space)
{
    if (us_view_is_absent(parameters)) {
        return *parameters;
    }
    const int64_t n = c->shape[c->rank - 1];
    for (int64_t i = 0; i < n; i++) {
        space[i] = (float)us_parameter_offset(((const uint64_t *)parameters->data)[i * parameters->strides[0]]);
    }
    const View row = us_view_contiguous(space, DTYPE_FLOAT32, 1, &n);
    return us_view_broadcast(&row, c->rank, c->shape);
}

KernelStatus us_quantize_product(const View *views, const void *attributes)
{
    (void)attributes;
    enum { A, B, SCALE, C, SUMMAND, PARAMETERS };
    const View *c = &views[C], absent = us_view_absent();
    const size_t parts[] = {us_scratch_bytes(us_view_elements(c), sizeof(float)),
                            us_scratch_bytes(c->shape[c->rank - 1], sizeof(float))};
    char *const space = us_scratch_take(us_scratch_sum(parts, 2)), *cursor = space;
    if (space == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View product = us_view_contiguous(us_scratch_part(&cursor, parts[0]), DTYPE_FLOAT32, c->rank, c->shape);
    const View offsets = offsets_of(&views[PARAMETERS], c, us_scratch_part(&cursor, parts[1]));
    KernelStatus status = us_product((const View[]){views[A], views[B], views[SUMMAND], product, absent, absent},
                                     &(ViewProduct){.compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {1}});
    if (status == KERNEL_OK) {
        status = us_quantize((const View[]){product, views[SCALE], offsets, *c}, &(Quantize){.rounding = ROUND_EVEN});
    }
    us_scratch_give_back(space);
    return status;
}
