#include "kernels/move/move.h"

#include "kernels/maths/maths.h"
#include "kernels/move/copy_view.h"
#include "kernels/pieces.h"
#include "tensor/axes.h"
#include "tensor/lane.h"

#include <string.h>

enum { TILE = 1024, ELEMENT_BYTES = 16 };

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

static size_t lane_size(Lane lane)
{
    return us_dtype_size(us_lane_dtype(lane));
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

/* ---- row by row ---- */

/* A row of the target's last axis; `source` is the element of the source's row that lies under the target's first one. */
typedef struct RowRun {
    const View *source, *target;
    const void *attributes;
    int64_t columns;
    void (*row)(const struct RowRun *run, int64_t row);
} RowRun;

static void row_piece(void *context, int64_t piece)
{
    const RowRun *run = context;
    run->row(run, piece);
}

static KernelStatus run_rows(RowRun *run)
{
    const View *target = run->target;
    const int64_t elements = us_view_elements(target);
    if (elements > 0) {
        run->columns = target->rank > 0 ? target->shape[target->rank - 1] : 1;
        run_pieces(elements / run->columns, elements, row_piece, run);
    }
    return KERNEL_OK;
}

/* Bytes from a view's data to the first element of a row of the target, each axis moved by `before`; false: outside. */
static bool row_offset(const View *view, const View *target, int64_t row, const int64_t *before, int64_t *bytes)
{
    int64_t offset = 0;
    bool inside = true;
    for (int32_t axis = target->rank - 2; axis >= 0; axis--) {
        const int64_t place = row % target->shape[axis] - (before != NULL ? before[axis] : 0);
        row /= target->shape[axis];
        inside &= place >= 0 && place < view->shape[axis];
        offset += place * view->strides[axis];
    }
    *bytes = offset * (int64_t)us_dtype_size(view->dtype);
    return inside;
}

static int64_t last_stride(const View *view)
{
    return view->rank > 0 ? view->strides[view->rank - 1] : 1;
}

static void store_row(const RowRun *run, int64_t target_bytes, int64_t begin, int64_t count, Lane lane, const void *from)
{
    const View *target = run->target;
    const int64_t stride = last_stride(target), bytes = (int64_t)us_dtype_size(target->dtype);
    us_lane_store(lane, (char *)target->data + target_bytes + begin * stride * bytes, target->dtype, stride, from, count);
}

static void load_row(const RowRun *run, int64_t source_bytes, int64_t begin, int64_t count, Lane lane, void *to)
{
    const View *source = run->source;
    const int64_t stride = last_stride(source), bytes = (int64_t)us_dtype_size(source->dtype);
    us_lane_load(lane, to, (const char *)source->data + source_bytes + begin * stride * bytes, source->dtype, stride,
                 count);
}

/* ---- constant padding ---- */

static void pad_row(const RowRun *run, int64_t row)
{
    const ConstantPad *pad = run->attributes;
    const Lane lane = us_lane_of(run->source->dtype);
    const size_t size = lane_size(lane);
    const int32_t last = run->target->rank - 1;
    const int64_t before = last >= 0 ? pad->before[last] : 0, width = last >= 0 ? run->source->shape[last] : 1;
    int64_t source = 0, target = 0;
    const bool inside = row_offset(run->source, run->target, row, pad->before, &source);
    row_offset(run->target, run->target, row, NULL, &target);
    Tile tile;
    for (int64_t begin = 0; begin < run->columns; begin += TILE) {
        const int64_t end = begin + TILE < run->columns ? begin + TILE : run->columns;
        for (int64_t k = 0; k < end - begin; k++) {
            us_number_store(tile.bytes + (size_t)k * size, us_lane_dtype(lane), pad->value);
        }
        const int64_t from = begin > before ? begin : before, to = end < before + width ? end : before + width;
        if (inside && from < to) {
            load_row(run, source, from - before, to - from, lane, tile.bytes + (size_t)(from - begin) * size);
        }
        store_row(run, target, begin, end - begin, lane, tile.bytes);
    }
}

KernelStatus us_constant_pad(const View *views, const void *attributes)
{
    RowRun run = {.source = &views[0], .target = &views[1], .attributes = attributes, .row = pad_row};
    return run_rows(&run);
}

/* ---- triangles ---- */

static void triangle_row(const RowRun *run, int64_t row)
{
    const Triangle *triangle = run->attributes;
    const Lane lane = us_lane_of(run->source->dtype);
    const size_t size = lane_size(lane);
    const int64_t line = row % run->target->shape[run->target->rank - 2];
    int64_t source = 0, target = 0;
    row_offset(run->source, run->target, row, NULL, &source);
    row_offset(run->target, run->target, row, NULL, &target);
    /* Columns kept: first … end-1. */
    int64_t bound = 0;
    if (__builtin_add_overflow(line, triangle->diagonal, &bound) || bound == INT64_MAX) {
        bound = INT64_MAX - 1;
    }
    const int64_t first = triangle->lower ? 0 : bound, end = triangle->lower ? bound + 1 : run->columns;
    Tile tile;
    for (int64_t begin = 0; begin < run->columns; begin += TILE) {
        const int64_t stop = begin + TILE < run->columns ? begin + TILE : run->columns;
        const int64_t from = begin > first ? begin : first, to = stop < end ? stop : end;
        memset(tile.bytes, 0, (size_t)(stop - begin) * size);
        if (from < to) {
            load_row(run, source, from, to - from, lane, tile.bytes + (size_t)(from - begin) * size);
        }
        store_row(run, target, begin, stop - begin, lane, tile.bytes);
    }
}

KernelStatus us_triangle(const View *views, const void *attributes)
{
    RowRun run = {.source = &views[0], .target = &views[1], .attributes = attributes, .row = triangle_row};
    return run_rows(&run);
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

/* ---- diagonals ---- */

_Alignas(16) static const unsigned char no_element[ELEMENT_BYTES]; /* 0 in every type */

/* A line of `count` elements of a view, `stride` apart, from an offset on. */
static View line_of(const View *view, int64_t offset, int64_t stride, int64_t count)
{
    View line = {.dtype = view->dtype, .rank = 1, .shape = {count}, .strides = {stride}};
    line.data = (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
    return line;
}

static void fill_view(const View *target, const void *element)
{
    View repeated = *target;
    repeated.data = (void *)(uintptr_t)element;
    memset(repeated.strides, 0, sizeof repeated.strides);
    if (!us_view_is_empty(target)) {
        us_copy_view(target, &repeated);
    }
}

KernelStatus us_diagonal_matrix(const View *views, const void *attributes)
{
    const int64_t diagonal = ((const Diagonal *)attributes)->diagonal;
    const View *out = &views[1];
    const int64_t offset = diagonal < 0 ? -diagonal * out->strides[0] : diagonal * out->strides[1];
    fill_view(out, no_element);
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
        fill_view(&line, element);
    }
    return KERNEL_OK;
}

KernelStatus us_identity(const View *views, const void *attributes)
{
    (void)attributes;
    fill_view(&views[0], no_element);
    return us_fill_diagonal(views, &(DiagonalFill){.value = {1, 0, 1}});
}
