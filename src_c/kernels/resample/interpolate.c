#include "kernels/resample/interpolate.h"
#include "kernels/resample/clamped.h"

#include "kernels/detach.h"
#include "kernels/packed.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/lane.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Elements of y in one piece of work. */
enum { PIECE_ELEMENTS = 32 * 1024 };

/* An axis: the element o of y is the sum over its taps of weights[o * taps + t] * x[places[o * taps + t]]. */
typedef struct Axis {
    int64_t in, out, taps;
    int64_t *places;
    double *weights;
    bool is_same; /* y is x */
} Axis;

typedef struct InterpolationCall {
    const Interpolation *settings;
    View x, y; /* the image and the resized one, or their gradients */
    Axis axes[3];
    int64_t planes, rows; /* of y in a plane */
    int64_t rows_per_piece;
    int64_t slots; /* rows of x that one row of y needs */
    DType compute;
    atomic_bool no_memory;
} InterpolationCall;

/* ---- tables ---- */

/* Elements of x for one of y. */
static double step_of(const Interpolation *settings, const Axis *axis, double scale)
{
    if (settings->align_corners) {
        return axis->out > 1 ? (double)(axis->in - 1) / (double)(axis->out - 1) : 0;
    }
    /* a place behind the whole image is as good as any other, and the weights of a filter so wide are equal: what more would be
     * no number to compute with */
    const double most = (settings->filter ? 0x1p53 : 4) * (double)axis->in;
    return scale > 0 ? clamped(1 / scale, most) : (double)axis->in / (double)axis->out;
}

