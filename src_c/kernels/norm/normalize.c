#include "kernels/norm/normalize.h"

#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/axes.h"
#include "tensor/clones.h"
#include "tensor/levels.h"

#include <string.h>

/* Elements handled at a time; sums of a line; elements of a piece of work; ranges of lines that form sums of their own
 * for the parameters' gradients. */
enum { TILE = 1024, PARTS = 16, PIECE_ELEMENTS = 16384, RANGE_LIMIT = 32, OPERANDS = 6 };

/* What is fetched of a line while the one before it is computed. */
enum { FETCH_LIMIT = 16 * 1024 };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- loops ---- */

/* Sums in PARTS parts, so that their order does not depend on the instruction set: in two vectors, neither of which
 * waits for the other. */
typedef float HalfOfFloats __attribute__((vector_size(PARTS / 2 * sizeof(float))));
typedef double HalfOfParts __attribute__((vector_size(PARTS / 2 * sizeof(double))));

US_ALWAYS_INLINE double sum_of_parts(const HalfOfParts *halves)
{
    const HalfOfParts sums = halves[0] + halves[1];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* Not functions: these would return vectors that the lowest instruction set has not. */
#define HALF_OF_FLOATS(name, from) \
    HalfOfFloats name; \
    memcpy(&(name), (from), sizeof(name))
#define AS_PARTS(values) __builtin_convertvector(values, HalfOfParts)

/* Sums of x - centre, and of its square. */
KERNEL_CLONES static void sum_moments(const float *x, int64_t count, double centre, double *sum, double *square)
{
    HalfOfParts sums[2] = {{0}}, squares[2] = {{0}};
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            HALF_OF_FLOATS(floats, x + i + half * PARTS / 2);
            const HalfOfParts value = AS_PARTS(floats) - centre;
            sums[half] += value;
            squares[half] += value * value;
        }
    }
    double rest = 0, rest_square = 0;
    for (; i < count; i++) {
        const double value = (double)x[i] - centre;
        rest += value;
        rest_square += value * value;
    }
    *sum = sum_of_parts(sums) + rest;
    *square = sum_of_parts(squares) + rest_square;
}

/* What stands for every element of a line. The mean in two parts, so that a large one costs no digits. */
typedef struct LineNumbers {
    float mean, mean_rest, inverse;
} LineNumbers;

/* Parameters of neighbouring elements: one each, or one for all. */
typedef struct Segment {
    int64_t parameter, count;
    bool each;
} Segment;

US_ALWAYS_INLINE void normal_of(float *y, const float *x, Segment at, LineNumbers line, const float *scale,
                                const float *offset, bool each)
{
    for (int64_t i = 0; i < at.count; i++) {
        const float unit = ((x[i] - line.mean) - line.mean_rest) * line.inverse;
        y[i] = unit * scale[each ? i : 0] + offset[each ? i : 0];
    }
}

KERNEL_CLONES static void find_normal(float *y, const float *x, Segment at, LineNumbers line, const float *scale,
                                      const float *offset)
{
    if (at.each) {
        normal_of(y, x, at, line, scale, offset, true);
    } else {
        normal_of(y, x, at, line, scale, offset, false);
    }
}

KERNEL_CLONES static void apply_swish(float *y, int64_t count, float swish)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = y[i] * sigmoid_float(swish * y[i]);
    }
}

/* dy times the slope of v sigmoid(swish v): s (1 + z (1 - s)), z = swish v. */
KERNEL_CLONES static void apply_swish_slope(float *dy, const float *v, int64_t count, float swish)
{
    for (int64_t i = 0; i < count; i++) {
        dy[i] *= silu_slope_float(swish * v[i]);
    }
}

KERNEL_CLONES static void combine(float *t, const float *added, const float *bias, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++) {
        t[i] *= factor;
    }
    for (int64_t i = 0; added != NULL && i < count; i++) {
        t[i] += added[i];
    }
    for (int64_t i = 0; bias != NULL && i < count; i++) {
        t[i] += bias[i];
    }
}

/* What the elements of a line and of a segment add up to: g and g * u with g = dy * scale; dy and dy * u for the
 * parameters. */
typedef struct Slopes {
    HalfOfParts sums[2], products[2];
    double *for_offset, *for_scale;
} Slopes;

