#include "kernels/resample/grid_sample.h"
#include "kernels/resample/clamped.h"

#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Channels handled with one table of taps, where there are fewer images than threads; points loaded at a time; taps of a point
 * at most, and along an axis. */
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
    int64_t plane, points;
    int64_t groups, of_group; /* of channels */
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

/* Rows of a plane, `of_row` elements long: a plane without gaps is one row. */
typedef struct PlaneRows {
    char *first;
    int64_t count, of_row, step; /* step: of the elements */
} PlaneRows;

static PlaneRows rows_of(const View *view, int64_t image, int64_t channel)
{
    const int64_t *shape = view->shape, *strides = view->strides;
    PlaneRows rows = {.count = shape[2] * shape[3], .of_row = shape[4], .step = strides[4]};
    rows.first = (char *)view->data +
                 (image * strides[0] + channel * strides[1]) * (int64_t)us_dtype_size(view->dtype);
    if (strides[3] == shape[4] * strides[4] && (shape[2] == 1 || strides[2] == shape[3] * strides[3])) {
        rows.of_row *= rows.count;
        rows.count = 1;
    }
    return rows;
}

static char *row_at(const View *view, const PlaneRows *rows, int64_t row)
{
    const int64_t at = row / view->shape[3] * view->strides[2] + row % view->shape[3] * view->strides[3];
    return rows->first + at * (int64_t)us_dtype_size(view->dtype);
}

static void load_plane(const View *view, int64_t image, int64_t channel, double *values)
{
    const PlaneRows rows = rows_of(view, image, channel);
    for (int64_t row = 0; rows.of_row > 0 && row < rows.count; row++) {
        us_load_double(values + row * rows.of_row, row_at(view, &rows, row), view->dtype, rows.step, rows.of_row);
    }
}

static void store_plane(const View *view, int64_t image, int64_t channel, const double *values)
{
    const PlaneRows rows = rows_of(view, image, channel);
    for (int64_t row = 0; rows.of_row > 0 && row < rows.count; row++) {
        us_store_double(row_at(view, &rows, row), view->dtype, rows.step, values + row * rows.of_row, rows.of_row);
    }
}

/* ---- taps of all points, whose number is known where these are compiled ---- */

US_ALWAYS_INLINE double tapped(const Table *table, const double *weights, const double *x, int64_t point, int taps)
{
    double sum = 0;
    for (int64_t tap = point * taps; tap < (point + 1) * taps; tap++) {
        sum += weights[tap] * x[table->places[tap]];
    }
    return sum;
}

US_ALWAYS_INLINE void sample_points(const Table *table, const double *x, double *y, int64_t points, int taps)
{
    for (int64_t point = 0; point < points; point++) {
        y[point] = tapped(table, table->weights, x, point, taps);
    }
}

/* A channel's share of one number of the gradient by the grid. */
US_ALWAYS_INLINE void add_slopes(const Table *table, int32_t number, int32_t axes, const double *x, const double *dy,
                                 double *dgrid, int64_t points, int taps)
{
    for (int64_t point = 0; point < points; point++) {
        dgrid[point * axes + number] += tapped(table, table->slopes[number], x, point, taps) * dy[point];
    }
}

US_ALWAYS_INLINE void scatter_points(const Table *table, const double *dy, double *x, int64_t points, int taps)
{
    for (int64_t point = 0; point < points; point++) {
        for (int64_t tap = point * taps; tap < (point + 1) * taps; tap++) {
            x[table->places[tap]] += table->weights[tap] * dy[point];
        }
    }
}

#define FOR_TAPS(loop, ...) \
    switch (table->taps) { \
    case 1: loop(__VA_ARGS__, 1); break; \
    case 4: loop(__VA_ARGS__, 4); break; \
    case 8: loop(__VA_ARGS__, 8); break; \
    default: loop(__VA_ARGS__, TAPS); break; \
    }

static void sample_all(const Table *table, const double *x, double *y, int64_t points)
{
    FOR_TAPS(sample_points, table, x, y, points)
}

static void add_all_slopes(const Table *table, int32_t number, int32_t axes, const double *x, const double *dy, double *dgrid,
                           int64_t points)
{
    FOR_TAPS(add_slopes, table, number, axes, x, dy, dgrid, points)
}

static void scatter_all(const Table *table, const double *dy, double *x, int64_t points)
{
    FOR_TAPS(scatter_points, table, dy, x, points)
}

/* ---- calls ---- */

static void sample_group(void *context, int64_t piece)
{
    Sampler *sampler = context;
    const int64_t image = piece / sampler->groups, first = piece % sampler->groups * sampler->of_group;
    const int64_t last = smaller(sampler->x.shape[1], first + sampler->of_group);
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
        sample_all(&table, x, y, sampler->points);
        store_plane(&sampler->y, image, channel, y);
    }
    us_scratch_give_back(memory);
}

static void gradient_image(void *context, int64_t image)
{
    Sampler *sampler = context;
    const bool to_x = !us_view_is_absent(&sampler->dx), to_grid = !us_view_is_absent(&sampler->dgrid);
    const bool slopes = to_grid && sampler->settings->mode != SAMPLE_NEAREST; /* which has none */
    const size_t plane = us_scratch_bytes(sampler->plane + 1, sizeof(double));
    const size_t line = us_scratch_bytes(sampler->points, sizeof(double));
    char *memory = us_scratch_take(table_size(sampler, slopes) + plane + line * (size_t)(1 + sampler->axes));
    if (memory == NULL) {
        atomic_store(&sampler->no_memory, true);
        return;
    }
    char *cursor = memory;
    const Table table = make_table(sampler, image, slopes, &cursor);
    double *x = us_scratch_part(&cursor, plane), *dy = us_scratch_part(&cursor, line);
    double *dgrid = (double *)(void *)cursor;
    memset(dgrid, 0, (size_t)(sampler->points * sampler->axes) * sizeof *dgrid);
    for (int64_t channel = 0; channel < sampler->x.shape[1]; channel++) {
        load_plane(&sampler->y, image, channel, dy);
        if (slopes) {
            load_plane(&sampler->x, image, channel, x);
            x[sampler->plane] = 0;
            for (int32_t number = 0; number < sampler->axes; number++) {
                add_all_slopes(&table, number, sampler->axes, x, dy, dgrid, sampler->points);
            }
        }
        if (to_x) {
            memset(x, 0, plane);
            scatter_all(&table, dy, x, sampler->points);
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
    const int64_t channels = sampler->x.shape[1];
    sampler->of_group = sampler->x.shape[0] >= us_parallel_threads() ? larger(channels, 1) : CHANNELS;
    sampler->groups = ceiling(channels, sampler->of_group);
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
