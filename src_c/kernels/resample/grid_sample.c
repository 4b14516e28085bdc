#include "kernels/resample/grid_sample.h"
#include "kernels/resample/clamped.h"

#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Channels handled with one table of taps; points loaded at a time; taps of a point at most, and along an axis. */
enum { CHANNELS = 16, POINTS = 256, TAPS = 16, AXIS_TAPS = 4, AXES = 3 };

/* What an image has to do with the points: for each of them `taps` places in a plane, their weights, and the slopes of
 * these by the point's numbers. Place `plane` stands for what is outside: a zero. */
typedef struct Table {
    int64_t taps;
    int64_t *places;
    double *weights, *slopes[AXES];
} Table;

typedef struct Sampler {
    const GridSample *settings;
    View x, grid, y, dx, dgrid; /* y, or its gradient */
    int64_t size[AXES];         /* of x: d, h, w */
    int64_t plane, points, groups;
    int32_t axes;
    atomic_bool no_memory;
} Sampler;

/* ---- one axis ---- */

typedef struct AxisTaps {
    int count;
    int64_t places[AXIS_TAPS]; /* -1: outside */
    double weights[AXIS_TAPS], slopes[AXIS_TAPS];
} AxisTaps;

/* The coordinate that stands for one outside; *slope is that of the result by it. */
static double padded(const GridSample *settings, double at, int64_t size, double *slope)
{
    *slope = 1;
    if (settings->padding == SAMPLE_REFLECTION) {
        const double low = settings->align_corners ? 0 : -0.5;
        const double span = settings->align_corners ? (double)(size - 1) : (double)size;
        if (span == 0) {
            *slope = 0;
            return 0;
        }
        const double distance = fabs(at - low), rest = fmod(distance, span);
        const bool turned = fmod(floor(distance / span), 2) != 0;
        *slope = (at < low) != turned ? -1 : 1;
        at = (turned ? span - rest : rest) + low;
    }
    if (settings->padding != SAMPLE_ZEROS) {
        const double last = (double)(size - 1);
        *slope *= at > 0 && at < last ? 1 : 0;
        at = clamped(at, last);
    }
    return at;
}

static int64_t place_of(double at, int64_t size)
{
    return at >= 0 && at < (double)size ? (int64_t)at : -1;
}

static double keys_near(double d) /* |d| <= 1 */
{
    return ((-0.75 + 2) * d - (-0.75 + 3)) * d * d + 1;
}

static double keys_far(double d) /* 1 <= |d| <= 2 */
{
    return ((-0.75 * d + 5 * 0.75) * d - 8 * 0.75) * d + 4 * 0.75;
}

static double keys_slope(double d)
{
    const double a = -0.75, m = fabs(d);
    const double slope = m <= 1 ? (3 * (a + 2) * m - 2 * (a + 3)) * m : (3 * a * m - 10 * a) * m + 8 * a;
    return d < 0 ? -slope : slope;
}

static AxisTaps taps_of(const GridSample *settings, double number, int64_t size)
{
    const double per_number = settings->align_corners ? (double)(size - 1) / 2 : (double)size / 2;
    double at = settings->align_corners ? (number + 1) / 2 * (double)(size - 1) : ((number + 1) * (double)size - 1) / 2;
    double slope;
    AxisTaps taps = {0};
    if (settings->mode == SAMPLE_CUBIC) {
        const double below = floor(at), t = at - below;
        taps.count = 4;
        for (int i = 0; i < 4; i++) {
            const double distance = t - (i - 1);
            taps.places[i] = place_of(padded(settings, below + (i - 1), size, &slope), size);
            taps.weights[i] = fabs(distance) <= 1 ? keys_near(fabs(distance)) : keys_far(fabs(distance));
            taps.slopes[i] = keys_slope(distance) * per_number;
        }
        return taps;
    }
    at = padded(settings, at, size, &slope);
    if (settings->mode == SAMPLE_NEAREST) {
        taps.count = 1;
        taps.places[0] = place_of(rint(at), size);
        taps.weights[0] = 1;
        return taps;
    }
    const double below = floor(at);
    taps.count = 2;
    for (int i = 0; i < 2; i++) {
        taps.places[i] = place_of(below + i, size);
        taps.weights[i] = i == 0 ? 1 - (at - below) : at - below;
        taps.slopes[i] = (i == 0 ? -1 : 1) * slope * per_number;
    }
    return taps;
}

/* ---- points ---- */

