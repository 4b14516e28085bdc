#include "kernels/move/windows.h"

#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/axes.h"
#include "tensor/convert.h"

enum { WINDOWS, OUT };

typedef struct Run {
    const View *views;
    const AddWindows *how;
    Axes axes; /* of out */
    int64_t line; /* out's last size */
    _Atomic bool no_memory;
} Run;

/* From the windows' first element to those of a line of out, and the line's place on the windows' axis if that is not the
 * last one. */
static int64_t begin_of_line(const Run *run, int64_t line, int64_t *place)
{
    const View *out = &run->views[OUT], *windows = &run->views[WINDOWS];
    int64_t offset = 0;
    for (int32_t d = out->rank - 2; d >= 0; d--) {
        const int64_t at = line % out->shape[d];
        line /= out->shape[d];
        offset += d == run->how->axis ? 0 : at * windows->strides[d];
        *place = d == run->how->axis ? at : *place;
    }
    return offset;
}

static void load(const View *windows, int64_t offset, int64_t stride, int64_t count, float *to)
{
    us_load_float(to, (const char *)windows->data + offset * (int64_t)us_dtype_size(windows->dtype), windows->dtype, stride,
                  count);
}

static void add(double *sums, const float *terms, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += (double)terms[i];
    }
}

static void sum_line(const Run *run, int64_t line, double *sums, float *terms)
{
    const View *windows = &run->views[WINDOWS];
    const int32_t axis = run->how->axis, last = windows->rank - 1;
    const int64_t size = windows->shape[last], count = windows->shape[axis], step = run->how->step;
    int64_t place = 0;
    const int64_t begin = begin_of_line(run, line, &place);
    if (axis == last - 1) { /* windows lie in the line; those that lie one behind the other are loaded together */
        const bool dense = size > 0 && windows->strides[last] == 1 && windows->strides[axis] == size;
        const int64_t at_once = dense ? run->line / size : 1;
        for (int64_t t = 0; t < count; t += at_once) {
            const int64_t few = count - t < at_once ? count - t : at_once;
            load(windows, begin + t * windows->strides[axis], windows->strides[last], few * size, terms);
            for (int64_t i = 0; i < few; i++) {
                add(sums + (t + i) * step, terms + i * size, size);
            }
        }
        return;
    }
    for (int64_t t = place < size ? 0 : (place - size) / step + 1; t < count && t * step <= place; t++) {
        load(windows, begin + t * windows->strides[axis] + (place - t * step) * windows->strides[last],
             windows->strides[last - 1], run->line, terms);
        add(sums, terms, run->line);
    }
}

static void add_line(void *context, int64_t line)
{
    Run *run = context;
    const View *out = &run->views[OUT];
    double *sums = us_scratch_array(run->line, sizeof *sums + sizeof(float));
    if (sums == NULL) {
        run->no_memory = true;
        return;
    }
    float *terms = (float *)(void *)(sums + run->line); /* a window is not larger than its line */
    for (int64_t i = 0; i < run->line; i++) {
        sums[i] = 0;
    }
    sum_line(run, line, sums, terms);
    for (int64_t i = 0; i < run->line; i++) {
        terms[i] = (float)sums[i];
    }
    us_axes_store(&run->axes, 0, out->data, out->dtype, line * run->line, run->line, LANE_FLOAT, terms);
    us_scratch_give_back(sums);
}

KernelStatus us_add_windows(const View *views, const void *attributes)
{
    const View *out = &views[OUT];
    if (us_view_is_empty(out)) {
        return KERNEL_OK;
    }
    Run run = {.views = views, .how = attributes, .line = out->shape[out->rank - 1]};
    us_axes_add(&run.axes, (const View *const[]){out}, 1, 0, out->rank);
    us_axes_complete(&run.axes, 1);
    const int64_t elements = us_view_elements(out);
    run_pieces(elements / run.line, elements, add_line, &run);
    return run.no_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}
