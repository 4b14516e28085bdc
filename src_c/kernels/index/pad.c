#include "kernels/index/pad.h"

#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"

#include <stdatomic.h>
#include <string.h>

typedef struct PadRun {
    const BorderPad *call;
    const View *inside, *padded;
    int32_t last; /* axis */
    /* Per padded axis: the place inside of each padded place, and where places inside begin in `named`, which lists the
     * padded places copied from each, ascending. */
    int64_t *sources[PAD_AXES], *begins[PAD_AXES], *named[PAD_AXES];
    int64_t core_begin, core_end; /* of the last axis: padded places that are the inside itself */
    atomic_bool no_memory;
} PadRun;

static int64_t source_of(BorderMode mode, int64_t place, int64_t size)
{
    switch (mode) {
    case BORDER_REFLECT: return place < 0 ? -place : place >= size ? 2 * (size - 1) - place : place;
    case BORDER_REPLICATE: return place < 0 ? 0 : place >= size ? size - 1 : place;
    case BORDER_WRAP: break;
    }
    return (place % size + size) % size;
}

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
    const int64_t end = before + run->inside->shape[run->last];
    run->core_begin = before < 0 ? 0 : before > padded ? padded : before;
    run->core_end = end > padded ? padded : end < run->core_begin ? run->core_begin : end;
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

static void pad_row(void *context, int64_t row)
{
    const PadRun *run = context;
    const BorderPad *call = run->call;
    const int64_t size = (int64_t)us_dtype_size(run->inside->dtype), *sources = run->sources[call->axes - 1];
    const int64_t from_stride = run->inside->strides[run->last], to_stride = run->padded->strides[run->last];
    int64_t coordinates[VIEW_RANK_LIMIT];
    row_coordinates(run->padded, row, coordinates);
    char *to = (char *)run->padded->data + row_offset(run->padded, coordinates) * size;
    for (int32_t k = 0; k + 1 < call->axes; k++) {
        coordinates[axis_of(run, k)] = run->sources[k][coordinates[axis_of(run, k)]];
    }
    const char *from = (const char *)run->inside->data + row_offset(run->inside, coordinates) * size;
    us_copy_elements(to + run->core_begin * to_stride * size, to_stride,
                     from + (run->core_begin - call->before[call->axes - 1]) * from_stride * size, from_stride, size,
                     run->core_end - run->core_begin);
    for (int64_t j = 0; j < run->padded->shape[run->last]; j++) {
        if (j == run->core_begin && run->core_end > run->core_begin) {
            j = run->core_end - 1;
            continue;
        }
        memcpy(to + j * to_stride * size, from + sources[j] * from_stride * size, (size_t)size);
    }
}

/* sums[source] += row[place] along the last axis; `parts` numbers an element. */
static void add_row(const PadRun *run, double *sums, const double *row, int64_t parts)
{
    const int64_t *sources = run->sources[run->call->axes - 1], padded = run->padded->shape[run->last];
    for (int64_t j = 0; j < padded; j++) {
        for (int64_t part = 0; part < parts; part++) {
            sums[sources[j] * parts + part] += row[j * parts + part];
        }
    }
}

static void gradient_row(void *context, int64_t row)
{
    PadRun *run = context;
    const BorderPad *call = run->call;
    const View *inside = run->inside, *padded = run->padded;
    const Lane lane = us_lane_of(us_wide_dtype(inside->dtype));
    const int64_t parts = lane == LANE_COMPLEX128 ? 2 : 1, size = (int64_t)us_dtype_size(inside->dtype);
    const int64_t width = inside->shape[run->last], padded_width = padded->shape[run->last];
    double *sums = us_scratch_array(us_scratch_count(width + padded_width, parts), sizeof *sums);
    if (sums == NULL) {
        atomic_store(&run->no_memory, true);
        return;
    }
    double *values = sums + width * parts;
    memset(sums, 0, (size_t)(width * parts) * sizeof *sums);
    int64_t coordinates[VIEW_RANK_LIMIT], first[PAD_AXES] = {0}, count[PAD_AXES] = {1, 1, 1}, rows = 1;
    row_coordinates(inside, row, coordinates);
    char *target = (char *)inside->data + row_offset(inside, coordinates) * size;
    for (int32_t k = 0; k + 1 < call->axes; k++) {
        const int64_t place = coordinates[axis_of(run, k)];
        first[k] = run->begins[k][place];
        count[k] = run->begins[k][place + 1] - first[k];
        rows *= count[k];
    }
    for (int64_t number = 0; number < rows; number++) {
        for (int64_t k = call->axes - 2, rest = number; k >= 0; k--) {
            coordinates[axis_of(run, (int32_t)k)] = run->named[k][first[k] + rest % count[k]];
            rest /= count[k];
        }
        us_lane_load(lane, values, (const char *)padded->data + row_offset(padded, coordinates) * size, padded->dtype,
                     padded->strides[run->last], padded_width);
        add_row(run, sums, values, parts);
    }
    us_lane_store(lane, target, inside->dtype, inside->strides[run->last], sums, width);
    us_scratch_give_back(sums);
}

static KernelStatus run_pad(PadRun *run, const View *rows, ParallelBody *body)
{
    const int64_t elements = us_view_elements(rows);
    if (elements <= 0) {
        return KERNEL_OK;
    }
    run->last = rows->rank - 1;
    void *tables = make_tables(run);
    if (tables == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(elements / rows->shape[run->last], elements, body, run);
    us_scratch_give_back(tables);
    return atomic_load(&run->no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_border_pad(const View *views, const void *attributes)
{
    PadRun run = {.call = attributes, .inside = &views[0], .padded = &views[1]};
    return run_pad(&run, run.padded, pad_row);
}

KernelStatus us_border_pad_gradient(const View *views, const void *attributes)
{
    PadRun run = {.call = attributes, .padded = &views[0], .inside = &views[1]};
    return run_pad(&run, run.inside, gradient_row);
}