/* The taps of a point are the products of those of its axes. */
static void place_point(const Sampler *sampler, const double *numbers, int64_t point, const Table *table)
{
    AxisTaps axes[AXES];
    for (int axis = 0; axis < AXES; axis++) {
        const int number = AXES - 1 - axis; /* the first number is along the last axis */
        axes[axis] = number < sampler->axes ? taps_of(sampler->settings, numbers[number], sampler->size[axis])
                                            : (AxisTaps){.count = 1, .weights = {1}};
    }
    int64_t at = point * table->taps;
    for (int i = 0; i < axes[0].count; i++) {
        for (int j = 0; j < axes[1].count; j++) {
            for (int k = 0; k < axes[2].count; k++, at++) {
                const double wd = axes[0].weights[i], wh = axes[1].weights[j], ww = axes[2].weights[k];
                const bool outside = axes[0].places[i] < 0 || axes[1].places[j] < 0 || axes[2].places[k] < 0;
                table->places[at] = outside ? sampler->plane
                                            : (axes[0].places[i] * sampler->size[1] + axes[1].places[j]) *
                                                  sampler->size[2] + axes[2].places[k];
                table->weights[at] = outside ? 0 : wd * wh * ww;
                const double slopes[AXES] = {wd * wh * axes[2].slopes[k], wd * axes[1].slopes[j] * ww,
                                             axes[0].slopes[i] * wh * ww};
                for (int number = 0; number < sampler->axes && table->slopes[number] != NULL; number++) {
                    table->slopes[number][at] = outside ? 0 : slopes[number];
                }
            }
        }
    }
}

static int64_t taps_per_point(const Sampler *sampler)
{
    const SampleMode mode = sampler->settings->mode;
    return mode == SAMPLE_NEAREST ? 1 : mode == SAMPLE_CUBIC ? TAPS : INT64_C(1) << sampler->axes;
}

static size_t table_size(const Sampler *sampler, bool with_slopes)
{
    const size_t column = us_scratch_bytes(sampler->points, (size_t)taps_per_point(sampler) * sizeof(double));
    return column * (2 + (with_slopes ? (size_t)sampler->axes : 0));
}

static Table make_table(const Sampler *sampler, int64_t image, bool with_slopes, char **cursor)
{
    Table table = {.taps = taps_per_point(sampler)};
    const size_t bytes = us_scratch_bytes(sampler->points, (size_t)table.taps * sizeof(double));
    table.places = us_scratch_part(cursor, bytes);
    table.weights = us_scratch_part(cursor, bytes);
    for (int32_t number = 0; with_slopes && number < sampler->axes; number++) {
        table.slopes[number] = us_scratch_part(cursor, bytes);
    }
    double numbers[AXES * POINTS];
    for (int64_t first = 0; first < sampler->points; first += POINTS) {
        const int64_t count = sampler->points - first < POINTS ? sampler->points - first : POINTS;
        us_linear_load_double(&sampler->grid, (image * sampler->points + first) * sampler->axes, count * sampler->axes,
                              numbers);
        for (int64_t i = 0; i < count; i++) {
            place_point(sampler, numbers + i * sampler->axes, first + i, &table);
        }
    }
    return table;
}

/* ---- planes ---- */

static char *row_of(const View *view, int64_t image, int64_t channel, int64_t row)
{
    const int64_t at = image * view->strides[0] + channel * view->strides[1] +
                       row / view->shape[3] * view->strides[2] + row % view->shape[3] * view->strides[3];
    return (char *)view->data + at * (int64_t)us_dtype_size(view->dtype);
}

static void load_plane(const View *view, int64_t image, int64_t channel, double *values)
{
    for (int64_t row = 0; view->shape[4] > 0 && row < view->shape[2] * view->shape[3]; row++) {
        us_load_double(values + row * view->shape[4], row_of(view, image, channel, row), view->dtype, view->strides[4],
                       view->shape[4]);
    }
}

static void store_plane(const View *view, int64_t image, int64_t channel, const double *values)
{
    for (int64_t row = 0; row < view->shape[2] * view->shape[3]; row++) {
        us_store_double(row_of(view, image, channel, row), view->dtype, view->strides[4], values + row * view->shape[4],
                        view->shape[4]);
    }
}

/* ---- calls ---- */

static void sample_group(void *context, int64_t piece)
{
    Sampler *sampler = context;
    const int64_t image = piece / sampler->groups, first = piece % sampler->groups * CHANNELS;
    const int64_t channels = sampler->x.shape[1], last = channels - first < CHANNELS ? channels : first + CHANNELS;
    const size_t plane = us_scratch_bytes(sampler->plane + 1, sizeof(double));
    char *memory = us_scratch_take(table_size(sampler, false) + plane + us_scratch_bytes(sampler->points, sizeof(double)));
    if (memory == NULL) {
        atomic_store(&sampler->no_memory, true);
        return;
    }
    char *cursor = memory;
    const Table table = make_table(sampler, image, false, &cursor);
    double *x = us_scratch_part(&cursor, plane), *y = (double *)(void *)cursor;
    x[sampler->plane] = 0;
    for (int64_t channel = first; channel < last; channel++) {
        load_plane(&sampler->x, image, channel, x);
        for (int64_t point = 0; point < sampler->points; point++) {
            double sum = 0;
            for (int64_t tap = point * table.taps; tap < (point + 1) * table.taps; tap++) {
                sum += table.weights[tap] * x[table.places[tap]];
            }
            y[point] = sum;
        }
        store_plane(&sampler->y, image, channel, y);
    }
    us_scratch_give_back(memory);
}

