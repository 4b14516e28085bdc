#include "kernels/norm/normalize_work.h"

#include "kernels/move/past.h"
#include "kernels/move/transpose.h"

#include <string.h>

/* Elements of a piece of work; runs of no more elements are taken together. */
enum { PIECE_ELEMENTS = 16384, SHORT_RUN = 256 };

/* ---- operands ---- */

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

void us_normal_tensors(Tensors *tensors, int count, const View *const *views, const View *model, unsigned plain)
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

void us_normal_put_past(const Tensors *tensors, int k, int64_t begin, int64_t count, const float *tile)
{
    const char *const from = (const char *)tile;
    us_copy_past(place_of(tensors, k, begin), from, (size_t)count * us_dtype_size(tensors->dtype), from);
}

void us_normal_load(const Tensors *tensors, int k, int64_t begin, int64_t count, float *to)
{
    us_axes_load(&tensors->axes, k, tensors->views[k].data, tensors->views[k].dtype, begin, count, LANE_FLOAT, to);
}

void us_normal_store(const Tensors *tensors, int k, int64_t begin, int64_t count, const float *from)
{
    us_axes_store(&tensors->axes, k, tensors->views[k].data, tensors->views[k].dtype, begin, count, LANE_FLOAT, from);
}

Series us_normal_series(const View *view)
{
    Series series = {.view = *view};
    us_axes_add(&series.axes, &view, 1, 0, view->rank);
    return series;
}

void us_normal_parameter(const View *view, int64_t count, float fallback, float *values)
{
    if (!us_view_is_absent(view)) {
        const Series series = us_normal_series(view);
        us_axes_load(&series.axes, 0, view->data, view->dtype, 0, count, LANE_FLOAT, values);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        values[i] = fallback;
    }
}

/* ---- work ---- */

bool us_normal_goes_past(const Work *work, int k)
{
    const Normalize *norm = &work->norm;
    const View *result = &work->tensors.views[k];
    const int64_t size = (int64_t)us_dtype_size(result->dtype), whole = CACHE_LINE_BYTES / size;
    const int64_t segment = norm->parameter_run == 1 ? norm->parameter_count : norm->parameter_run;
    bool past = work->tensors.packed[k] && work->lines * norm->line >= PAST_MAP_BYTES / size && norm->line % whole == 0 &&
                (segment >= norm->line || segment % whole == 0) && (uintptr_t)result->data % CACHE_LINE_BYTES == 0;
    for (int other = 0; other < OPERANDS; other++) {
        const View *operand = &work->tensors.views[other];
        past &= other == k || us_view_is_absent(operand) || operand->data != result->data;
    }
    return past;
}

Work us_normal_work(const Normalize *norm, int64_t elements)
{
    Work work = {.norm = *norm, .lines = norm->line > 0 ? elements / norm->line : 0};
    work.range_lines = norm->line >= PIECE_ELEMENTS || norm->line == 0 ? 1 : PIECE_ELEMENTS / norm->line;
    work.ranges = (work.lines + work.range_lines - 1) / work.range_lines;
    return work;
}

int64_t us_normal_runs(const Normalize *norm)
{
    const bool are_short = norm->parameter_run > 1 && norm->parameter_run <= SHORT_RUN;
    const int64_t runs = are_short ? norm->line / norm->parameter_run : 0;
    return runs > 1 && norm->line == runs * norm->parameter_run && norm->parameter_count % runs == 0 ? runs : 0;
}

const void *us_normal_input(const Work *work, int k_bias, int64_t begin, float *space)
{
    const Tensors *tensors = &work->tensors;
    const bool adds = is_given(tensors, IN_ADDED), biased = k_bias >= 0 && is_given(tensors, k_bias);
    if (tensors->packed[IN_X] && !adds && !biased && work->norm.factor == 1) {
        return place_of(tensors, IN_X, begin);
    }
    float added[TILE], bias[TILE];
    for (int64_t i = 0; i < work->norm.line; i += TILE) {
        const int64_t count = work->norm.line - i < TILE ? work->norm.line - i : TILE;
        us_normal_load(tensors, IN_X, begin + i, count, space + i);
        if (adds) {
            us_normal_load(tensors, IN_ADDED, begin + i, count, added);
        }
        if (biased) {
            us_normal_load(tensors, k_bias, begin + i, count, bias);
        }
        if (adds || biased || work->norm.factor != 1) {
            us_scale_and_add(space + i, adds ? added : NULL, biased ? bias : NULL, count, (float)work->norm.factor);
        }
    }
    return space;
}

/* ---- short lines, side by side ---- */

bool us_normal_is_plain(const Work *work, int k_bias, int k_other)
{
    const Tensors *tensors = &work->tensors;
    const bool changes = is_given(tensors, IN_ADDED) || work->norm.factor != 1 || work->norm.activated ||
                         (k_bias >= 0 && is_given(tensors, k_bias));
    return !changes && tensors->packed[IN_X] && tensors->packed[k_other];
}

bool us_normal_turn_lines(Work *work, int k_bias, int k_other)
{
    const Normalize *norm = &work->norm;
    const Tensors *tensors = &work->tensors;
    const bool same = norm->parameter_count == 1 || (norm->parameter_run == 1 && norm->parameter_count == norm->line);
    const int64_t bytes = norm->line * (int64_t)us_dtype_size(tensors->dtype);
    const bool are_short = bytes < SHORT_LINE && work->lines >= NORMAL_COLUMNS;
    if (!same || !are_short || !us_normal_is_plain(work, k_bias, k_other)) {
        return false;
    }
    work->range_lines = ceiling(work->range_lines, NORMAL_COLUMNS) * NORMAL_COLUMNS;
    work->ranges = ceiling(work->lines, work->range_lines);
    return true;
}

void us_normal_turn(const Work *work, int k, int64_t line, int64_t count, void *columns)
{
    const int64_t length = work->norm.line, size = (int64_t)us_dtype_size(work->tensors.dtype);
    const int64_t row = NORMAL_COLUMNS * size;
    if (count < NORMAL_COLUMNS) {
        memset(columns, 0, (size_t)(length * row));
    }
    us_transpose(columns, row, place_of(&work->tensors, k, line * length), length * size, count, length, size);
}

void us_normal_turn_back(const Work *work, int k, int64_t line, int64_t count, const void *columns)
{
    const int64_t length = work->norm.line, size = (int64_t)us_dtype_size(work->tensors.dtype);
    const int64_t row = NORMAL_COLUMNS * size;
    us_transpose(place_of(&work->tensors, k, line * length), length * size, columns, row, length, count, size);
}