US_ALWAYS_INLINE void add_to(double *sums, const HalfOfParts *values)
{
    HalfOfParts before;
    memcpy(&before, sums, sizeof before);
    before += *values;
    memcpy(sums, &before, sizeof before);
}

/* Half of PARTS elements from the i-th on. */
US_ALWAYS_INLINE void add_half_of_slopes(Slopes *slopes, int half, const float *dy, const float *x, int64_t i,
                                         LineNumbers line, const float *scale, bool each)
{
    HALF_OF_FLOATS(elements, x + i);
    HALF_OF_FLOATS(floats, dy + i);
    const HalfOfFloats unit = ((elements - line.mean) - line.mean_rest) * line.inverse;
    const HalfOfParts slope = AS_PARTS(floats), product = slope * AS_PARTS(unit);
    if (!each) {
        slopes->sums[half] += slope;
        slopes->products[half] += product;
        return;
    }
    HALF_OF_FLOATS(scales, scale + i);
    const HalfOfParts factor = AS_PARTS(scales);
    slopes->sums[half] += slope * factor;
    slopes->products[half] += product * factor;
    add_to(slopes->for_offset + i, &slope);
    add_to(slopes->for_scale + i, &product);
}

US_ALWAYS_INLINE void add_slope(Slopes *slopes, const float *dy, const float *x, int64_t i, LineNumbers line,
                                const float *scale, bool each)
{
    const float unit = ((x[i] - line.mean) - line.mean_rest) * line.inverse;
    const double slope = (double)dy[i], product = slope * (double)unit, factor = each ? (double)scale[i] : 1;
    slopes->sums[0][0] += slope * factor;
    slopes->products[0][0] += product * factor;
    if (each) {
        slopes->for_offset[i] += slope;
        slopes->for_scale[i] += product;
    }
}

US_ALWAYS_INLINE void add_slopes(Slopes *to, const float *dy, const float *x, Segment at, LineNumbers line,
                                 const float *scale, bool each)
{
    Slopes slopes = *to; /* in registers */
    int64_t i = 0;
    for (; i + PARTS <= at.count; i += PARTS) {
        add_half_of_slopes(&slopes, 0, dy, x, i, line, scale, each);
        add_half_of_slopes(&slopes, 1, dy, x, i + PARTS / 2, line, scale, each);
    }
    for (; i < at.count; i++) {
        add_slope(&slopes, dy, x, i, line, scale, each);
    }
    *to = slopes;
}

KERNEL_CLONES static void sum_slopes(Slopes *slopes, const float *dy, const float *x, Segment at, LineNumbers line,
                                     const float *scale)
{
    if (at.each) {
        add_slopes(slopes, dy, x, at, line, scale, true);
        return;
    }
    Slopes own = {.for_offset = NULL};
    add_slopes(&own, dy, x, at, line, scale, false);
    const double sum = sum_of_parts(own.sums), product = sum_of_parts(own.products);
    slopes->sums[0][0] += sum * (double)scale[0];
    slopes->products[0][0] += product * (double)scale[0];
    slopes->for_offset[0] += sum;
    slopes->for_scale[0] += product;
}

US_ALWAYS_INLINE void gradient_of(float *dx, const float *dy, const float *x, Segment at, LineNumbers line,
                                  const float *scale, float mean_slope, float mean_product, bool each)
{
    for (int64_t i = 0; i < at.count; i++) {
        const float unit = ((x[i] - line.mean) - line.mean_rest) * line.inverse;
        dx[i] = ((dy[i] * scale[each ? i : 0] - mean_slope) - unit * mean_product) * line.inverse;
    }
}

KERNEL_CLONES static void find_gradient(float *dx, const float *dy, const float *x, Segment at, LineNumbers line,
                                        const float *scale, float mean_slope, float mean_product)
{
    if (at.each) {
        gradient_of(dx, dy, x, at, line, scale, mean_slope, mean_product, true);
    } else {
        gradient_of(dx, dy, x, at, line, scale, mean_slope, mean_product, false);
    }
}

/* ---- operands ---- */

/* Tensors of one shape, element by element in row-major order. */
typedef struct Tensors {
    Axes axes;
    View views[OPERANDS];
    bool contiguous[OPERANDS], packed[OPERANDS]; /* without gaps; float32 too */
} Tensors;

