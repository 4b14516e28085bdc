#include "kernels/index/pad.h"

#include "kernels/move/copy_run.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/lane.h"

#include <stdatomic.h>
#include <string.h>

enum {
    PIECE_ELEMENTS = 8 * 1024,
    PLANE_ELEMENTS = 4 * 1024, /* of planes that are converted whole */
};

static int64_t source_of(BorderMode mode, int64_t place, int64_t size)
{
    switch (mode) {
    case BORDER_REFLECT: return place < 0 ? -place : place >= size ? 2 * (size - 1) - place : place;
    case BORDER_REPLICATE: return place < 0 ? 0 : place >= size ? size - 1 : place;
    case BORDER_WRAP: break;
    }
    return (place % size + size) % size;
}

typedef struct PadRun {
    const BorderPad *call;
    const View *inside, *padded;
    int32_t last; /* axis */
    /* Per padded axis: the place inside of each padded place, and where places inside begin in `named`, which lists the
     * padded places copied from each, ascending. */
    int64_t *sources[PAD_AXES], *begins[PAD_AXES], *named[PAD_AXES];
    int64_t core_begin, core_end; /* of the last axis: padded places that are the inside itself */
    int64_t rows, rows_of_piece; /* of the view that is written */
    int64_t inside_rows, padded_rows; /* of a plane: of the padded axes; 0: rows are converted one by one */
    atomic_bool no_memory;
} PadRun;

static int32_t axis_of(const PadRun *run, int32_t k)
{
    return run->inside->rank - run->call->axes + k;
}

/* NULL: no memory. */
static void *make_tables(PadRun *run)
{
    const BorderPad *call = run->call;
    size_t bytes = 0;
    for (int32_t k = 0; k < call->axes; k++) {
        const int32_t axis = axis_of(run, k);
        bytes += 2 * us_scratch_bytes(run->padded->shape[axis], sizeof(int64_t)) +
                 us_scratch_bytes(run->inside->shape[axis] + 2, sizeof(int64_t));
    }
    char *block = us_scratch_take(bytes), *cursor = block;
    for (int32_t k = 0; k < call->axes && block != NULL; k++) {
        const int64_t outer = run->padded->shape[axis_of(run, k)], inner = run->inside->shape[axis_of(run, k)];
        run->sources[k] = us_scratch_part(&cursor, (size_t)outer * sizeof(int64_t));
        run->named[k] = us_scratch_part(&cursor, (size_t)outer * sizeof(int64_t));
        run->begins[k] = us_scratch_part(&cursor, (size_t)(inner + 2) * sizeof(int64_t));
        memset(run->begins[k], 0, (size_t)(inner + 2) * sizeof(int64_t));
        for (int64_t j = 0; j < outer; j++) {
            run->sources[k][j] = source_of(call->mode, j - call->before[k], inner);
            run->begins[k][run->sources[k][j] + 2]++;
        }
        for (int64_t i = 2; i < inner + 2; i++) {
            run->begins[k][i] += run->begins[k][i - 1];
        }
        for (int64_t j = 0; j < outer; j++) {
            run->named[k][run->begins[k][run->sources[k][j] + 1]++] = j;
        }
    }
    const int64_t before = call->before[call->axes - 1], padded = run->padded->shape[run->last];
    run->core_begin = bounded(before, 0, padded);
    run->core_end = bounded(before + run->inside->shape[run->last], run->core_begin, padded);
    return block;
}

/* Elements from a view's data to the row with these coordinates (of all axes but the last). */
static int64_t row_offset(const View *view, const int64_t *coordinates)
{
    int64_t offset = 0;
    for (int32_t axis = 0; axis < view->rank - 1; axis++) {
        offset += coordinates[axis] * view->strides[axis];
    }
    return offset;
}

