#include "kernels/norm/normalize.h"

#include "kernels/map/formulas.h"
#include "kernels/move/copy_view.h"
#include "kernels/norm/normal_loops.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"

#include <math.h>
#include <string.h>

/* Elements handled at a time; elements of a piece of work; ranges of lines that form sums of their own for the parameters'
 * gradients; how far ahead is fetched; lines of less bytes are turned into columns; runs of no more elements are taken
 * together. */
enum { TILE = 1024, PIECE_ELEMENTS = 16384, RANGE_LIMIT = 32, OPERANDS = 6, AHEAD_BYTES = 2048, SHORT_LINE = 512,
       SHORT_RUN = 256 };

/* ---- operands ---- */

/* Tensors of one shape, element by element in row-major order. Loops see elements of `dtype`: in place where a tensor is
 * `packed`, else by way of float32. */
typedef struct Tensors {
    Axes axes;
    View views[OPERANDS];
    DType dtype;
    bool contiguous[OPERANDS], packed[OPERANDS]; /* without gaps; and of `dtype` */
} Tensors;

/* The type of all that is given, if that is among the tensors of `plain`, bits, which nothing but the loops computes. */
static DType type_of_loops(const Tensors *tensors, int count, unsigned plain)
{
    const DType dtype = tensors->views[0].dtype;
    for (int k = 0; k < count; k++) {
        const bool fits = plain >> k & 1 && tensors->contiguous[k] && tensors->views[k].dtype == dtype;
        if (!us_view_is_absent(&tensors->views[k]) && !fits) {
            return DTYPE_FLOAT32;
        }
    }
    return us_normal_loops(dtype) == NULL ? DTYPE_FLOAT32 : dtype;
}

static void begin_tensors(Tensors *tensors, int count, const View *const *views, const View *model, unsigned plain)
{
    const View *pointers[OPERANDS];
    tensors->axes = (Axes){0};
    for (int k = 0; k < count; k++) {
        const bool absent = us_view_is_absent(views[k]);
        tensors->views[k] = *views[k];
        pointers[k] = absent ? model : views[k];
        tensors->contiguous[k] = !absent && us_view_is_contiguous(views[k]);
    }
    tensors->dtype = type_of_loops(tensors, count, plain);
    for (int k = 0; k < count; k++) {
        tensors->packed[k] = tensors->contiguous[k] && views[k]->dtype == tensors->dtype;
    }
    us_axes_add(&tensors->axes, pointers, count, 0, model->rank);
}

static bool is_given(const Tensors *tensors, int k)
{
    return !us_view_is_absent(&tensors->views[k]);
}

static char *place_of(const Tensors *tensors, int k, int64_t index)
{
    return (char *)tensors->views[k].data + index * (int64_t)us_dtype_size(tensors->views[k].dtype);
}

/* Among elements as loops see them. */
static const void *element(const Tensors *tensors, const void *elements, int64_t index)
{
    return (const char *)elements + index * (int64_t)us_dtype_size(tensors->dtype);
}

