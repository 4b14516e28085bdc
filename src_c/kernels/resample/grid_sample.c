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

/* Channels handled with one table of taps, where there are fewer images than threads; points handled side by side; taps
 * of a point at most, and along an axis. */
enum { CHANNELS = 16, POINTS = 64, TAPS = 16, AXIS_TAPS = 4, AXES = 3 };

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

/* A loop over POINTS, as many as are there or not. */
#define EACH_POINT(p) _Pragma("GCC ivdep") for (int p = 0; p < POINTS; p++)

typedef struct AxisTaps {
    int count;
    double places[AXIS_TAPS][POINTS]; /* -1: outside */
    double weights[AXIS_TAPS][POINTS], slopes[AXIS_TAPS][POINTS];
} AxisTaps;

/* The coordinate that a reflection takes for one outside; *slope is that of the result by it. */
static double reflected(const GridSample *settings, double at, int64_t size, double *slope)
{
    const double low = settings->align_corners ? 0 : -0.5;
    const double span = settings->align_corners ? (double)(size - 1) : (double)size;
    if (span == 0) {
        *slope = 0;
        return 0;
    }
    const double distance = fabs(at - low), rest = fmod(distance, span);
    const bool turned = fmod(floor(distance / span), 2) != 0;
    *slope = (at < low) != turned ? -1 : 1;
    return (turned ? span - rest : rest) + low;
}

/* The same of whatever stands for coordinates outside. */
static void pad(const GridSample *settings, int64_t size, double *at, double *slopes)
{
    const double last = (double)(size - 1);
    EACH_POINT(p) { slopes[p] = 1; }
    for (int p = 0; p < POINTS && settings->padding == SAMPLE_REFLECTION; p++) {
        at[p] = reflected(settings, at[p], size, &slopes[p]);
    }
    if (settings->padding != SAMPLE_ZEROS) {
        EACH_POINT(p)
        {
            slopes[p] *= (at[p] > 0) & (at[p] < last) ? 1 : 0;
            at[p] = clamped(at[p], last);
        }
    }
}

static void place(const double *at, int64_t size, double *places)
{
    const double end = (double)size;
    EACH_POINT(p) { places[p] = (at[p] >= 0) & (at[p] < end) ? floor(at[p]) : -1; }
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

static void place_cubic(const GridSample *settings, const double *at, int64_t size, double per_number, AxisTaps *taps)
{
    double tap[POINTS], unused[POINTS];
    taps->count = 4;
    for (int i = 0; i < 4; i++) {
        EACH_POINT(p)
        {
            const double below = floor(at[p]), distance = at[p] - below - (i - 1), far = fabs(distance);
            tap[p] = below + (i - 1);
            taps->weights[i][p] = far <= 1 ? keys_near(far) : keys_far(far);
            taps->slopes[i][p] = keys_slope(distance) * per_number;
        }
        pad(settings, size, tap, unused);
        place(tap, size, taps->places[i]);
    }
}

static void place_linear(const double *at, const double *slopes, int64_t size, double per_number, AxisTaps *taps)
{
    double tap[POINTS];
    taps->count = 2;
    for (int i = 0; i < 2; i++) {
        EACH_POINT(p)
        {
            const double below = floor(at[p]), rest = at[p] - below;
            tap[p] = below + i;
            taps->weights[i][p] = i == 0 ? 1 - rest : rest;
            taps->slopes[i][p] = (i == 0 ? -1 : 1) * slopes[p] * per_number;
        }
        place(tap, size, taps->places[i]);
    }
}

static void place_nearest(double *at, int64_t size, AxisTaps *taps)
{
    taps->count = 1;
    EACH_POINT(p)
    {
        at[p] = rint(at[p]);
        taps->weights[0][p] = 1;
        taps->slopes[0][p] = 0;
    }
    place(at, size, taps->places[0]);
}

static void place_along(const GridSample *settings, const double *numbers, int64_t size, AxisTaps *taps)
{
    const double last = (double)(size - 1), all = (double)size, per_number = (settings->align_corners ? last : all) / 2;
    double at[POINTS], slopes[POINTS];
    if (settings->align_corners) {
        EACH_POINT(p) { at[p] = (numbers[p] + 1) / 2 * last; }
    } else {
        EACH_POINT(p) { at[p] = ((numbers[p] + 1) * all - 1) / 2; }
    }
    if (settings->mode == SAMPLE_CUBIC) {
        place_cubic(settings, at, size, per_number, taps);
        return;
    }
    pad(settings, size, at, slopes);
    if (settings->mode == SAMPLE_NEAREST) {
        place_nearest(at, size, taps);
    } else {
        place_linear(at, slopes, size, per_number, taps);
    }
}

/* An axis that the points have no number for. */
static void place_at_first(AxisTaps *taps)
{
    taps->count = 1;
    EACH_POINT(p)
    {
        taps->places[0][p] = taps->slopes[0][p] = 0;
        taps->weights[0][p] = 1;
    }
}

/* ---- points ---- */

/* One tap of points: the product of those of their axes, i, j and k. */
static void put_tap(const Sampler *sampler, const AxisTaps *axes, const int *ijk, int64_t points, int64_t at,
                    const Table *table)
{
    const double *const places[AXES] = {axes[0].places[ijk[0]], axes[1].places[ijk[1]], axes[2].places[ijk[2]]};
    const double *const weights[AXES] = {axes[0].weights[ijk[0]], axes[1].weights[ijk[1]], axes[2].weights[ijk[2]]};
    const double rows = (double)sampler->size[1], columns = (double)sampler->size[2], plane = (double)sampler->plane;
    const int64_t taps = table->taps;
    bool outside[POINTS];
    for (int64_t p = 0; p < points; p++) {
        outside[p] = (places[0][p] < 0) | (places[1][p] < 0) | (places[2][p] < 0);
        const double inside = (places[0][p] * rows + places[1][p]) * columns + places[2][p];
        table->places[at + p * taps] = (int64_t)(outside[p] ? plane : inside);
        table->weights[at + p * taps] = outside[p] ? 0 : weights[0][p] * weights[1][p] * weights[2][p];
    }
    for (int number = 0; number < sampler->axes && table->slopes[number] != NULL; number++) {
        const double *factors[AXES] = {weights[0], weights[1], weights[2]};
        factors[AXES - 1 - number] = axes[AXES - 1 - number].slopes[ijk[AXES - 1 - number]];
        for (int64_t p = 0; p < points; p++) {
            table->slopes[number][at + p * taps] = outside[p] ? 0 : factors[0][p] * factors[1][p] * factors[2][p];
        }
    }
}

/* `numbers` of a point lie together. */
static void place_points(const Sampler *sampler, const double *numbers, int64_t first, int64_t points,
                         const Table *table)
{
    AxisTaps axes[AXES];
    double along[POINTS] = {0};
    for (int axis = 0; axis < AXES; axis++) {
        const int number = AXES - 1 - axis; /* the first number is along the last axis */
        if (number >= sampler->axes) {
            place_at_first(&axes[axis]);
            continue;
        }
        for (int64_t p = 0; p < points; p++) {
            along[p] = numbers[p * sampler->axes + number];
        }
        place_along(sampler->settings, along, sampler->size[axis], &axes[axis]);
    }
    int64_t at = first * table->taps;
    for (int i = 0; i < axes[0].count; i++) {
        for (int j = 0; j < axes[1].count; j++) {
            for (int k = 0; k < axes[2].count; k++, at++) {
                put_tap(sampler, axes, (const int[]){i, j, k}, points, at, table);
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
        place_points(sampler, numbers, first, count, &table);
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