static void row_coordinates(const View *view, int64_t row, int64_t *coordinates)
{
    for (int32_t axis = view->rank - 2; axis >= 0; axis--) {
        coordinates[axis] = row % view->shape[axis];
        row /= view->shape[axis];
    }
}

/* ---- the copies ---- */

/* Rows of which `sources` names those inside, NULL: the same ones, from `to` and `from` on, which are the first padded row and
 * row 0 inside. */
typedef struct PadRows {
    char *to;
    const char *from;
    int64_t count, to_row, from_row; /* distances in bytes, here and below */
    const int64_t *sources;
    int64_t to_step, from_step;
} PadRows;

US_ALWAYS_INLINE void pad_border(const PadRun *run, const PadRows *rows, char *to, const char *from, int64_t first, int64_t end,
                                 int size)
{
    const int64_t *sources = run->sources[run->call->axes - 1];
    for (int64_t j = first; j < end; j++) {
        memcpy(to + j * rows->to_step, from + sources[j] * rows->from_step, (size_t)size);
    }
}

US_ALWAYS_INLINE void pad_rows(const PadRun *run, const PadRows *rows, int size)
{
    const int64_t core = run->core_end - run->core_begin, padded = run->padded->shape[run->last];
    const int64_t core_from = run->core_begin - run->call->before[run->call->axes - 1];
    const bool packed = rows->to_step == size && rows->from_step == size;
    for (int64_t row = 0; row < rows->count; row++) {
        char *to = rows->to + row * rows->to_row;
        const char *from = rows->from + (rows->sources != NULL ? rows->sources[row] : row) * rows->from_row;
        if (packed && core > 0) {
            copy_run(to + run->core_begin * size, from + core_from * size, core * size);
        } else {
            us_copy_elements(to + run->core_begin * rows->to_step, rows->to_step / size, from + core_from * rows->from_step,
                             rows->from_step / size, size, core);
        }
        pad_border(run, rows, to, from, 0, run->core_begin, size);
        pad_border(run, rows, to, from, run->core_end, padded, size);
    }
}

static void pad_rows_of_size(const PadRun *run, const PadRows *rows)
{
    switch (us_dtype_size(run->inside->dtype)) {
    case 1: pad_rows(run, rows, 1); break;
    case 2: pad_rows(run, rows, 2); break;
    case 4: pad_rows(run, rows, 4); break;
    case 8: pad_rows(run, rows, 8); break;
    default: pad_rows(run, rows, 16); break;
    }
}

static void pad_piece(void *context, int64_t piece)
{
    const PadRun *run = context;
    const View *padded = run->padded, *inside = run->inside;
    const int64_t size = (int64_t)us_dtype_size(inside->dtype), end = smaller(run->rows, (piece + 1) * run->rows_of_piece);
    const int32_t axis = run->last - 1; /* of rows; -1: there is one */
    PadRows rows = {.to_row = axis < 0 ? 0 : padded->strides[axis] * size, .to_step = padded->strides[run->last] * size,
                    .from_row = axis < 0 ? 0 : inside->strides[axis] * size, .from_step = inside->strides[run->last] * size};
    for (int64_t row = piece * run->rows_of_piece; row < end; row += rows.count) {
        int64_t coordinates[VIEW_RANK_LIMIT];
        row_coordinates(padded, row, coordinates);
        rows.to = (char *)padded->data + row_offset(padded, coordinates) * size;
        rows.count = axis < 0 ? 1 : smaller(end - row, padded->shape[axis] - coordinates[axis]);
        rows.sources = run->call->axes > 1 ? run->sources[run->call->axes - 2] + coordinates[axis] : NULL;
        for (int32_t k = 0; k + 1 < run->call->axes; k++) {
            coordinates[axis_of(run, k)] = run->sources[k][coordinates[axis_of(run, k)]];
        }
        if (rows.sources != NULL) {
            coordinates[axis] = 0;
        }
        rows.from = (const char *)inside->data + row_offset(inside, coordinates) * size;
        pad_rows_of_size(run, &rows);
    }
}