static void begin_tensors(Tensors *tensors, int count, const View *const *views, const View *model)
{
    const View *pointers[OPERANDS];
    tensors->axes = (Axes){0};
    for (int k = 0; k < count; k++) {
        const bool absent = us_view_is_absent(views[k]);
        tensors->views[k] = *views[k];
        pointers[k] = absent ? model : views[k];
        tensors->contiguous[k] = !absent && us_view_is_contiguous(views[k]);
        tensors->packed[k] = tensors->contiguous[k] && views[k]->dtype == DTYPE_FLOAT32;
    }
    us_axes_add(&tensors->axes, pointers, count, 0, model->rank);
}

static bool is_given(const Tensors *tensors, int k)
{
    return !us_view_is_absent(&tensors->views[k]);
}

/* Elements come into the cache before their turn. */
static void fetch(const Tensors *tensors, int k, int64_t begin, int64_t count, bool writes)
{
    const int64_t size = (int64_t)us_dtype_size(tensors->views[k].dtype);
    const char *from = (const char *)tensors->views[k].data + begin * size;
    for (int64_t byte = 0; tensors->contiguous[k] && byte < smaller(count * size, FETCH_LIMIT); byte += CACHE_LINE_BYTES) {
        if (writes) {
            __builtin_prefetch(from + byte, 1);
        } else {
            __builtin_prefetch(from + byte);
        }
    }
}

static void load(const Tensors *tensors, int k, int64_t begin, int64_t count, float *to)
{
    us_axes_load(&tensors->axes, k, tensors->views[k].data, tensors->views[k].dtype, begin, count, LANE_FLOAT, to);
}

static void store(const Tensors *tensors, int k, int64_t begin, int64_t count, const float *from)
{
    us_axes_store(&tensors->axes, k, tensors->views[k].data, tensors->views[k].dtype, begin, count, LANE_FLOAT, from);
}

/* One number of a view of any shape, by its row-major place. */
typedef struct Series {
    Axes axes;
    View view;
} Series;

static Series series_of(const View *view)
{
    Series series = {.view = *view};
    us_axes_add(&series.axes, &view, 1, 0, view->rank);
    return series;
}

static float series_load(const Series *series, int64_t at)
{
    float value = 0;
    us_axes_load(&series->axes, 0, series->view.data, series->view.dtype, at, 1, LANE_FLOAT, &value);
    return value;
}

static void series_store(const Series *series, int64_t at, double value)
{
    const float rounded = (float)value;
    if (!us_view_is_absent(&series->view)) {
        us_axes_store(&series->axes, 0, series->view.data, series->view.dtype, at, 1, LANE_FLOAT, &rounded);
    }
}

/* A parameter as float32: `fallback` where it is absent. */
static void load_parameter(const View *view, int64_t count, float fallback, float *values)
{
    if (!us_view_is_absent(view)) {
        const Series series = series_of(view);
        us_axes_load(&series.axes, 0, view->data, view->dtype, 0, count, LANE_FLOAT, values);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        values[i] = fallback;
    }
}

/* One call, forwards or backwards. */
typedef struct Work {
    Normalize norm;
    int64_t lines, range_lines, ranges; /* lines of a piece of work, and how many pieces */
    Tensors tensors;
    const float *scale, *offset;
    Series mean, inverse;
    double *partial;                   /* sums for the parameters' gradients: a range's for offset, then for scale */
    bool wants_input, out_of_memory;
} Work;

static Segment segment_at(const Normalize *norm, int64_t position, int64_t limit)
{
    const int64_t parameter = position / norm->parameter_run % norm->parameter_count;
    const int64_t left = norm->parameter_run == 1 ? norm->parameter_count - parameter
                                                  : norm->parameter_run - position % norm->parameter_run;
    limit = limit < TILE ? limit : TILE;
    return (Segment){parameter, left < limit ? left : limit, norm->parameter_run == 1};
}

static LineNumbers line_numbers(double mean, double inverse)
{
    const float rounded = (float)mean;
    return (LineNumbers){rounded, (float)(mean - (double)rounded), (float)inverse};
}

/* Without parameters one number stands for all elements. */
static void share_parameters(Normalize *norm, bool needed)
{
    if (!needed) {
        norm->parameter_run = INT64_MAX;
        norm->parameter_count = 1;
    }
}

