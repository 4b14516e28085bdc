#include "kernels/scan/segments.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/axes.h"
#include "tensor/levels.h"

#include <string.h>

typedef struct Run {
    const View *views;
    Axes axes[3]; /* of the views */
    int64_t size; /* of a line */
    _Atomic bool no_memory;
} Run;

static void load(const Run *run, int k, int64_t begin, float *to)
{
    us_axes_load(&run->axes[k], 0, run->views[k].data, run->views[k].dtype, begin, run->size, LANE_FLOAT, to);
}

static void store(const Run *run, int k, int64_t begin, const float *from)
{
    us_axes_store(&run->axes[k], 0, run->views[k].data, run->views[k].dtype, begin, run->size, LANE_FLOAT, from);
}

/* What is there for a line in whole LANES. */
static int64_t room_of(const Run *run)
{
    return (run->size + LANES - 1) / LANES * LANES;
}

/* Room for a line's sums, and some lines more from `floats` on; NULL: there is none. */
static double *room_for(Run *run, int lines, float **floats)
{
    double *sums = us_scratch_array(room_of(run), sizeof *sums + (size_t)lines * sizeof **floats);
    if (sums == NULL) {
        run->no_memory = true;
        return NULL;
    }
    *floats = (float *)(void *)(sums + room_of(run));
    return sums;
}

static void exponentials_of_line(void *context, int64_t line)
{
    Run *run = context;
    const int64_t size = run->size;
    float *x;
    double *sums = room_for(run, 2, &x);
    if (sums == NULL) {
        return;
    }
    float *row = x + room_of(run);
    load(run, 0, line * size, x);
    memset(sums, 0, (size_t)room_of(run) * sizeof *sums);
    for (int64_t i = 0; i < size; i++) {
        for (int64_t j = 0; j < i; j += LANES) { /* whole ones: sums from i on mean nothing yet */
            for (int k = 0; k < LANES; k++) {
                sums[j + k] += (double)x[i];
                row[j + k] = (float)sums[j + k];
            }
            for (int k = 0; k < LANES; k++) {
                row[j + k] = exp_float(row[j + k]);
            }
        }
        sums[i] = 0;
        row[i] = 1;
        for (int64_t j = i + 1; j < size; j++) {
            row[j] = 0;
        }
        store(run, 1, (line * size + i) * size, row);
    }
    us_scratch_give_back(sums);
}

static void slopes_of_line(void *context, int64_t line)
{
    Run *run = context;
    const int64_t size = run->size;
    float *slope;
    double *sums = room_for(run, 3, &slope);
    if (sums == NULL) {
        return;
    }
    float *out = slope + room_of(run), *dx = out + room_of(run);
    for (int64_t j = 0; j < size; j++) {
        sums[j] = 0;
    }
    for (int64_t i = size - 1; i >= 0; i--) {
        double total = 0;
        load(run, 0, (line * size + i) * size, slope);
        load(run, 1, (line * size + i) * size, out);
        for (int64_t j = 0; j < i; j++) {
            sums[j] += (double)slope[j] * (double)out[j];
            total += sums[j];
        }
        dx[i] = (float)total;
    }
    store(run, 2, line * size, dx);
    us_scratch_give_back(sums);
}

static KernelStatus run_lines(const View *views, int32_t count, const View *lines, ParallelBody *body)
{
    if (us_view_is_empty(lines)) {
        return KERNEL_OK;
    }
    Run run = {.views = views, .size = lines->shape[lines->rank - 1]};
    for (int32_t k = 0; k < count; k++) {
        us_axes_add(&run.axes[k], (const View *const[]){&views[k]}, 1, 0, views[k].rank);
        us_axes_complete(&run.axes[k], 1);
    }
    const int64_t elements = us_view_elements(lines);
    run_pieces(elements / run.size, elements * run.size, body, &run);
    return run.no_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_exp_segments(const View *views, const void *attributes)
{
    (void)attributes;
    return run_lines(views, 2, &views[0], exponentials_of_line);
}

KernelStatus us_exp_segments_backward(const View *views, const void *attributes)
{
    (void)attributes;
    return run_lines(views, 3, &views[2], slopes_of_line);
}
