#include "kernels/move/move.h"

#include "kernels/detach.h"
#include "kernels/maths/maths.h"
#include "kernels/move/copy_run.h"
#include "kernels/move/copy_view.h"
#include "kernels/pieces.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"
#include "tensor/lane.h"

#include <string.h>

enum { TILE = 1024, ELEMENT_BYTES = 16, TRIANGLE_PIECE = 8 * 1024 /* elements */ };

typedef struct Tile {
    _Alignas(64) unsigned char bytes[TILE * ELEMENT_BYTES];
} Tile;

static Axes axes_of(const View *view)
{
    Axes axes = {0};
    const View *const views[] = {view};
    us_axes_add(&axes, views, 1, 0, view->rank);
    return axes;
}

/* ---- reshape ---- */

typedef struct ReshapeRun {
    const View *source, *target;
    Axes from, to;
    int64_t elements;
} ReshapeRun;

static void reshape_piece(void *context, int64_t piece)
{
    const ReshapeRun *run = context;
    const Lane lane = us_lane_of(run->source->dtype);
    const int64_t begin = piece * TILE, rest = run->elements - begin, count = rest < TILE ? rest : TILE;
    Tile tile;
    us_axes_load(&run->from, 0, run->source->data, run->source->dtype, begin, count, lane, tile.bytes);
    us_axes_store(&run->to, 0, run->target->data, run->target->dtype, begin, count, lane, tile.bytes);
}

KernelStatus us_reshape(const View *views, const void *attributes)
{
    (void)attributes;
    ReshapeRun run = {&views[0], &views[1], axes_of(&views[0]), axes_of(&views[1]), us_view_elements(&views[1])};
    run_pieces((run.elements + TILE - 1) / TILE, run.elements, reshape_piece, &run);
    return KERNEL_OK;
}

/* ---- triangles ---- */

_Alignas(16) static const unsigned char no_element[ELEMENT_BYTES]; /* 0 in every type */

typedef struct TriangleRun {
    const Triangle *triangle;
    const View *source, *target;
    int64_t columns, rows, rows_of_piece;
} TriangleRun;

