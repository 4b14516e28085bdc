/* A gated activation, smoothed group by group, then quantized: all by other kernels. */
#include "kernels/map/formulas.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"

#include <string.h>

enum { A, B, SMOOTH, OFFSET, ENDS, Y, SCALE };

/* Lines begin … end-1 of [rows, size]. */
static View lines_of(const View *rows, int64_t begin, int64_t end)
{
    View lines = *rows;
    lines.data = (char *)lines.data + begin * lines.strides[0] * (int64_t)us_dtype_size(lines.dtype);
    lines.shape[0] = end - begin;
    return lines;
}

static KernelStatus smooth_group(const View *views, const View *lines, int64_t group)
{
    const View smooth = lines_of(&views[SMOOTH], group, group + 1);
    KernelStatus status = us_map_floats(&us_map_mul, 2, (const View[]){*lines, smooth, *lines});
    if (status == KERNEL_OK && !us_view_is_absent(&views[OFFSET])) {
        const View offset = lines_of(&views[OFFSET], group, group + 1);
        status = us_map_floats(&us_map_add, 2, (const View[]){*lines, offset, *lines});
    }
    return status;
}

/* Ends that fall back, or pass the last row, are held. */
static KernelStatus smooth_rows(const View *views, const View *rows)
{
    const View *ends = &views[ENDS];
    int64_t begin = 0;
    KernelStatus status = KERNEL_OK;
    for (int64_t group = 0; group < ends->shape[0] && status == KERNEL_OK; group++) {
        int64_t end = ((const int32_t *)ends->data)[group * ends->strides[0]];
        end = end < begin ? begin : end > rows->shape[0] ? rows->shape[0] : end;
        if (end > begin) {
            const View lines = lines_of(rows, begin, end);
            status = smooth_group(views, &lines, group);
        }
        begin = end;
    }
    const View rest = lines_of(rows, begin, rows->shape[0]);
    memset(rest.data, 0, (size_t)us_view_elements(&rest) * sizeof(float));
    return status;
}

KernelStatus us_quantize_gated(const View *views, const void *attributes)
{
    static const float one = 1;
    const QuantizeGated *how = attributes;
    const View *y = &views[Y], absent = us_view_absent();
    const int64_t elements = us_view_elements(y);
    if (elements == 0) {
        return KERNEL_OK;
    }
    void *space = us_scratch_take((size_t)elements * sizeof(float));
    if (space == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const int64_t size = y->shape[y->rank - 1];
    const View gated = us_view_contiguous(space, DTYPE_FLOAT32, y->rank, y->shape);
    const View rows = us_view_contiguous(space, DTYPE_FLOAT32, 2, (const int64_t[]){elements / size, size});
    KernelStatus status = us_map_floats(&us_map_swiglu, 2, (const View[]){views[A], views[B], gated});
    status = status != KERNEL_OK ? status : smooth_rows(views, &rows);
    if (status == KERNEL_OK && how->fixed) {
        const View alone = us_view_contiguous((void *)&one, DTYPE_FLOAT32, 0, NULL);
        const View scale = us_view_broadcast(&alone, y->rank, y->shape);
        status = us_quantize((const View[]){gated, scale, absent, *y}, &(Quantize){.rounding = ROUND_EVEN});
    } else if (status == KERNEL_OK) {
        status = us_quantize_rows((const View[]){gated, absent, *y, views[SCALE], absent, absent}, &(QuantizeRows){0});
    }
    us_scratch_give_back(space);
    return status;
}