static double keys(double distance, double a)
{
    const double d = fabs(distance);
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static double filter_weight(InterpolationMode mode, double distance)
{
    const double d = fabs(distance);
    return mode == INTERPOLATE_CUBIC ? keys(d, -0.5) : d < 1 ? 1 - d : 0;
}

/* How far a filter reaches to either side. */
static double reach_of(InterpolationMode mode, double step)
{
    return (mode == INTERPOLATE_CUBIC ? 2 : 1) * (step > 1 ? step : 1);
}

static int64_t taps_of(const Interpolation *settings, const Axis *axis, double step)
{
    if (settings->filter) {
        return smaller((int64_t)clamped(ceil(reach_of(settings->mode, step)), (double)axis->in) * 2 + 1, axis->in);
    }
    return settings->mode == INTERPOLATE_CUBIC ? 4 : settings->mode == INTERPOLATE_LINEAR ? 2 : 1;
}

static void place_filter(const Interpolation *settings, const Axis *axis, double step, int64_t o, int64_t *places,
                         double *weights)
{
    const double centre = ((double)o + 0.5) * step, reach = reach_of(settings->mode, step), width = step > 1 ? step : 1;
    const int64_t first = (int64_t)clamped(centre - reach + 0.5, (double)axis->in);
    const int64_t last = (int64_t)clamped(centre + reach + 0.5, (double)axis->in);
    double sum = 0;
    for (int64_t t = 0; t < axis->taps; t++) {
        const bool counts = first + t < last;
        places[t] = smaller(first + t, axis->in - 1);
        weights[t] = counts ? filter_weight(settings->mode, ((double)(first + t) - centre + 0.5) / width) : 0;
        sum += weights[t];
    }
    for (int64_t t = 0; t < axis->taps && sum != 0; t++) {
        weights[t] /= sum;
    }
}

static void place_element(const Interpolation *settings, const Axis *axis, double step, double scale, int64_t o)
{
    int64_t *places = axis->places + o * axis->taps;
    double *weights = axis->weights + o * axis->taps;
    const int64_t last = axis->in - 1;
    double at = settings->align_corners ? (double)o * step : ((double)o + 0.5) * step - 0.5;
    if (settings->filter) {
        place_filter(settings, axis, step, o, places, weights);
    } else if (settings->mode == INTERPOLATE_CUBIC) {
        const double below = floor(at);
        for (int64_t t = 0; t < 4; t++) {
            const double place = below + (double)(t - 1);
            places[t] = (int64_t)clamped(place, (double)last);
            weights[t] = keys(at - place, -0.75);
        }
    } else if (settings->mode == INTERPOLATE_LINEAR) {
        at = clamped(at, (double)last);
        places[0] = (int64_t)at;
        places[1] = smaller(places[0] + 1, last);
        weights[1] = at - (double)places[0];
        weights[0] = 1 - weights[1];
    } else {
        /* in halves of elements; of the sizes it is exact */
        const int64_t halves = 2 * o + (settings->mode == INTERPOLATE_NEAREST_EXACT);
        const double rounding = settings->single ? 0x1p-23 : 0x1p-51; /* more than that of scale and of the quotient */
        places[0] = scale > 0 ? (int64_t)clamped(floor((double)halves / 2 / scale * (1 + rounding)), (double)last)
                              : halves * axis->in / (2 * axis->out);
        weights[0] = 1;
    }
}

static bool make_tables(InterpolationCall *call, char **memory)
{
    size_t size = 0;
    double steps[3];
    for (int k = 0; k < 3; k++) {
        Axis *axis = &call->axes[k];
        steps[k] = step_of(call->settings, axis, call->settings->scale[k]);
        axis->is_same = axis->in == axis->out && steps[k] == 1;
        axis->is_same = axis->is_same || (axis->in == 1 && axis->out == 1);
        axis->taps = axis->is_same ? 1 : taps_of(call->settings, axis, steps[k]);
        size += 2 * us_scratch_bytes(us_scratch_count(axis->out, axis->taps), sizeof(double));
    }
    *memory = us_scratch_take(size);
    if (*memory == NULL) {
        return false;
    }
    char *cursor = *memory;
    for (int k = 0; k < 3; k++) {
        Axis *axis = &call->axes[k];
        axis->places = us_scratch_part(&cursor, (size_t)(axis->out * axis->taps) * sizeof *axis->places);
        axis->weights = us_scratch_part(&cursor, (size_t)(axis->out * axis->taps) * sizeof *axis->weights);
        for (int64_t o = 0; o < axis->out; o++) {
            if (axis->is_same) {
                axis->places[o] = o;
                axis->weights[o] = 1;
            } else {
                place_element(call->settings, axis, steps[k], call->settings->scale[k], o);
            }
        }
    }
    return true;
}

/* ---- rows ---- */

static char *row_of(const View *view, int64_t plane, int64_t d, int64_t h)
{
    const int64_t channels = view->shape[1];
    const int64_t at = plane / channels * view->strides[0] + plane % channels * view->strides[1] +
                       d * view->strides[2] + h * view->strides[3];
    return (char *)view->data + at * (int64_t)us_dtype_size(view->dtype);
}

static void load_row(const InterpolationCall *call, const View *view, const void *row, void *to)
{
    us_lane_load(us_lane_of(call->compute), to, row, view->dtype, view->strides[4], view->shape[4]);
}

static void store_row(const InterpolationCall *call, const View *view, void *row, const void *from)
{
    us_lane_store(us_lane_of(call->compute), row, view->dtype, view->strides[4], from, view->shape[4]);
}

/* Rows d * height + h of a plane: one by one, or at once where they lie one behind another. */
static bool is_without_gaps(const View *view)
{
    return view->strides[3] == view->shape[4] * view->strides[4] &&
           (view->shape[2] == 1 || view->strides[2] == view->shape[3] * view->strides[3]);
}

static void load_plane(const InterpolationCall *call, const View *view, int64_t plane, char *to)
{
    const Lane lane = us_lane_of(call->compute);
    const int64_t rows = view->shape[2] * view->shape[3], at_once = is_without_gaps(view) ? rows : 1;
    for (int64_t row = 0; row < rows; row += at_once, to += view->shape[4] * (int64_t)us_dtype_size(call->compute)) {
        us_lane_load(lane, to, row_of(view, plane, row / view->shape[3], row % view->shape[3]), view->dtype, view->strides[4],
                     at_once * view->shape[4]);
    }
}

static void store_plane(const InterpolationCall *call, const View *view, int64_t plane, const char *from)
{
    const Lane lane = us_lane_of(call->compute);
    const int64_t rows = view->shape[2] * view->shape[3], at_once = is_without_gaps(view) ? rows : 1;
    for (int64_t row = 0; row < rows; row += at_once, from += view->shape[4] * (int64_t)us_dtype_size(call->compute)) {
        us_lane_store(lane, row_of(view, plane, row / view->shape[3], row % view->shape[3]), view->dtype, view->strides[4],
                      from, at_once * view->shape[4]);
    }
}

#define COMPUTE float
#define NAME(function) function##_float
#include "kernels/resample/interpolate.inc"
#undef COMPUTE
#undef NAME

#define COMPUTE double
#define NAME(function) function##_double
#include "kernels/resample/interpolate.inc"
#undef COMPUTE
#undef NAME

/* ---- calls ---- */

static KernelStatus run(const Interpolation *settings, const View *x, const View *y, bool gradient)
{
    InterpolationCall call = {.settings = settings, .x = *x, .y = *y, .planes = x->shape[0] * x->shape[1]};
    for (int k = 0; k < 3; k++) {
        call.axes[k] = (Axis){.in = x->shape[2 + k], .out = y->shape[2 + k]};
    }
    atomic_init(&call.no_memory, false);
    call.compute = x->dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    char *memory;
    if (!make_tables(&call, &memory)) {
        return KERNEL_NO_MEMORY;
    }
    const bool wide = call.compute == DTYPE_FLOAT64;
    call.rows = call.axes[0].out * call.axes[1].out;
    call.slots = call.axes[0].taps * call.axes[1].taps;
    const int64_t elements = larger(us_view_elements(x), us_view_elements(y));
    if (gradient) {
        run_pieces(call.planes, elements, wide ? gradient_plane_double : gradient_plane_float, &call);
    } else {
        const int64_t pieces = larger(smaller(call.rows * call.axes[2].out / PIECE_ELEMENTS, call.rows), 1);
        call.rows_per_piece = (call.rows + pieces - 1) / pieces;
        run_pieces((call.rows + call.rows_per_piece - 1) / call.rows_per_piece * call.planes, elements,
                   wide ? interpolate_piece_double : interpolate_piece_float, &call);
    }
    us_scratch_give_back(memory);
    return atomic_load(&call.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* Rows are made of several, of which some may have been written before. */
static KernelStatus interpolate_rows(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach_same(&detached, 1, views, 1, &views[1]);
    if (status == KERNEL_OK) {
        status = run(attributes, &detached.inputs[0], &views[1], false);
    }
    us_detach_end(&detached);
    return status;
}

static KernelStatus gradient_of_rows(const View *views, const void *attributes)
{
    return run(attributes, &views[1], &views[0], true);
}

KernelStatus us_interpolate(const View *views, const void *attributes)
{
    return us_run_on_rows(interpolate_rows, 1, 1, 2, views, attributes);
}

KernelStatus us_interpolate_gradient(const View *views, const void *attributes)
{
    return us_run_on_rows(gradient_of_rows, 1, 1, 2, views, attributes);
}
