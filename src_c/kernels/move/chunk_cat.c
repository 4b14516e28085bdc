#include "kernels/move/chunk_cat.h"

#include "kernels/move/copy_view.h"
#include "kernels/move/move.h"

static int64_t chunk_rows(const View *tensor, int64_t chunks)
{
    return tensor->shape[0] / chunks + (tensor->shape[0] % chunks != 0);
}

static int64_t row_elements(const View *tensor)
{
    return us_shape_elements(tensor->rank - 1, tensor->shape + 1);
}

int64_t us_chunk_elements(const View *tensor, int64_t chunks)
{
    return chunk_rows(tensor, chunks) * row_elements(tensor);
}

/* Some rows and columns of the target. */
static View part_of(const View *target, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    View part = *target;
    const int64_t offset = row * target->strides[0] + column * target->strides[1];
    part.data = (char *)part.data + offset * (int64_t)us_dtype_size(part.dtype);
    part.shape[0] = rows;
    part.shape[1] = columns;
    return part;
}

static View rows_of(const View *tensor, int64_t first, int64_t count)
{
    View rows = *tensor;
    rows.data = (char *)rows.data + first * rows.strides[0] * (int64_t)us_dtype_size(rows.dtype);
    rows.shape[0] = count;
    return rows;
}

static KernelStatus move(const View *from, const View *to)
{
    return us_view_is_empty(to) ? KERNEL_OK : us_reshape((const View[]){*from, *to}, NULL);
}

/* Whole chunks, the one that ends before it is full, and what is left over. */
static KernelStatus place_tensor(const View *tensor, const View *target)
{
    const int64_t chunks = target->shape[0], width = target->shape[1], rows = chunk_rows(tensor, chunks);
    const int64_t whole = rows > 0 ? tensor->shape[0] / rows : 0, rest = tensor->shape[0] - whole * rows;
    const int64_t filled = rest * row_elements(tensor);
    const View from = rows_of(tensor, 0, whole * rows), last = rows_of(tensor, whole * rows, rest);
    const View to = part_of(target, 0, whole, 0, width), end = part_of(target, whole, rest > 0, 0, filled);
    const View gap = part_of(target, whole, rest > 0, filled, width - filled);
    const View after = part_of(target, whole + (rest > 0), chunks - whole - (rest > 0), 0, width);
    us_clear_view(&gap);
    us_clear_view(&after);
    const KernelStatus status = move(&from, &to);
    return status != KERNEL_OK ? status : move(&last, &end);
}

KernelStatus us_chunk_cat(const View *views, const void *attributes)
{
    const ChunkCat *chunk_cat = attributes;
    const View *target = &views[chunk_cat->count];
    KernelStatus status = KERNEL_OK;
    int64_t column = 0;
    for (int32_t i = 0; i < chunk_cat->count && status == KERNEL_OK; i++) {
        const int64_t width = us_chunk_elements(&views[i], target->shape[0]);
        const View part = part_of(target, 0, target->shape[0], column, width);
        status = place_tensor(&views[i], &part);
        column += width;
    }
    return status;
}
