#include "kernels/move/past.h"
#include "kernels/norm/normalize_work.h"
#include "kernels/packed.h"
#include "kernels/scratch.h"

#include <string.h>

/* Ranges of lines that form sums of their own for the parameters' gradients. */
enum { RANGE_LIMIT = 32 };
enum { BACKWARD_DY = 2, BACKWARD_PASSED, BACKWARD_FIRST, BACKWARD_SECOND };

static void load_statistics(const Series *series, int64_t at, int64_t count, float *values)
{
    memset(values, 0, NORMAL_COLUMNS * sizeof *values);
    us_axes_load(&series->axes, 0, series->view.data, series->view.dtype, at, count, LANE_FLOAT, values);
}

/* dy of a line, times the activation's slope. */
static const void *line_of_slopes(const Work *work, int64_t begin, const void *x, LineNumbers numbers, float *space,
                                  Cursor cursor)
{
    const Tensors *tensors = &work->tensors;
    if (tensors->packed[BACKWARD_DY] && !work->norm.activated) {
        return place_of(tensors, BACKWARD_DY, begin);
    }
    us_normal_load(tensors, BACKWARD_DY, begin, work->norm.line, space);
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
        us_normal_load(tensors, BACKWARD_PASSED, begin, count, passed);
        us_scale_and_add(dx, passed, NULL, count, 1);
    }
    if (is_given(tensors, BACKWARD_SECOND)) {
        us_normal_store(tensors, BACKWARD_SECOND, begin, count, dx);
    }
    if (is_given(tensors, BACKWARD_FIRST)) {
        if (work->norm.factor != 1) {
            us_scale_and_add(dx, NULL, NULL, count, (float)work->norm.factor);
        }
        us_normal_store(tensors, BACKWARD_FIRST, begin, count, dx);
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
    const void *x = us_normal_input(work, -1, begin, spaces);
    const void *dy = line_of_slopes(work, begin, x, numbers, spaces + count, *cursor);
    const Means means = sum_line(work, begin, x, dy, numbers, partial, cursor);
    float tile[TILE];
    for (int64_t i = 0; work->wants_input && i < count;) {
        const Segment at = next_segment(work, &again, count - i);
        void *dx = work->stores_directly && !work->past ? (void *)place_of(tensors, BACKWARD_FIRST, begin + i) : tile;
        work->loops->find_gradient(dx, element(tensors, dy, i), element(tensors, x, i), at.count, numbers, at.by, means,
                                   work->past ? (Ahead){tile, 0} : ahead_of(tensors, BACKWARD_FIRST, begin + i));
        if (work->past) {
            us_normal_put_past(tensors, BACKWARD_FIRST, begin + i, at.count, tile);
        } else if (dx == tile) {
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
    if (work->past) {
        us_past_is_done();
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
        us_normal_turn(work, IN_X, line, count, x);
        us_normal_turn(work, BACKWARD_DY, line, count, dy);
        load_line_numbers(work, line, count, means, inverses);
        work->loops->gradient_columns(dy, x, work->norm.line, work->norm.centred, means, inverses,
                                      parameters_of_columns(work), parts[0], parts[parameters]);
        if (work->wants_input) {
            us_normal_turn_back(work, BACKWARD_FIRST, line, count, dy);
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
    const Series series = us_normal_series(view);
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

static KernelStatus differentiate(const View *views, const void *attributes)
{
    Work work = us_normal_work(attributes, us_view_elements(&views[0]));
    const bool wants_parameters = !us_view_is_absent(&views[10]) || !us_view_is_absent(&views[11]);
    share_parameters(&work.norm, wants_parameters || !us_view_is_absent(&views[4]) || !us_view_is_absent(&views[5]));
    us_normal_tensors(&work.tensors, 6,
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
    work.past = work.stores_directly && us_normal_goes_past(&work, BACKWARD_FIRST);
    work.wants_input = !us_view_is_absent(&views[8]) || !us_view_is_absent(&views[9]);
    const bool directly = work.stores_directly || !work.wants_input;
    const bool turns = directly && us_normal_turn_lines(&work, -1, BACKWARD_DY);
    work.runs = directly && us_normal_is_plain(&work, -1, BACKWARD_DY) ? us_normal_runs(&work.norm) : 0;
    const size_t sums = us_scratch_bytes(us_scratch_count(count, work.ranges + 1), 2 * sizeof(double));
    char *cursor = us_scratch_take(sums + 2 * us_scratch_bytes(count, sizeof(float))), *block = cursor;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.partial = us_scratch_part(&cursor, sums);
    float *scale = us_scratch_part(&cursor, (size_t)count * sizeof(float));
    float *offset = us_scratch_part(&cursor, (size_t)count * sizeof(float));
    us_normal_parameter(&views[4], count, 1, scale);
    us_normal_parameter(&views[5], count, 0, offset);
    work.scale = scale;
    work.offset = offset;
    work.mean = us_normal_series(&views[6]);
    work.inverse = us_normal_series(&views[7]);
    run_ranges(&work, turns ? differentiate_columns : differentiate_range);
    if (!work.out_of_memory) {
        store_sums(&work, &views[11], 0);
        store_sums(&work, &views[10], count);
    }
    us_scratch_give_back(block);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_normalize_backward(const View *views, const void *attributes)
{
    enum { VIEWS = 12, READ = 3 };
    Packed read[READ];
    View packed[VIEWS];
    memcpy(packed, views, sizeof packed);
    for (int k = 0; k < READ; k++) {
        read[k] = us_pack(&views[k]);
        packed[k] = read[k].view;
    }
    const KernelStatus status = differentiate(packed, attributes);
    for (int k = READ - 1; k >= 0; k--) {
        us_pack_end(&read[k]);
    }
    return status;
}