/* ---- the gradient ---- */

/* Places first … end - 1 of the border. */
static void add_border(const int64_t *sources, double *sums, const double *row, int64_t parts, int64_t first, int64_t end)
{
    for (int64_t j = first; j < end; j++) {
        for (int64_t part = 0; part < parts; part++) {
            sums[sources[j] * parts + part] += row[j * parts + part];
        }
    }
}

/* sums[source] += row[place] along the last axis, place by place; `parts` numbers an element. */
static void add_row(const PadRun *run, double *sums, const double *row, int64_t parts)
{
    const int64_t *sources = run->sources[run->call->axes - 1], padded = run->padded->shape[run->last];
    add_border(sources, sums, row, parts, 0, run->core_begin);
    if (run->core_begin < run->core_end) {
        double *restrict core = sums + sources[run->core_begin] * parts;
        const double *restrict values = row + run->core_begin * parts;
        for (int64_t i = 0; i < (run->core_end - run->core_begin) * parts; i++) {
            core[i] += values[i];
        }
    }
    add_border(sources, sums, row, parts, run->core_end, padded);
}

/* One row of the inside. `loaded`: the values of `padded` from element `begin` on; NULL: each row is read into `values`. */
static void gradient_row(const PadRun *run, int64_t row, double *sums, const double *loaded, int64_t begin, double *values)
{
    const BorderPad *call = run->call;
    const View *inside = run->inside, *padded = run->padded;
    const Lane lane = us_lane_of(us_wide_dtype(inside->dtype));
    const int64_t parts = lane == LANE_COMPLEX128 ? 2 : 1, size = (int64_t)us_dtype_size(inside->dtype);
    int64_t coordinates[VIEW_RANK_LIMIT], first[PAD_AXES] = {0}, count[PAD_AXES] = {1, 1, 1}, rows = 1;
    memset(sums, 0, (size_t)(inside->shape[run->last] * parts) * sizeof *sums);
    row_coordinates(inside, row, coordinates);
    for (int32_t k = 0; k + 1 < call->axes; k++) {
        const int64_t place = coordinates[axis_of(run, k)];
        first[k] = run->begins[k][place];
        count[k] = run->begins[k][place + 1] - first[k];
        rows *= count[k];
    }
    for (int64_t number = 0; number < rows; number++) {
        for (int64_t k = call->axes - 2, rest = number; k >= 0; k--) {
            coordinates[axis_of(run, (int32_t)k)] = run->named[k][first[k] + (rows == 1 ? 0 : rest % count[k])];
            rest /= rows == 1 ? 1 : count[k];
        }
        const int64_t offset = row_offset(padded, coordinates);
        if (loaded == NULL) {
            us_lane_load(lane, values, (const char *)padded->data + offset * size, padded->dtype, padded->strides[run->last],
                         padded->shape[run->last]);
        }
        add_row(run, sums, loaded == NULL ? values : loaded + (offset - begin) * parts, parts);
    }
}

/* Whole planes of views that are contiguous. */
static void gradient_planes(const PadRun *run, int64_t first, int64_t end, double *sums, double *values)
{
    const View *inside = run->inside, *padded = run->padded;
    const Lane lane = us_lane_of(us_wide_dtype(inside->dtype));
    const int64_t parts = lane == LANE_COMPLEX128 ? 2 : 1, size = (int64_t)us_dtype_size(inside->dtype);
    const int64_t width = inside->shape[run->last], padded_width = padded->shape[run->last];
    const int64_t begin = first / run->inside_rows * run->padded_rows * padded_width;
    us_lane_load(lane, values, (const char *)padded->data + begin * size, padded->dtype, 1,
                 (end - first) / run->inside_rows * run->padded_rows * padded_width);
    for (int64_t row = first; row < end; row++) {
        gradient_row(run, row, sums + (row - first) * width * parts, values, begin, NULL);
    }
    us_lane_store(lane, (char *)inside->data + first * width * size, inside->dtype, 1, sums, (end - first) * width);
}

