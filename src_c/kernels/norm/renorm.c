#include "kernels/norm/renorm.h"

#include "kernels/map/formulas.h"
#include "kernels/move/copy_view.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scratch.h"
#include "tensor/axes.h"

#include <string.h>

KernelStatus us_renorm(const View *views, const void *attributes)
{
    const Renorm *how = attributes;
    const int64_t slices = views[0].shape[how->axis];
    View norms = us_view_contiguous(NULL, DTYPE_FLOAT32, views[0].rank, views[0].shape);
    ReduceCall reduce = {.reduction = us_reduce_norm(how->p), .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32,
                         .outputs = 1, .numbers = {{how->p, 0, 0}}};
    for (int32_t axis = 0; axis < norms.rank; axis++) {
        const bool kept = axis == how->axis;
        reduce.axes |= (uint32_t)!kept << axis;
        norms.shape[axis] = kept ? slices : 1;
        norms.strides[axis] = kept;
    }
    float *factors = us_scratch_array(slices, sizeof *factors);
    if (factors == NULL) {
        return KERNEL_NO_MEMORY;
    }
    norms.data = factors;
    KernelStatus status = us_reduce((const View[]){views[0], norms}, &reduce);
    for (int64_t i = 0; i < slices && status == KERNEL_OK; i++) {
        const double norm = (double)factors[i];
        factors[i] = norm > how->limit ? (float)(how->limit / (norm + 1e-7)) : 1;
    }
    const MapCall scale = {.formula = &us_map_mul, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 2,
                           .outputs = 1, .items = 1};
    status = status != KERNEL_OK ? status : us_map((const View[]){views[0], norms, views[1]}, &scale);
    us_scratch_give_back(factors);
    return status;
}

/* Which rows are named, a byte each; `named` may be NULL: nobody asks. */
static KernelStatus mark_rows(const View *indices, int64_t rows, uint8_t *named)
{
    enum { CHUNK = 256 };
    const int64_t count = us_view_elements(indices);
    int64_t loaded[CHUNK];
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){indices}, 1, 0, indices->rank);
    us_axes_complete(&axes, 1);
    if (named != NULL) {
        memset(named, 0, (size_t)rows);
    }
    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        const int64_t length = count - begin < CHUNK ? count - begin : CHUNK;
        us_axes_load(&axes, 0, indices->data, indices->dtype, begin, length, LANE_INT64, loaded);
        for (int64_t i = 0; i < length; i++) {
            if (loaded[i] < 0 || loaded[i] >= rows) {
                return us_kernel_fault("index %lld is outside: there are %lld rows", (long long)loaded[i], (long long)rows);
            }
            if (named != NULL) {
                named[loaded[i]] = 1;
            }
        }
    }
    return KERNEL_OK;
}

static View row_of(const View *matrix, int64_t row)
{
    View view = *matrix;
    view.data = (char *)matrix->data + row * matrix->strides[0] * (int64_t)us_dtype_size(matrix->dtype);
    view.shape[0] = 1;
    return view;
}

/* Named rows to the rows of `packed`, one after the other, or back. */
static void move_rows(const View *matrix, const View *packed, const uint8_t *named, bool back)
{
    for (int64_t row = 0, at = 0; at < packed->shape[0]; row++) {
        if (named[row]) {
            const View whole = row_of(matrix, row), part = row_of(packed, at++);
            us_copy_view(back ? &whole : &part, back ? &part : &whole);
        }
    }
}

KernelStatus us_renorm_rows(const View *views, const void *attributes)
{
    Renorm how = *(const Renorm *)attributes;
    const int64_t rows = views[0].shape[0], width = views[0].shape[1];
    if (width == 0) { /* as many rows as a number can tell */
        return mark_rows(&views[1], rows, NULL);
    }
    uint8_t *named = us_scratch_array(rows, 1);
    if (named == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = mark_rows(&views[1], rows, named);
    int64_t count = 0;
    for (int64_t row = 0; row < rows && status == KERNEL_OK; row++) {
        count += named[row];
    }
    if (count > 0) {
        void *block = us_scratch_array(us_scratch_count(count, width), us_dtype_size(views[0].dtype));
        const View packed = us_view_contiguous(block, views[0].dtype, 2, (const int64_t[]){count, width});
        how.axis = 0;
        status = KERNEL_NO_MEMORY;
        if (block != NULL) {
            move_rows(&views[0], &packed, named, false);
            status = us_renorm((const View[]){packed, packed}, &how);
            move_rows(&views[0], &packed, named, true);
            us_scratch_give_back(block);
        }
    }
    us_scratch_give_back(named);
    return status;
}