/* The elements of a line: in place where they are float32 without gaps and nothing is done to them. */
enum { IN_X, IN_ADDED };
static const float *line_of_input(const Work *work, int k_bias, int64_t begin, float *space)
{
    const Tensors *tensors = &work->tensors;
    const bool adds = is_given(tensors, IN_ADDED), biased = k_bias >= 0 && is_given(tensors, k_bias);
    if (tensors->packed[IN_X] && !adds && !biased && work->norm.factor == 1) {
        return (const float *)tensors->views[IN_X].data + begin;
    }
    float added[TILE], bias[TILE];
    for (int64_t i = 0; i < work->norm.line; i += TILE) {
        const int64_t count = work->norm.line - i < TILE ? work->norm.line - i : TILE;
        load(tensors, IN_X, begin + i, count, space + i);
        if (adds) {
            load(tensors, IN_ADDED, begin + i, count, added);
        }
        if (biased) {
            load(tensors, k_bias, begin + i, count, bias);
        }
        if (adds || biased || work->norm.factor != 1) {
            combine(space + i, adds ? added : NULL, biased ? bias : NULL, count, (float)work->norm.factor);
        }
    }
    return space;
}

static void run_ranges(Work *work, ParallelBody *body)
{
    run_pieces(work->ranges, work->lines * work->norm.line, body, work);
}

static int64_t end_of_range(const Work *work, int64_t range)
{
    const int64_t end = (range + 1) * work->range_lines;
    return end < work->lines ? end : work->lines;
}

/* ---- forwards ---- */

enum { FORWARD_BIAS = 2, FORWARD_SUM, FORWARD_Y };

/* Tile by tile around one of its elements, then put together: in float64 nothing cancels that matters. */
static LineNumbers find_statistics(const Work *work, int64_t line, const float *x)
{
    const int64_t count = work->norm.line;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < count; i += TILE) {
        const int64_t size = count - i < TILE ? count - i : TILE;
        const double centre = work->norm.centred ? (double)x[i] : 0;
        double sum, squares;
        sum_moments(x + i, size, centre, &sum, &squares);
        if (!work->norm.centred) {
            square += squares;
            continue;
        }
        const double shift = sum / (double)size, away = centre + shift - mean;
        const double share = (double)size / (double)(i + size);
        const double own = squares - sum * shift;
        mean += away * share;
        square += (own > 0 || own != own ? own : 0) + away * away * (double)i * share;
    }
    const double inverse = 1 / sqrt(square / (double)count + work->norm.epsilon);
    series_store(&work->mean, line, mean);
    series_store(&work->inverse, line, inverse);
    return line_numbers(mean, inverse);
}

static void write_line(const Work *work, int64_t begin, const float *x, LineNumbers numbers)
{
    const Tensors *tensors = &work->tensors;
    float tile[TILE];
    for (int64_t i = 0; i < work->norm.line;) {
        const Segment at = segment_at(&work->norm, begin + i, work->norm.line - i);
        float *y = tensors->packed[FORWARD_Y] ? (float *)tensors->views[FORWARD_Y].data + begin + i : tile;
        find_normal(y, x + i, at, numbers, work->scale + at.parameter, work->offset + at.parameter);
        if (work->norm.activated) {
            apply_swish(y, at.count, (float)work->norm.swish);
        }
        if (y == tile) {
            store(tensors, FORWARD_Y, begin + i, at.count, y);
        }
        i += at.count;
    }
}

static void normalize_range(void *context, int64_t range)
{
    Work *work = context;
    float *space = us_scratch_take((size_t)work->norm.line * sizeof *space);
    if (space == NULL) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t line = range * work->range_lines; line < end_of_range(work, range); line++) {
        const int64_t begin = line * work->norm.line;
        const float *x = line_of_input(work, FORWARD_BIAS, begin, space);
        fetch(&work->tensors, IN_X, begin + work->norm.line, work->norm.line, false);
        fetch(&work->tensors, FORWARD_Y, begin, work->norm.line, true);
        const LineNumbers numbers = find_statistics(work, line, x);
        if (is_given(&work->tensors, FORWARD_SUM)) {
            store(&work->tensors, FORWARD_SUM, begin, work->norm.line, x);
        }
        write_line(work, begin, x, numbers);
    }
    us_scratch_give_back(space);
}

