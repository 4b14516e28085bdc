#include "kernels/matmul/lora.h"

#include "kernels/matmul/matmul.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "kernels/sort/lines.h"

enum { TILE = 512 };
enum { Y, X, B, INDICES, OUT, A };

typedef struct Adapting {
    const AddLora *how;
    const View *views;
    int64_t *rows;             /* of the adapter at hand */
    float *x, *inner, *update; /* their x, x a^T and (x a^T) b^T */
} Adapting;

static int64_t index_of(const View *indices, int64_t row)
{
    return ((const int32_t *)indices->data)[row * indices->strides[0]];
}

/* The transposed matrix of an adapter. */
static View turned(const View *weights, int64_t adapter)
{
    View matrix = us_view_remove_axis(*weights, 0);
    matrix.data = (char *)weights->data + adapter * weights->strides[0] * (int64_t)us_dtype_size(weights->dtype);
    const int64_t size = matrix.shape[0], stride = matrix.strides[0];
    matrix.shape[0] = matrix.shape[1];
    matrix.strides[0] = matrix.strides[1];
    matrix.shape[1] = size;
    matrix.strides[1] = stride;
    return matrix;
}

static KernelStatus multiply(const float *rows, int64_t count, const View *matrix, float *to)
{
    const View absent = us_view_absent();
    const int64_t from_shape[] = {count, matrix->shape[0]}, to_shape[] = {count, matrix->shape[1]};
    const ViewProduct how = {.compute = DTYPE_FLOAT32, .alpha = {1}};
    return us_product((const View[]){us_view_contiguous((void *)rows, DTYPE_FLOAT32, 2, from_shape), *matrix, absent,
                                     us_view_contiguous(to, DTYPE_FLOAT32, 2, to_shape), absent, absent}, &how);
}

static void add_row(const Adapting *work, int64_t row, const float *update)
{
    const int64_t columns = work->views[B].shape[1];
    for (int64_t column = 0, count; column < columns; column += count) {
        float y[TILE];
        count = columns - column < TILE ? columns - column : TILE;
        us_row_load(&work->views[Y], row, work->how->begin + column, count, y);
        for (int64_t i = 0; i < count; i++) {
            y[i] += work->how->scale * update[column + i];
        }
        us_row_store(&work->views[OUT], row, work->how->begin + column, count, y);
    }
}

static KernelStatus adapt(const Adapting *work, int64_t adapter)
{
    const View *x = &work->views[X], *a = &work->views[A];
    const int64_t depth = x->shape[1], columns = work->views[B].shape[1];
    int64_t count = 0;
    for (int64_t row = 0; row < x->shape[0]; row++) {
        if (index_of(&work->views[INDICES], row) == adapter) {
            us_row_load(x, row, 0, depth, work->x + count * depth);
            work->rows[count++] = row;
        }
    }
    if (count == 0) {
        return KERNEL_OK;
    }
    const bool whole = !us_view_is_absent(a);
    const View second = turned(&work->views[B], adapter);
    KernelStatus status = KERNEL_OK;
    if (whole) {
        const View first = turned(a, adapter);
        status = multiply(work->x, count, &first, work->inner);
    }
    status = status == KERNEL_OK ? multiply(whole ? work->inner : work->x, count, &second, work->update) : status;
    for (int64_t i = 0; i < count && status == KERNEL_OK; i++) {
        add_row(work, work->rows[i], work->update + i * columns);
    }
    return status;
}

KernelStatus us_add_lora(const View *views, const void *attributes)
{
    const View *x = &views[X], *b = &views[B];
    const int64_t rows = x->shape[0], adapters = b->shape[0];
    for (int64_t row = 0; row < rows; row++) {
        const int64_t index = index_of(&views[INDICES], row);
        if (index < 0 || index >= adapters) {
            return us_kernel_fault("index %lld of %lld is %lld, which is not in 0 … %lld", (long long)row, (long long)rows,
                                   (long long)index, (long long)adapters - 1);
        }
    }
    if (views[OUT].data != views[Y].data) {
        us_copy_view(&views[OUT], &views[Y]);
    }
    const size_t places = us_scratch_bytes(rows, sizeof(int64_t));
    const size_t wide = us_scratch_bytes(rows * x->shape[1], sizeof(float));
    const size_t inner = us_scratch_bytes(us_scratch_count(rows, b->shape[2]), sizeof(float));
    const size_t update = us_scratch_bytes(us_scratch_count(rows, b->shape[1]), sizeof(float));
    char *block = us_scratch_take(places + wide + inner + update), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    Adapting work = {.how = attributes, .views = views};
    work.rows = us_scratch_part(&cursor, places);
    work.x = us_scratch_part(&cursor, wide);
    work.inner = us_scratch_part(&cursor, inner);
    work.update = us_scratch_part(&cursor, update);
    KernelStatus status = KERNEL_OK;
    for (int64_t adapter = 0; adapter < adapters && status == KERNEL_OK; adapter++) {
        status = adapt(&work, adapter);
    }
    us_scratch_give_back(block);
    return status;
}