static void gradient_rows(const PadRun *run, int64_t first, int64_t end, double *sums, double *values)
{
    const View *inside = run->inside;
    const int64_t size = (int64_t)us_dtype_size(inside->dtype);
    for (int64_t row = first; row < end; row++) {
        int64_t coordinates[VIEW_RANK_LIMIT];
        row_coordinates(inside, row, coordinates);
        gradient_row(run, row, sums, NULL, 0, values);
        us_lane_store(us_lane_of(us_wide_dtype(inside->dtype)), (char *)inside->data + row_offset(inside, coordinates) * size,
                      inside->dtype, inside->strides[run->last], sums, inside->shape[run->last]);
    }
}

static void gradient_piece(void *context, int64_t piece)
{
    PadRun *run = context;
    const int64_t parts = us_lane_of(us_wide_dtype(run->inside->dtype)) == LANE_COMPLEX128 ? 2 : 1;
    const int64_t first = piece * run->rows_of_piece, end = smaller(first + run->rows_of_piece, run->rows);
    const int64_t planes = run->inside_rows > 0 ? (end - first) / run->inside_rows : 0;
    const int64_t own = (planes > 0 ? end - first : 1) * run->inside->shape[run->last] * parts;
    const int64_t read = (planes > 0 ? planes * run->padded_rows : 1) * run->padded->shape[run->last] * parts;
    double *sums = us_scratch_array(us_scratch_count(own + read, 1), sizeof *sums);
    if (sums == NULL) {
        atomic_store(&run->no_memory, true);
        return;
    }
    (planes > 0 ? gradient_planes : gradient_rows)(run, first, end, sums, sums + own);
    us_scratch_give_back(sums);
}

/* ---- both ---- */

static KernelStatus run_pad(PadRun *run, const View *written, ParallelBody *body)
{
    const int64_t elements = us_view_elements(written);
    if (elements <= 0) {
        return KERNEL_OK;
    }
    run->last = written->rank - 1;
    void *tables = make_tables(run);
    if (tables == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run->rows = elements / written->shape[run->last];
    run->rows_of_piece = larger(PIECE_ELEMENTS / written->shape[run->last], 1);
    if (run->inside_rows > 0) {
        run->rows_of_piece = ceiling(run->rows_of_piece, run->inside_rows) * run->inside_rows;
    }
    run_pieces(ceiling(run->rows, run->rows_of_piece), elements, body, run);
    us_scratch_give_back(tables);
    return atomic_load(&run->no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_border_pad(const View *views, const void *attributes)
{
    PadRun run = {.call = attributes, .inside = &views[0], .padded = &views[1]};
    return run_pad(&run, run.padded, pad_piece);
}

static int64_t rows_of_plane(const View *view, int32_t axes)
{
    int64_t rows = 1;
    for (int32_t axis = view->rank - axes; axis < view->rank - 1; axis++) {
        rows *= view->shape[axis];
    }
    return rows;
}

KernelStatus us_border_pad_gradient(const View *views, const void *attributes)
{
    const BorderPad *call = attributes;
    PadRun run = {.call = call, .padded = &views[0], .inside = &views[1]};
    const int32_t last = views[0].rank - 1;
    if (!us_view_is_empty(&views[0]) && us_view_is_contiguous(&views[0]) && us_view_is_contiguous(&views[1])) {
        const int64_t inside = rows_of_plane(run.inside, call->axes), padded = rows_of_plane(run.padded, call->axes);
        if (padded * run.padded->shape[last] <= PLANE_ELEMENTS && inside * run.inside->shape[last] <= PLANE_ELEMENTS) {
            run.inside_rows = inside;
            run.padded_rows = padded;
        }
    }
    return run_pad(&run, run.inside, gradient_piece);
}