static Work work_of(const Normalize *norm, int64_t elements)
{
    Work work = {.norm = *norm, .lines = norm->line > 0 ? elements / norm->line : 0};
    work.range_lines = norm->line >= PIECE_ELEMENTS || norm->line == 0 ? 1 : PIECE_ELEMENTS / norm->line;
    work.ranges = (work.lines + work.range_lines - 1) / work.range_lines;
    return work;
}

KernelStatus us_normalize(const View *views, const void *attributes)
{
    Work work = work_of(attributes, us_view_elements(&views[0]));
    if (work.lines == 0) {
        return KERNEL_OK;
    }
    share_parameters(&work.norm, !us_view_is_absent(&views[3]) || !us_view_is_absent(&views[4]));
    begin_tensors(&work.tensors, 5, (const View *const[]){&views[0], &views[1], &views[2], &views[5], &views[6]},
                  &views[0]);
    const int64_t count = work.norm.parameter_count;
    float *parameters = us_scratch_take(2 * (size_t)count * sizeof *parameters);
    if (parameters == NULL) {
        return KERNEL_NO_MEMORY;
    }
    load_parameter(&views[3], count, 1, parameters);
    load_parameter(&views[4], count, 0, parameters + count);
    work.scale = parameters;
    work.offset = parameters + count;
    work.mean = series_of(&views[7]);
    work.inverse = series_of(&views[8]);
    run_ranges(&work, normalize_range);
    us_scratch_give_back(parameters);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- backwards ---- */

enum { BACKWARD_DY = 2, BACKWARD_PASSED, BACKWARD_FIRST, BACKWARD_SECOND };

/* dy of a line, times the activation's slope. */
static const float *line_of_slopes(const Work *work, int64_t begin, const float *x, LineNumbers numbers, float *space)
{
    const Tensors *tensors = &work->tensors;
    if (tensors->packed[BACKWARD_DY] && !work->norm.activated) {
        return (const float *)tensors->views[BACKWARD_DY].data + begin;
    }
    load(tensors, BACKWARD_DY, begin, work->norm.line, space);
    for (int64_t i = 0; work->norm.activated && i < work->norm.line;) {
        const Segment at = segment_at(&work->norm, begin + i, work->norm.line - i);
        float tile[TILE];
        find_normal(tile, x + i, at, numbers, work->scale + at.parameter, work->offset + at.parameter);
        apply_swish_slope(space + i, tile, at.count, (float)work->norm.swish);
        i += at.count;
    }
    return space;
}

static void store_gradient(const Work *work, int64_t begin, int64_t count, float *dx)
{
    const Tensors *tensors = &work->tensors;
    if (is_given(tensors, BACKWARD_PASSED)) {
        float passed[TILE];
        load(tensors, BACKWARD_PASSED, begin, count, passed);
        combine(dx, passed, NULL, count, 1);
    }
    if (is_given(tensors, BACKWARD_SECOND)) {
        store(tensors, BACKWARD_SECOND, begin, count, dx);
    }
    if (is_given(tensors, BACKWARD_FIRST)) {
        if (work->norm.factor != 1) {
            combine(dx, NULL, NULL, count, (float)work->norm.factor);
        }
        store(tensors, BACKWARD_FIRST, begin, count, dx);
    }
}

static void differentiate_line(const Work *work, int64_t line, float *spaces, double *for_offset, double *for_scale)
{
    const int64_t count = work->norm.line, begin = line * count;
    const double mean = work->norm.centred ? (double)series_load(&work->mean, line) : 0;
    const LineNumbers numbers = line_numbers(mean, (double)series_load(&work->inverse, line));
    const float *x = line_of_input(work, -1, begin, spaces);
    const float *dy = line_of_slopes(work, begin, x, numbers, spaces + count);
    fetch(&work->tensors, IN_X, begin + count, count, false);
    fetch(&work->tensors, BACKWARD_DY, begin + count, count, false);
    fetch(&work->tensors, BACKWARD_FIRST, begin, count, true);
    Slopes slopes = {.for_offset = NULL};
    for (int64_t i = 0; i < count;) {
        const Segment at = segment_at(&work->norm, begin + i, count - i);
        slopes.for_offset = for_offset + at.parameter;
        slopes.for_scale = for_scale + at.parameter;
        sum_slopes(&slopes, dy + i, x + i, at, numbers, work->scale + at.parameter);
        i += at.count;
    }
    const float mean_slope = work->norm.centred ? (float)(sum_of_parts(slopes.sums) / (double)count) : 0;
    const float mean_product = (float)(sum_of_parts(slopes.products) / (double)count);
    float tile[TILE];
    for (int64_t i = 0; work->wants_input && i < count;) {
        const Segment at = segment_at(&work->norm, begin + i, count - i);
        find_gradient(tile, dy + i, x + i, at, numbers, work->scale + at.parameter, mean_slope, mean_product);
        store_gradient(work, begin + i, at.count, tile);
        i += at.count;
    }
}

static void differentiate_range(void *context, int64_t range)
{
    Work *work = context;
    const int64_t parameters = work->norm.parameter_count;
    float *spaces = us_scratch_take(2 * (size_t)work->norm.line * sizeof *spaces);
    if (spaces == NULL) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
        return;
    }
    double *partial = work->partial + 2 * range * parameters;
    memset(partial, 0, 2 * (size_t)parameters * sizeof *partial);
    for (int64_t line = range * work->range_lines; line < end_of_range(work, range); line++) {
        differentiate_line(work, line, spaces, partial, partial + parameters);
    }
    us_scratch_give_back(spaces);
}