/* A channel's share of the gradient by the grid. */
static void add_slopes(const Sampler *sampler, const Table *table, const double *x, const double *dy, double *dgrid)
{
    for (int64_t point = 0; point < sampler->points; point++) {
        for (int32_t number = 0; number < sampler->axes; number++) {
            double sum = 0;
            for (int64_t tap = point * table->taps; tap < (point + 1) * table->taps; tap++) {
                sum += table->slopes[number][tap] * x[table->places[tap]];
            }
            dgrid[point * sampler->axes + number] += sum * dy[point];
        }
    }
}

static void gradient_image(void *context, int64_t image)
{
    Sampler *sampler = context;
    const bool to_x = !us_view_is_absent(&sampler->dx), to_grid = !us_view_is_absent(&sampler->dgrid);
    const size_t plane = us_scratch_bytes(sampler->plane + 1, sizeof(double));
    const size_t line = us_scratch_bytes(sampler->points, sizeof(double));
    char *memory = us_scratch_take(table_size(sampler, to_grid) + plane + line * (size_t)(1 + sampler->axes));
    if (memory == NULL) {
        atomic_store(&sampler->no_memory, true);
        return;
    }
    char *cursor = memory;
    const Table table = make_table(sampler, image, to_grid, &cursor);
    double *x = us_scratch_part(&cursor, plane), *dy = us_scratch_part(&cursor, line);
    double *dgrid = (double *)(void *)cursor;
    memset(dgrid, 0, (size_t)(sampler->points * sampler->axes) * sizeof *dgrid);
    for (int64_t channel = 0; channel < sampler->x.shape[1]; channel++) {
        load_plane(&sampler->y, image, channel, dy);
        if (to_grid) {
            load_plane(&sampler->x, image, channel, x);
            x[sampler->plane] = 0;
            add_slopes(sampler, &table, x, dy, dgrid);
        }
        if (to_x) {
            memset(x, 0, plane);
            for (int64_t tap = 0; tap < sampler->points * table.taps; tap++) {
                x[table.places[tap]] += table.weights[tap] * dy[tap / table.taps];
            }
            store_plane(&sampler->dx, image, channel, x);
        }
    }
    if (to_grid) {
        us_linear_store_double(&sampler->dgrid, image * sampler->points * sampler->axes,
                               sampler->points * sampler->axes, dgrid);
    }
    us_scratch_give_back(memory);
}

/* Absent, or without elements. */
static bool is_nothing(const View *result)
{
    return us_view_is_absent(result) || us_view_is_empty(result);
}

static KernelStatus run(Sampler *sampler, bool forward)
{
    if (forward ? is_nothing(&sampler->y) : is_nothing(&sampler->dx) && is_nothing(&sampler->dgrid)) {
        return KERNEL_OK; /* of any number of images, of any size */
    }
    sampler->plane = sampler->points = 1;
    for (int axis = 0; axis < AXES; axis++) {
        sampler->size[axis] = sampler->x.shape[2 + axis];
        if (__builtin_mul_overflow(sampler->plane, sampler->size[axis], &sampler->plane) ||
            __builtin_mul_overflow(sampler->points, sampler->y.shape[2 + axis], &sampler->points)) {
            return KERNEL_NO_MEMORY; /* of images without channels */
        }
    }
    sampler->axes = (int32_t)sampler->grid.shape[4];
    sampler->groups = (sampler->x.shape[1] + CHANNELS - 1) / CHANNELS;
    atomic_init(&sampler->no_memory, false);
    run_pieces(sampler->x.shape[0] * (forward ? sampler->groups : 1), us_view_elements(&sampler->y),
               forward ? sample_group : gradient_image, sampler);
    return atomic_load(&sampler->no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_grid_sample(const View *views, const void *attributes)
{
    Sampler sampler = {.settings = attributes, .x = views[0], .grid = views[1], .y = views[2]};
    return run(&sampler, true);
}

KernelStatus us_grid_sample_gradient(const View *views, const void *attributes)
{
    Sampler sampler = {.settings = attributes, .y = views[0], .x = views[1], .grid = views[2], .dx = views[3],
                       .dgrid = views[4]};
    return run(&sampler, false);
}