/* What is fetched while elements from `begin` on are computed. */
static Ahead ahead_of(const Tensors *tensors, int k, int64_t begin)
{
    if (!tensors->contiguous[k]) {
        return (Ahead){tensors, 0};
    }
    const uintptr_t place = (uintptr_t)place_of(tensors, k, begin) + AHEAD_BYTES;
    return (Ahead){(const void *)place, (int64_t)us_dtype_size(tensors->views[k].dtype)};
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

/* Statistics of NORMAL_COLUMNS lines are stored and loaded together. */
static void store_statistics(const Series *series, int64_t at, int64_t count, const double *values)
{
    float rounded[NORMAL_COLUMNS];
    for (int64_t i = 0; i < count; i++) {
        rounded[i] = (float)values[i];
    }
    if (!us_view_is_absent(&series->view)) {
        us_axes_store(&series->axes, 0, series->view.data, series->view.dtype, at, count, LANE_FLOAT, rounded);
    }
}

static void load_statistics(const Series *series, int64_t at, int64_t count, float *values)
{
    memset(values, 0, NORMAL_COLUMNS * sizeof *values);
    us_axes_load(&series->axes, 0, series->view.data, series->view.dtype, at, count, LANE_FLOAT, values);
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
    int64_t runs; /* short ones of a line, or 0 */
    Tensors tensors;
    const NormalLoops *loops;
    const float *scale, *offset;
    Series mean, inverse;
    double *partial;                   /* sums for the parameters' gradients: a range's for offset, then for scale */
    bool wants_input, stores_directly, out_of_memory;
} Work;

/* Neighbouring elements that have neighbouring parameters, or one for all. */
typedef struct Segment {
    int64_t first, count;
    Parameters by; /* from the first on */
} Segment;

/* Where elements stand among the parameters: what is left of the run, or of all parameters where each element has its
 * own. A division for every segment would take as long as a short one. */
typedef struct Cursor {
    int64_t first, left;
} Cursor;

static Cursor cursor_at(const Normalize *norm, int64_t position)
{
    const int64_t run = norm->parameter_run, first = position / run % norm->parameter_count;
    return (Cursor){first, run == 1 ? norm->parameter_count - first : run - position % run};
}

static Segment next_segment(const Work *work, Cursor *cursor, int64_t limit)
{
    const Normalize *norm = &work->norm;
    const bool each = norm->parameter_run == 1;
    const int64_t first = cursor->first, count = smaller(cursor->left, smaller(limit, TILE));
    cursor->left -= count;
    cursor->first += each ? count : cursor->left == 0;
    if (cursor->left == 0) {
        cursor->left = each ? norm->parameter_count : norm->parameter_run;
        cursor->first = cursor->first == norm->parameter_count ? 0 : cursor->first;
    }
    return (Segment){first, count, {work->scale + first, work->offset + first, each}};
}

/* Short runs of a line that have a parameter each; 0: there are not several. */
static int64_t runs_of(const Normalize *norm)
{
    const bool are_short = norm->parameter_run > 1 && norm->parameter_run <= SHORT_RUN;
    const int64_t runs = are_short ? norm->line / norm->parameter_run : 0;
    return runs > 1 && norm->line == runs * norm->parameter_run && norm->parameter_count % runs == 0 ? runs : 0;
}

/* Of a line, with which `lines` can be read. */
static Runs next_runs(const Work *work, Cursor *cursor, int64_t lines)
{
    const Normalize *norm = &work->norm;
    const int64_t first = cursor->first;
    cursor->first = first + work->runs == norm->parameter_count ? 0 : first + work->runs;
    return (Runs){work->runs, norm->parameter_run, lines * norm->line, work->scale + first, work->offset + first};
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

/* The elements of a line: in place where nothing is done to them. */
enum { IN_X, IN_ADDED };
static const void *line_of_input(const Work *work, int k_bias, int64_t begin, float *space)
{
    const Tensors *tensors = &work->tensors;
    const bool adds = is_given(tensors, IN_ADDED), biased = k_bias >= 0 && is_given(tensors, k_bias);
    if (tensors->packed[IN_X] && !adds && !biased && work->norm.factor == 1) {
        return place_of(tensors, IN_X, begin);
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
            us_scale_and_add(space + i, adds ? added : NULL, biased ? bias : NULL, count, (float)work->norm.factor);
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

/* ---- short lines, side by side ---- */

/* Whether elements of tensors are all that the loops see: nothing is done to them before. */
static bool is_plain(const Work *work, int k_bias, int k_other)
{
    const Tensors *tensors = &work->tensors;
    const bool changes = is_given(tensors, IN_ADDED) || work->norm.factor != 1 || work->norm.activated ||
                         (k_bias >= 0 && is_given(tensors, k_bias));
    return !changes && tensors->packed[IN_X] && tensors->packed[k_other];
}

/* Whether lines are short and plain, and have the same parameters: then ranges are of whole columns. */
static bool turn_lines(Work *work, int k_bias, int k_other)
{
    const Normalize *norm = &work->norm;
    const Tensors *tensors = &work->tensors;
    const bool same = norm->parameter_count == 1 || (norm->parameter_run == 1 && norm->parameter_count == norm->line);
    const int64_t bytes = norm->line * (int64_t)us_dtype_size(tensors->dtype);
    const bool are_short = bytes < SHORT_LINE && work->lines >= NORMAL_COLUMNS;
    if (!same || !are_short || !is_plain(work, k_bias, k_other)) {
        return false;
    }
    work->range_lines = ceiling(work->range_lines, NORMAL_COLUMNS) * NORMAL_COLUMNS;
    work->ranges = ceiling(work->lines, work->range_lines);
    return true;
}

static Parameters parameters_of_columns(const Work *work)
{
    return (Parameters){work->scale, work->offset, work->norm.parameter_run == 1};
}

/* `count` lines from a tensor side by side, and back. Lines that are not there are 0. */
static void turn(const Work *work, int k, int64_t line, int64_t count, void *columns)
{
    const int64_t length = work->norm.line, size = (int64_t)us_dtype_size(work->tensors.dtype);
    const int64_t row = NORMAL_COLUMNS * size;
    if (count < NORMAL_COLUMNS) {
        memset(columns, 0, (size_t)(length * row));
    }
    us_transpose(columns, row, place_of(&work->tensors, k, line * length), length * size, count, length, size);
}

static void turn_back(const Work *work, int k, int64_t line, int64_t count, const void *columns)
{
    const int64_t length = work->norm.line, size = (int64_t)us_dtype_size(work->tensors.dtype);
    const int64_t row = NORMAL_COLUMNS * size;
    us_transpose(place_of(&work->tensors, k, line * length), length * size, columns, row, length, count, size);
}

/* ---- forwards ---- */

enum { FORWARD_BIAS = 2, FORWARD_SUM, FORWARD_Y };

/* Tile by tile around one of its elements, then put together: in float64 nothing cancels that matters. */
static LineNumbers find_statistics(const Work *work, int64_t line, const void *x, double *line_mean,
                                   double *line_inverse)
{
    const int64_t count = work->norm.line;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < count; i += TILE) {
        const int64_t size = count - i < TILE ? count - i : TILE;
        Moments moments;
        work->loops->sum_moments(&moments, element(&work->tensors, x, i), size, work->norm.centred,
                                 ahead_of(&work->tensors, IN_X, line * count + i));
        if (!work->norm.centred) {
            square += moments.square;
            continue;
        }
        const double shift = moments.sum / (double)size, away = moments.centre + shift - mean;
        const double share = (double)size / (double)(i + size);
        const double own = moments.square - moments.sum * shift;
        mean += away * share;
        square += (own > 0 || own != own ? own : 0) + away * away * (double)i * share;
    }
    const double inverse = 1 / sqrt(square / (double)count + work->norm.epsilon);
    *line_mean = mean;
    *line_inverse = inverse;
    return line_numbers(mean, inverse);
}

static void write_line(const Work *work, int64_t begin, const void *x, LineNumbers numbers, Cursor *cursor)
{
    const Tensors *tensors = &work->tensors;
    float tile[TILE];
    for (int64_t i = 0; i < work->norm.line;) {
        const Segment at = next_segment(work, cursor, work->norm.line - i);
        void *y = tensors->packed[FORWARD_Y] ? (void *)place_of(tensors, FORWARD_Y, begin + i) : tile;
        work->loops->find_normal(y, element(tensors, x, i), at.count, numbers, at.by,
                                 ahead_of(tensors, FORWARD_Y, begin + i));
        if (work->norm.activated) {
            us_apply_swish(y, at.count, (float)work->norm.swish);
        }
        if (y == tile) {
            store(tensors, FORWARD_Y, begin + i, at.count, tile);
        }
        i += at.count;
    }
}

static void normalize_lines(const Work *work, int64_t first, int64_t lines, float *space, Cursor *cursor)
{
    double means[NORMAL_COLUMNS], inverses[NORMAL_COLUMNS];
    for (int64_t k = 0; k < lines; k++) {
        const int64_t line = first + k, begin = line * work->norm.line;
        const void *x = line_of_input(work, FORWARD_BIAS, begin, space);
        const LineNumbers numbers = find_statistics(work, line, x, &means[k], &inverses[k]);
        if (is_given(&work->tensors, FORWARD_SUM)) {
            store(&work->tensors, FORWARD_SUM, begin, work->norm.line, x);
        }
        if (work->runs > 0) {
            work->loops->normal_runs(place_of(&work->tensors, FORWARD_Y, begin), x, numbers,
                                     next_runs(work, cursor, lines - k));
        } else {
            write_line(work, begin, x, numbers, cursor);
        }
    }
    store_statistics(&work->mean, first, lines, means);
    store_statistics(&work->inverse, first, lines, inverses);
}

static void normalize_range(void *context, int64_t range)
{
    Work *work = context;
    float *space = us_scratch_array(work->norm.line, sizeof *space);
    if (space == NULL) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
        return;
    }
    const int64_t first = range * work->range_lines, end = end_of_range(work, range);
    Cursor cursor = cursor_at(&work->norm, first * work->norm.line);
    for (int64_t line = first; line < end; line += NORMAL_COLUMNS) {
        normalize_lines(work, line, smaller(end - line, NORMAL_COLUMNS), space, &cursor);
    }
    us_scratch_give_back(space);
}

static void normalize_columns(void *context, int64_t range)
{
    Work *work = context;
    _Alignas(64) char columns[NORMAL_COLUMNS * SHORT_LINE];
    double means[NORMAL_COLUMNS], inverses[NORMAL_COLUMNS];
    const int64_t end = end_of_range(work, range);
    for (int64_t line = range * work->range_lines; line < end; line += NORMAL_COLUMNS) {
        const int64_t count = smaller(end - line, NORMAL_COLUMNS);
        turn(work, IN_X, line, count, columns);
        work->loops->normal_columns(columns, work->norm.line, work->norm.centred, work->norm.epsilon,
                                    parameters_of_columns(work), means, inverses);
        turn_back(work, FORWARD_Y, line, count, columns);
        store_statistics(&work->mean, line, count, means);
        store_statistics(&work->inverse, line, count, inverses);
    }
}

static Work work_of(const Normalize *norm, int64_t elements)
{
    Work work = {.norm = *norm, .lines = norm->line > 0 ? elements / norm->line : 0};
    work.range_lines = norm->line >= PIECE_ELEMENTS || norm->line == 0 ? 1 : PIECE_ELEMENTS / norm->line;
    work.ranges = (work.lines + work.range_lines - 1) / work.range_lines;
    return work;
}

static KernelStatus fill(const View *view, float value)
{
    if (us_view_is_absent(view)) {
        return KERNEL_OK;
    }
    const View one = us_view_contiguous(&value, DTYPE_FLOAT32, 1, (const int64_t[]){1});
    return us_map_floats(&us_map_copy, 1, (const View[]){us_view_broadcast(&one, view->rank, view->shape), *view});
}

KernelStatus us_normalize(const View *views, const void *attributes)
{
    Work work = work_of(attributes, us_view_elements(&views[0]));
    if (work.lines == 0) {
        const KernelStatus status = fill(&views[7], 0);
        return status == KERNEL_OK ? fill(&views[8], NAN) : status;
    }
    share_parameters(&work.norm, !us_view_is_absent(&views[3]) || !us_view_is_absent(&views[4]));
    begin_tensors(&work.tensors, 5, (const View *const[]){&views[0], &views[1], &views[2], &views[5], &views[6]},
                  &views[0], work.norm.activated || work.norm.factor != 1 ? 0 : 1 << IN_X | 1 << FORWARD_Y);
    work.loops = us_normal_loops(work.tensors.dtype);
    work.runs = is_plain(&work, FORWARD_BIAS, FORWARD_Y) ? runs_of(&work.norm) : 0;
    const int64_t count = work.norm.parameter_count;
    float *parameters = us_scratch_array(count, 2 * sizeof *parameters);
    if (parameters == NULL) {
        return KERNEL_NO_MEMORY;
    }
    load_parameter(&views[3], count, 1, parameters);
    load_parameter(&views[4], count, 0, parameters + count);
    for (int64_t i = 0; i < count && work.norm.scale_from_one; i++) {
        parameters[i] += 1;
    }
    work.scale = parameters;
    work.offset = parameters + count;
    work.mean = series_of(&views[7]);
    work.inverse = series_of(&views[8]);
    const bool turns = !is_given(&work.tensors, FORWARD_SUM) && turn_lines(&work, FORWARD_BIAS, FORWARD_Y);
    run_ranges(&work, turns ? normalize_columns : normalize_range);
    us_scratch_give_back(parameters);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- backwards ---- */

enum { BACKWARD_DY = 2, BACKWARD_PASSED, BACKWARD_FIRST, BACKWARD_SECOND };

/* dy of a line, times the activation's slope. */
static const void *line_of_slopes(const Work *work, int64_t begin, const void *x, LineNumbers numbers, float *space,
                                  Cursor cursor)
{
    const Tensors *tensors = &work->tensors;
    if (tensors->packed[BACKWARD_DY] && !work->norm.activated) {
        return place_of(tensors, BACKWARD_DY, begin);
    }
    load(tensors, BACKWARD_DY, begin, work->norm.line, space);
    for (int64_t i = 0; work->norm.activated && i < work->norm.line;) {
        const Segment at = next_segment(work, &cursor, work->norm.line - i);
        float tile[TILE];
        work->loops->find_normal(tile, element(tensors, x, i), at.count, numbers, at.by,
                                 ahead_of(tensors, BACKWARD_FIRST, begin + i));
        us_apply_swish_slope(space + i, tile, at.count, (float)work->norm.swish);
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
        us_scale_and_add(dx, passed, NULL, count, 1);
    }
    if (is_given(tensors, BACKWARD_SECOND)) {
        store(tensors, BACKWARD_SECOND, begin, count, dx);
    }
    if (is_given(tensors, BACKWARD_FIRST)) {
        if (work->norm.factor != 1) {
            us_scale_and_add(dx, NULL, NULL, count, (float)work->norm.factor);
        }
        store(tensors, BACKWARD_FIRST, begin, count, dx);
    }
}

/* What is subtracted from the gradient of a line. */
static Means sum_line(const Work *work, int64_t begin, const void *x, const void *dy, LineNumbers numbers,
                      double *partial, Cursor *cursor)
{
    const Tensors *tensors = &work->tensors;
    const int64_t count = work->norm.line;
    Slopes slopes = {.for_offset = NULL};
    for (int64_t i = 0; i < count;) {
        const Segment at = next_segment(work, cursor, count - i);
        const Ahead read[] = {ahead_of(tensors, IN_X, begin + i), ahead_of(tensors, BACKWARD_DY, begin + i)};
        slopes.for_offset = partial + at.first;
        slopes.for_scale = slopes.for_offset + work->norm.parameter_count;
        work->loops->sum_slopes(&slopes, element(tensors, dy, i), element(tensors, x, i), at.count, numbers, at.by, read);
        i += at.count;
    }
    return (Means){work->norm.centred ? (float)(us_sum_of_parts(slopes.sums) / (double)count) : 0,
                   (float)(us_sum_of_parts(slopes.products) / (double)count)};
}

static void differentiate_line(const Work *work, int64_t line, LineNumbers numbers, float *spaces, double *partial,
                               Cursor *cursor)
{
    const Tensors *tensors = &work->tensors;
    const int64_t count = work->norm.line, begin = line * count;
    Cursor again = *cursor;
    const void *x = line_of_input(work, -1, begin, spaces);
    const void *dy = line_of_slopes(work, begin, x, numbers, spaces + count, *cursor);
    const Means means = sum_line(work, begin, x, dy, numbers, partial, cursor);
    float tile[TILE];
    for (int64_t i = 0; work->wants_input && i < count;) {
        const Segment at = next_segment(work, &again, count - i);
        void *dx = work->stores_directly ? (void *)place_of(tensors, BACKWARD_FIRST, begin + i) : tile;
        work->loops->find_gradient(dx, element(tensors, dy, i), element(tensors, x, i), at.count, numbers, at.by, means,
                                   ahead_of(tensors, BACKWARD_FIRST, begin + i));
        if (dx == tile) {
            store_gradient(work, begin + i, at.count, tile);
        }
        i += at.count;
    }
}

/* The same where nothing is done to what is read or written. */
static void differentiate_runs(const Work *work, int64_t line, int64_t end, LineNumbers numbers, double *partial,
                               Cursor *cursor)
{
    const Tensors *tensors = &work->tensors;
    const int64_t begin = line * work->norm.line;
    const void *x = place_of(tensors, IN_X, begin), *dy = place_of(tensors, BACKWARD_DY, begin);
    double *const for_offset = partial + cursor->first;
    Totals totals = {.for_offset = for_offset, .for_scale = for_offset + work->norm.parameter_count};
    const Runs runs = next_runs(work, cursor, end - line);
    work->loops->sum_runs(&totals, dy, x, numbers, runs);
    if (work->wants_input) {
        const double count = (double)work->norm.line;
        const Means means = {work->norm.centred ? (float)(totals.sum / count) : 0, (float)(totals.product / count)};
        work->loops->gradient_runs(place_of(tensors, BACKWARD_FIRST, begin), dy, x, numbers, runs, means);
    }
}

/* `means` stay as they are where nothing is centred. */
static void load_line_numbers(const Work *work, int64_t line, int64_t count, float *means, float *inverses)
{
    if (work->norm.centred) {
        load_statistics(&work->mean, line, count, means);
    }
    load_statistics(&work->inverse, line, count, inverses);
}

static void differentiate_range(void *context, int64_t range)
{
    Work *work = context;
    const int64_t parameters = work->norm.parameter_count;
    float *spaces = us_scratch_array(work->norm.line, 2 * sizeof *spaces);
    if (spaces == NULL) {
        __atomic_store_n(&work->out_of_memory, true, __ATOMIC_RELAXED);
        return;
    }
    double *partial = work->partial + 2 * range * parameters;
    memset(partial, 0, 2 * (size_t)parameters * sizeof *partial);
    const int64_t first = range * work->range_lines, end = end_of_range(work, range);
    Cursor cursor = cursor_at(&work->norm, first * work->norm.line);
    float means[NORMAL_COLUMNS] = {0}, inverses[NORMAL_COLUMNS];
    for (int64_t line = first, k = 0; line < end; line++, k = (k + 1) % NORMAL_COLUMNS) {
        if (k == 0) {
            load_line_numbers(work, line, smaller(end - line, NORMAL_COLUMNS), means, inverses);
        }
        const LineNumbers numbers = {means[k], 0, inverses[k]};
        if (work->runs > 0) {
            differentiate_runs(work, line, end, numbers, partial, &cursor);
        } else {
            differentiate_line(work, line, numbers, spaces, partial, &cursor);
        }
    }
    us_scratch_give_back(spaces);
}

static void differentiate_columns(void *context, int64_t range)
{
    Work *work = context;
    const int64_t parameters = work->norm.parameter_count, end = end_of_range(work, range);
    _Alignas(64) char x[NORMAL_COLUMNS * SHORT_LINE], dy[NORMAL_COLUMNS * SHORT_LINE];
    double parts[2 * SHORT_LINE / sizeof(uint16_t)][LANES];
    float means[NORMAL_COLUMNS] = {0}, inverses[NORMAL_COLUMNS];
    memset(parts, 0, 2 * (size_t)parameters * sizeof *parts);
    for (int64_t line = range * work->range_lines; line < end; line += NORMAL_COLUMNS) {
        const int64_t count = smaller(end - line, NORMAL_COLUMNS);
        turn(work, IN_X, line, count, x);
        turn(work, BACKWARD_DY, line, count, dy);
        load_line_numbers(work, line, count, means, inverses);
        work->loops->gradient_columns(dy, x, work->norm.line, work->norm.centred, means, inverses,
                                      parameters_of_columns(work), parts[0], parts[parameters]);
        if (work->wants_input) {
            turn_back(work, BACKWARD_FIRST, line, count, dy);
        }
    }
    for (int64_t i = 0; i < 2 * parameters; i++) {
        work->partial[2 * range * parameters + i] = us_sum_of_parts(parts[i]);
    }
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
    int64_t ranges = elements / 4 / work->norm.parameter_count;
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
                  (const View *const[]){&views[1], &views[2], &views[0], &views[3], &views[8], &views[9]}, &views[1],
                  work.norm.activated || work.norm.factor != 1 ? 0 : 1 << IN_X | 1 << BACKWARD_DY | 1 << BACKWARD_FIRST);
    work.loops = us_normal_loops(work.tensors.dtype);
    const int64_t count = work.norm.parameter_count;
    if (count == 0) { /* lines of no elements: nothing has any */
        return KERNEL_OK;
    }
    choose_ranges(&work);
    work.stores_directly = work.tensors.packed[BACKWARD_FIRST] && work.norm.factor == 1 &&
                           us_view_is_absent(&views[3]) && us_view_is_absent(&views[9]);
    work.wants_input = !us_view_is_absent(&views[8]) || !us_view_is_absent(&views[9]);
    const bool directly = work.stores_directly || !work.wants_input;
    const bool turns = directly && turn_lines(&work, -1, BACKWARD_DY);
    work.runs = directly && is_plain(&work, -1, BACKWARD_DY) ? runs_of(&work.norm) : 0;
    const size_t sums = us_scratch_bytes(us_scratch_count(count, work.ranges + 1), 2 * sizeof(double));
    char *cursor = us_scratch_take(sums + 2 * us_scratch_bytes(count, sizeof(float))), *block = cursor;
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
    run_ranges(&work, turns ? differentiate_columns : differentiate_range);
    if (!work.out_of_memory) {
        store_sums(&work, &views[11], 0);
        store_sums(&work, &views[10], count);
    }
    us_scratch_give_back(block);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}
