#include "kernels/index/rows.h"
#include "kernels/map/formulas.h"
#include "kernels/matmul/grouped.h"
#include "kernels/move/copy_view.h"
#include "kernels/move/move.h"
#include "kernels/scratch.h"

#include <string.h>

enum { LIST, OUT = 1 + GROUPED_OUT, VIEWS = 1 + GROUPED_OPERANDS };
enum { WEIGHTS, PLACES, SHARED }; /* behind those of the product */

typedef struct Space {
    float *sums, *result; /* of out, where its rows do not lie side by side */
    int64_t *places;
    void *block;
} Space;

static KernelStatus take_space(const View *out, int64_t rows, Space *space)
{
    const int64_t width = out->shape[1];
    const bool copies = !us_view_is_contiguous(out);
    const size_t parts[] = {us_scratch_bytes(us_scratch_count(rows, width), sizeof *space->sums),
                            copies ? us_scratch_bytes(us_view_elements(out), sizeof *space->result) : 0,
                            us_scratch_bytes(rows, sizeof *space->places)};
    char *cursor = space->block = us_scratch_take(us_scratch_sum(parts, 3));
    if (space->block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    space->sums = us_scratch_part(&cursor, parts[0]);
    space->result = us_scratch_part(&cursor, parts[1]);
    space->places = us_scratch_part(&cursor, parts[2]);
    space->result = copies ? space->result : out->data;
    return KERNEL_OK;
}

static KernelStatus read_places(const View *places, int64_t rows, int64_t targets, int64_t *read)
{
    View used = *places;
    used.shape[0] = rows;
    us_reshape((const View[]){used, us_view_contiguous(read, DTYPE_INT64, 1, &rows)}, NULL);
    for (int64_t row = 0; row < rows; row++) {
        if (read[row] < 0 || read[row] >= targets) {
            return us_kernel_fault("row %lld goes to row %lld of %lld", (long long)row, (long long)read[row],
                                   (long long)targets);
        }
    }
    return KERNEL_OK;
}

static KernelStatus weigh(const View *sums, const View *weights)
{
    if (us_view_is_absent(weights)) {
        return KERNEL_OK;
    }
    View column = us_view_insert_axis(*weights, 1, 1, 0);
    column.shape[0] = sums->shape[0];
    return us_map_floats(&us_map_mul, 2, (const View[]){*sums, column, *sums});
}

static KernelStatus put_beneath(const GroupedShared *shared, const View *from, const View *result)
{
    memset(result->data, 0, (size_t)us_view_elements(result) * sizeof(float));
    if (us_view_is_absent(from)) {
        return KERNEL_OK;
    }
    const View rows = us_view_rows(result, shared->begin, shared->begin + from->shape[0]);
    const MapCall scaled = {.formula = &us_map_scale, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 1,
                            .outputs = 1, .items = 1, .numbers = {{shared->factor, 0, 0}}};
    return us_map((const View[]){*from, rows}, &scaled);
}

static KernelStatus combine(const GroupedProduct *call, const View *more, const View *out, const Space *space, int64_t rows)
{
    const int64_t width = out->shape[1];
    const View sums = us_view_contiguous(space->sums, DTYPE_FLOAT32, 2, (const int64_t[]){rows, width});
    const View result = us_view_contiguous(space->result, DTYPE_FLOAT32, 2, out->shape);
    const View index = us_view_contiguous(space->places, DTYPE_INT64, 1, &rows);
    KernelStatus status = read_places(&more[PLACES], rows, out->shape[0], space->places);
    status = status == KERNEL_OK && rows > 0 ? weigh(&sums, &more[WEIGHTS]) : status;
    status = status == KERNEL_OK ? put_beneath(&call->shared, &more[SHARED], &result) : status;
    if (status == KERNEL_OK && rows > 0) {
        status = us_add_rows(&(RowSum){.out = result.data, .rows = sums.data, .index = &index, .targets = out->shape[0],
                                       .width = width, .dtype = DTYPE_FLOAT32});
    }
    if (status == KERNEL_OK && result.data != out->data) {
        us_copy_view(out, &result);
    }
    return status;
}

KernelStatus us_grouped_combined(const View *views, const void *attributes)
{
    const GroupedProduct *call = attributes;
    const View *more = &views[1 + call->operand_count];
    const int64_t shape[] = {more[PLACES].shape[0], views[OUT].shape[1]};
    Space space;
    if (take_space(&views[OUT], shape[0], &space) != KERNEL_OK) {
        return KERNEL_NO_MEMORY;
    }
    View own[VIEWS];
    memcpy(own, views, (size_t)(1 + call->operand_count) * sizeof *own);
    own[OUT] = us_view_contiguous(space.sums, DTYPE_FLOAT32, 2, shape);
    KernelStatus status = us_grouped_product(own, call);
    if (status == KERNEL_OK) {
        status = combine(call, more, &views[OUT], &space, us_grouped_rows(call, &views[LIST]));
    }
    us_scratch_give_back(space.block);
    return status;
}
