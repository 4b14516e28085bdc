#include "kernels/move/windows.h"

#include "kernels/pieces.h"
#include "tensor/axes.h"
#include "tensor/convert.h"

enum { WINDOWS, OUT, TILE = 256 };

typedef struct Run {
    const View *views;
    const AddWindows *how;
    Axes axes; /* of out */
    int64_t elements;
} Run;

static float number_at(const View *view, int64_t offset)
{
    float value;
    us_convert(&value, DTYPE_FLOAT32, (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype), view->dtype, 1);
    return value;
}

/* The sum at a row-major position of out. */
static float sum_at(const Run *run, int64_t position)
{
    const View *out = &run->views[OUT], *windows = &run->views[WINDOWS];
    const int32_t axis = run->how->axis, last = windows->rank - 1;
    const int64_t size = windows->shape[last], count = windows->shape[axis], step = run->how->step;
    int64_t offset = 0, place = 0;
    for (int32_t d = out->rank - 1; d >= 0; d--) {
        const int64_t at = position % out->shape[d];
        position /= out->shape[d];
        offset += d == axis ? 0 : at * windows->strides[d];
        place = d == axis ? at : place;
    }
    double sum = 0;
    const int64_t first = place < size ? 0 : (place - size) / step + 1;
    for (int64_t t = first; t < count && t * step <= place; t++) {
        sum += (double)number_at(windows, offset + t * windows->strides[axis] + (place - t * step) * windows->strides[last]);
    }
    return (float)sum;
}

static void add_piece(void *context, int64_t piece)
{
    const Run *run = context;
    const View *out = &run->views[OUT];
    const int64_t begin = piece * TILE, rest = run->elements - begin, count = rest < TILE ? rest : TILE;
    float sums[TILE];
    for (int64_t i = 0; i < count; i++) {
        sums[i] = sum_at(run, begin + i);
    }
    us_axes_store(&run->axes, 0, out->data, out->dtype, begin, count, LANE_FLOAT, sums);
}

KernelStatus us_add_windows(const View *views, const void *attributes)
{
    Run run = {.views = views, .how = attributes, .elements = us_view_elements(&views[OUT])};
    us_axes_add(&run.axes, (const View *const[]){&views[OUT]}, 1, 0, views[OUT].rank);
    us_axes_complete(&run.axes, 1);
    run_pieces((run.elements + TILE - 1) / TILE, run.elements, add_piece, &run);
    return KERNEL_OK;
}