/* The first element of a row of a view, all axes but the last counted in row-major order. */
static char *row_at(const View *view, int64_t row)
{
    int64_t offset = 0;
    for (int32_t axis = view->rank - 2; axis >= 0; axis--) {
        offset += row % view->shape[axis] * view->strides[axis];
        row /= view->shape[axis];
    }
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* Columns first … end - 1 of a row become 0; the step and the size are bytes. */
static void clear_columns(char *to, int64_t step, int64_t first, int64_t end, int64_t size)
{
    if (first < end && step == size) {
        memset(to + first * size, 0, (size_t)((end - first) * size));
    } else if (first < end) {
        us_copy_elements(to + first * step, step / size, no_element, 0, size, end - first);
    }
}

/* The same columns of another row. */
static void copy_columns(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t first, int64_t end,
                         int64_t size)
{
    if (first >= end) {
        return;
    }
    to += first * to_step;
    from += first * from_step;
    if (to_step == size && from_step == size) {
        copy_run(to, from, (end - first) * size);
    } else {
        us_copy_elements(to, to_step / size, from, from_step / size, size, end - first);
    }
}

/* Row `line` of a matrix. */
static void triangle_row(const TriangleRun *run, char *to, const char *from, int64_t line)
{
    const View *source = run->source, *target = run->target;
    const int32_t last = target->rank - 1;
    const int64_t size = (int64_t)us_dtype_size(target->dtype), columns = run->columns;
    /* Columns kept: first … end-1. */
    int64_t bound = 0;
    if (__builtin_add_overflow(line, run->triangle->diagonal, &bound) || bound == INT64_MAX) {
        bound = INT64_MAX - 1;
    }
    const int64_t first = run->triangle->lower ? 0 : bounded(bound, 0, columns);
    const int64_t end = run->triangle->lower ? bounded(bound + 1, 0, columns) : columns;
    const int64_t step = target->strides[last] * size;
    clear_columns(to, step, 0, first, size);
    copy_columns(to, step, from, source->strides[last] * size, first, end, size);
    clear_columns(to, step, end, columns, size);
}

static void triangle_piece(void *context, int64_t piece)
{
    const TriangleRun *run = context;
    const View *source = run->source, *target = run->target;
    const int32_t axis = target->rank - 2;
    const int64_t size = (int64_t)us_dtype_size(target->dtype), lines = target->shape[axis];
    const int64_t end = smaller(run->rows, (piece + 1) * run->rows_of_piece);
    for (int64_t row = piece * run->rows_of_piece; row < end;) {
        char *to = row_at(target, row);
        const char *from = row_at(source, row);
        for (int64_t line = row % lines; line < lines && row < end; line++, row++) {
            triangle_row(run, to, from, line);
            to += target->strides[axis] * size;
            from += source->strides[axis] * size;
        }
    }
}

KernelStatus us_triangle(const View *views, const void *attributes)
{
    const View *target = &views[1];
    const int64_t elements = us_view_elements(target);
    if (elements > 0) {
        TriangleRun run = {.triangle = attributes, .source = &views[0], .target = target};
        run.columns = target->shape[target->rank - 1];
        run.rows = elements / run.columns;
        run.rows_of_piece = larger(TRIANGLE_PIECE / run.columns, 1);
        run_pieces(ceiling(run.rows, run.rows_of_piece), elements, triangle_piece, &run);
    }
    return KERNEL_OK;
}

/* ---- sequences ---- */

typedef struct SequenceRun {
    const Sequence *sequence;
    const View *target;
    Axes axes;
    int64_t elements;
} SequenceRun;

static void sequence_piece(void *context, int64_t piece)
{
    const SequenceRun *run = context;
    const Sequence *sequence = run->sequence;
    const int64_t begin = piece * TILE, rest = run->elements - begin, count = rest < TILE ? rest : TILE;
    const bool floating = us_dtype_is_float(sequence->compute);
    Tile tile;
    double *reals = (double *)tile.bytes;
    int64_t *integers = (int64_t *)tile.bytes;
    for (int64_t k = 0; k < count; k++) {
        const bool last = begin + k == sequence->last_at;
        if (floating) {
            reals[k] = last ? sequence->last.real : sequence->start.real + (double)(begin + k) * sequence->step.real;
            reals[k] = sequence->powers ? pow_double(sequence->base, reals[k]) : reals[k];
        } else {
            const uint64_t way = (uint64_t)(begin + k) * (uint64_t)sequence->step.integer;
            integers[k] = last ? sequence->last.integer : (int64_t)((uint64_t)sequence->start.integer + way);
        }
    }
    us_axes_store(&run->axes, 0, run->target->data, run->target->dtype, begin, count, floating ? LANE_DOUBLE : LANE_INT64,
                  tile.bytes);
}

KernelStatus us_sequence(const View *views, const void *attributes)
{
    SequenceRun run = {attributes, &views[0], axes_of(&views[0]), us_view_elements(&views[0])};
    run_pieces((run.elements + TILE - 1) / TILE, run.elements, sequence_piece, &run);
    return KERNEL_OK;
}

/* ---- constants ---- */

/* `size` places of an axis, from `begin` on. */
static View part_of(View view, int32_t axis, int64_t begin, int64_t size)
{
    view.data = (char *)view.data + begin * view.strides[axis] * (int64_t)us_dtype_size(view.dtype);
    view.shape[axis] = size;
    return view;
}

/* Axis by axis what lies before and behind the source is filled; what is left is the source's, or none. */
static void pad_around(View source, View rest, const ConstantPad *pad, const void *element)
{
    for (int32_t axis = 0; axis < rest.rank; axis++) {
        const int64_t size = rest.shape[axis], before = pad->before[axis];
        int64_t behind;
        if (__builtin_add_overflow(before, source.shape[axis], &behind)) {
            behind = INT64_MAX;
        }
        const int64_t first = bounded(before, 0, size), end = bounded(behind, first, size);
        const View head = part_of(rest, axis, 0, first), tail = part_of(rest, axis, end, size - end);
        us_fill_view(&head, element);
        us_fill_view(&tail, element);
        if (first == end) {
            return;
        }
        rest = part_of(rest, axis, first, end - first);
        source = part_of(source, axis, first - before, end - first);
    }
    us_copy_view(&rest, &source);
}

KernelStatus us_constant_pad(const View *views, const void *attributes)
{
    const ConstantPad *pad = attributes;
    const View *target = &views[1];
    _Alignas(16) unsigned char element[ELEMENT_BYTES];
    if (us_view_is_empty(target)) {
        return KERNEL_OK;
    }
    us_number_store(element, target->dtype, pad->value);
    Detached detached;
    const KernelStatus status = us_detach_same(&detached, 1, views, 1, target);
    if (status == KERNEL_OK) {
        pad_around(detached.inputs[0], *target, pad, element);
    }
    us_detach_end(&detached);
    return status;
}

/* ---- diagonals ---- */

/* A line of `count` elements of a view, `stride` apart, from an offset on. */
static View line_of(const View *view, int64_t offset, int64_t stride, int64_t count)
{
    View line = {.dtype = view->dtype, .rank = 1, .shape = {count}, .strides = {stride}};
    line.data = (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
    return line;
}

KernelStatus us_diagonal_matrix(const View *views, const void *attributes)
{
    const int64_t diagonal = ((const Diagonal *)attributes)->diagonal;
    const View *out = &views[1];
    const int64_t offset = diagonal < 0 ? -diagonal * out->strides[0] : diagonal * out->strides[1];
    us_clear_view(out);
    const View line = line_of(out, offset, out->strides[0] + out->strides[1], us_view_elements(&views[0]));
    return us_view_is_empty(&line) ? KERNEL_OK : us_reshape((const View[]){views[0], line}, NULL);
}

KernelStatus us_fill_diagonal(const View *views, const void *attributes)
{
    const DiagonalFill *fill = attributes;
    const View *target = &views[0];
    if (us_view_is_empty(target)) { /* of as many rows as a number can tell */
        return KERNEL_OK;
    }
    _Alignas(16) unsigned char element[ELEMENT_BYTES];
    us_number_store(element, target->dtype, fill->value);
    int64_t stride = 0, least = target->shape[0];
    for (int32_t d = 0; d < target->rank; d++) {
        stride += target->strides[d];
        least = target->shape[d] < least ? target->shape[d] : least;
    }
    const int64_t rows = target->shape[0], period = least + 1;
    for (int64_t row = 0; row < rows && (row == 0 || fill->wraps); row += period) {
        const View line = line_of(target, row * target->strides[0], stride, rows - row < least ? rows - row : least);
        us_fill_view(&line, element);
    }
    return KERNEL_OK;
}

KernelStatus us_identity(const View *views, const void *attributes)
{
    (void)attributes;
    us_clear_view(&views[0]);
    return us_fill_diagonal(views, &(DiagonalFill){.value = {1, 0, 1}});
}
