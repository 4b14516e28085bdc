/* The lines of views along an axis, and which one is where. */
#ifndef UNDERSTUDY_SORT_LINES_H
#define UNDERSTUDY_SORT_LINES_H

#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/view.h"

typedef struct Line {
    char *data; /* NULL: the view is absent */
    DType dtype;
    int64_t stride, size;
} Line;

/* Line `number` of the view, in row-major order of its other axes. */
static inline Line us_line_of(const View *view, int32_t axis, int64_t number)
{
    Line line = {.dtype = view->dtype, .stride = 1, .size = 1};
    if (us_view_is_absent(view)) {
        return line;
    }
    int64_t offset = 0;
    for (int32_t d = view->rank - 1; d >= 0; d--) {
        if (d == axis) {
            line.stride = view->strides[d];
            line.size = view->shape[d];
        } else {
            offset += number % view->shape[d] * view->strides[d];
            number /= view->shape[d];
        }
    }
    line.data = (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
    return line;
}

static inline char *us_line_element(const Line *line, int64_t i)
{
    return line->data + i * line->stride * (int64_t)us_dtype_size(line->dtype);
}

/* Element i of a view of one axis. */
static inline double us_line_number(const View *view, int64_t i)
{
    double number;
    const Line line = us_line_of(view, 0, 0);
    us_load_double(&number, us_line_element(&line, i), line.dtype, 1, 1);
    return number;
}

/* Numbers `begin` … begin + count - 1 of row `number`, a line along the last axis. */
static inline void us_row_load(const View *view, int64_t number, int64_t begin, int64_t count, float *to)
{
    const Line line = us_line_of(view, view->rank - 1, number);
    us_load_float(to, us_line_element(&line, begin), line.dtype, line.stride, count);
}

/* The same, if the view is there, are needed soon: rows that lie apart, or have an order of their own, no processor finds by
 * itself. Always inline, as everything that only fetches: GCC takes out calls of functions that change nothing. */
US_ALWAYS_INLINE void us_row_fetch(const View *view, int64_t number, int64_t begin, int64_t count)
{
    const Line line = us_line_of(view, view->rank - 1, number);
    const int64_t bytes = line.data != NULL && line.stride == 1 ? count * (int64_t)us_dtype_size(line.dtype) : 0;
    for (int64_t at = 0; at < bytes; at += CACHE_LINE_BYTES) {
        __builtin_prefetch(us_line_element(&line, begin) + at);
    }
}

static inline void us_row_store(const View *view, int64_t number, int64_t begin, int64_t count, const float *from)
{
    const Line line = us_line_of(view, view->rank - 1, number);
    us_store_float(us_line_element(&line, begin), line.dtype, line.stride, from, count);
}

#endif