/* The ranges' sums, one after the other. */
static void store_sums(const Work *work, const View *view, int64_t first)
{
    if (us_view_is_absent(view)) {
        return;
    }
    const Series series = series_of(view);
    const int64_t parameters = work->norm.parameter_count;
    for (int64_t begin = 0; begin < parameters; begin += TILE) {
        const int64_t count = parameters - begin < TILE ? parameters - begin : TILE;
        double sums[TILE] = {0};
        float rounded[TILE];
        for (int64_t range = 0; range < work->ranges; range++) {
            const double *partial = work->partial + 2 * range * parameters + first + begin;
            for (int64_t i = 0; i < count; i++) {
                sums[i] += partial[i];
            }
        }
        for (int64_t i = 0; i < count; i++) {
            rounded[i] = (float)sums[i];
        }
        us_axes_store(&series.axes, 0, view->data, view->dtype, begin, count, LANE_FLOAT, rounded);
    }
}

/* So many that their sums take no more memory than the tensors do. */
static void choose_ranges(Work *work)
{
    const int64_t elements = work->lines * work->norm.line;
    int64_t ranges = elements / (4 * work->norm.parameter_count);
    ranges = ranges < RANGE_LIMIT ? ranges : RANGE_LIMIT;
    ranges = ranges < work->ranges ? ranges : work->ranges;
    ranges = ranges > 0 ? ranges : 1;
    work->range_lines = (work->lines + ranges - 1) / ranges;
    work->ranges = work->range_lines > 0 ? (work->lines + work->range_lines - 1) / work->range_lines : 0;
}

KernelStatus us_normalize_backward(const View *views, const void *attributes)
{
    Work work = work_of(attributes, us_view_elements(&views[0]));
    const bool wants_parameters = !us_view_is_absent(&views[10]) || !us_view_is_absent(&views[11]);
    share_parameters(&work.norm, wants_parameters || !us_view_is_absent(&views[4]) || !us_view_is_absent(&views[5]));
    begin_tensors(&work.tensors, 6,
                  (const View *const[]){&views[1], &views[2], &views[0], &views[3], &views[8], &views[9]}, &views[1]);
    const int64_t count = work.norm.parameter_count;
    choose_ranges(&work);
    const size_t sums = us_scratch_round(2 * (size_t)(count * (work.ranges + 1)) * sizeof(double));
    char *cursor = us_scratch_take(sums + 2 * us_scratch_round((size_t)count * sizeof(float))), *block = cursor;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.partial = us_scratch_part(&cursor, sums);
    float *scale = us_scratch_part(&cursor, (size_t)count * sizeof(float));
    float *offset = us_scratch_part(&cursor, (size_t)count * sizeof(float));
    load_parameter(&views[4], count, 1, scale);
    load_parameter(&views[5], count, 0, offset);
    work.scale = scale;
    work.offset = offset;
    work.mean = series_of(&views[6]);
    work.inverse = series_of(&views[7]);
    work.wants_input = !us_view_is_absent(&views[8]) || !us_view_is_absent(&views[9]);
    run_ranges(&work, differentiate_range);
    if (!work.out_of_memory) {
        store_sums(&work, &views[11], 0);
        store_sums(&work, &views[10], count);
    }
    us_scratch_give_back(block);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}
