#include "kernels/map/formulas.h"
#include "kernels/move/past.h"
#include "kernels/norm/normalize_work.h"
#include "kernels/packed.h"
#include "kernels/scratch.h"

#include <math.h>
#include <string.h>

enum { FORWARD_BIAS = 2, FORWARD_SUM, FORWARD_Y };

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

static LineNumbers line_numbers(double mean, double inverse)
{
    const float rounded = (float)mean;
    return (LineNumbers){rounded, (float)(mean - (double)rounded), (float)inverse};
}

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
        void *y = tensors->packed[FORWARD_Y] && !work->past ? (void *)place_of(tensors, FORWARD_Y, begin + i) : tile;
        work->loops->find_normal(y, element(tensors, x, i), at.count, numbers, at.by,
                                 work->past ? (Ahead){tile, 0} : ahead_of(tensors, FORWARD_Y, begin + i));
        if (work->norm.activated) {
            us_apply_swish(y, at.count, (float)work->norm.swish);
        }
        if (work->past) {
            us_normal_put_past(tensors, FORWARD_Y, begin + i, at.count, tile);
        } else if (y == tile) {
            us_normal_store(tensors, FORWARD_Y, begin + i, at.count, tile);
        }
        i += at.count;
    }
}

static void normalize_lines(const Work *work, int64_t first, int64_t lines, float *space, Cursor *cursor)
{
    double means[NORMAL_COLUMNS], inverses[NORMAL_COLUMNS];
    for (int64_t k = 0; k < lines; k++) {
        const int64_t line = first + k, begin = line * work->norm.line;
        const void *x = us_normal_input(work, FORWARD_BIAS, begin, space);
        const LineNumbers numbers = find_statistics(work, line, x, &means[k], &inverses[k]);
        if (is_given(&work->tensors, FORWARD_SUM)) {
            us_normal_store(&work->tensors, FORWARD_SUM, begin, work->norm.line, x);
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
    if (work->past) {
        us_past_is_done();
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
        us_normal_turn(work, IN_X, line, count, columns);
        work->loops->normal_columns(columns, work->norm.line, work->norm.centred, work->norm.epsilon,
                                    parameters_of_columns(work), means, inverses);
        us_normal_turn_back(work, FORWARD_Y, line, count, columns);
        store_statistics(&work->mean, line, count, means);
        store_statistics(&work->inverse, line, count, inverses);
    }
}

static KernelStatus fill(const View *view, float value)
{
    if (us_view_is_absent(view)) {
        return KERNEL_OK;
    }
    const View one = us_view_contiguous(&value, DTYPE_FLOAT32, 1, (const int64_t[]){1});
    return us_map_floats(&us_map_copy, 1, (const View[]){us_view_broadcast(&one, view->rank, view->shape), *view});
}

static KernelStatus normalize(const View *views, const void *attributes)
{
    Work work = us_normal_work(attributes, us_view_elements(&views[0]));
    if (work.lines == 0) {
        const KernelStatus status = fill(&views[7], 0);
        return status == KERNEL_OK ? fill(&views[8], NAN) : status;
    }
    share_parameters(&work.norm, !us_view_is_absent(&views[3]) || !us_view_is_absent(&views[4]));
    us_normal_tensors(&work.tensors, 5, (const View *const[]){&views[0], &views[1], &views[2], &views[5], &views[6]},
                  &views[0], work.norm.activated || work.norm.factor != 1 ? 0 : 1 << IN_X | 1 << FORWARD_Y);
    work.loops = us_normal_loops(work.tensors.dtype);
    work.past = us_normal_goes_past(&work, FORWARD_Y);
    work.runs = us_normal_is_plain(&work, FORWARD_BIAS, FORWARD_Y) ? us_normal_runs(&work.norm) : 0;
    const int64_t count = work.norm.parameter_count;
    float *parameters = us_scratch_array(count, 2 * sizeof *parameters);
    if (parameters == NULL) {
        return KERNEL_NO_MEMORY;
    }
    us_normal_parameter(&views[3], count, 1, parameters);
    us_normal_parameter(&views[4], count, 0, parameters + count);
    for (int64_t i = 0; i < count && work.norm.scale_from_one; i++) {
        parameters[i] += 1;
    }
    work.scale = parameters;
    work.offset = parameters + count;
    work.mean = us_normal_series(&views[7]);
    work.inverse = us_normal_series(&views[8]);
    const bool turns = !is_given(&work.tensors, FORWARD_SUM) && us_normal_turn_lines(&work, FORWARD_BIAS, FORWARD_Y);
    run_ranges(&work, turns ? normalize_columns : normalize_range);
    us_scratch_give_back(parameters);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_normalize(const View *views, const void *attributes)
{
    enum { VIEWS = 9 };
    const Packed x = us_pack(&views[0]), added = us_pack(&views[1]);
    View packed[VIEWS];
    memcpy(packed, views, sizeof packed);
    packed[0] = x.view;
    packed[1] = added.view;
    const KernelStatus status = normalize(packed, attributes);
    us_pack_end(&added);
    us_pack_end(&x);
    return status;
}
