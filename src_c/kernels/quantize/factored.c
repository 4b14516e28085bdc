#include "kernels/quantize/factored.h"

#include "kernels/quantize/product.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

enum { X, WEIGHT, FACTOR, Y, ADDED, BIAS };

/* A row of n numbers, `absent` if there is none. */
static void load_row(const View *row, float absent, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = absent;
    }
    if (!us_view_is_absent(row)) {
        us_load_float(to, row->data, row->dtype, row->strides[1], n);
    }
}

KernelStatus us_factored_weight_product(const View *views, const void *attributes)
{
    const FactoredWeight *how = attributes;
    const int64_t n = views[Y].shape[1], shape[] = {1, n};
    float *memory = us_scratch_take(us_scratch_bytes(n, 2 * sizeof *memory) + 64);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    float *scale = memory, *offset = memory + n;
    load_row(&views[FACTOR], 1, n, scale);
    load_row(&views[ADDED], 0, n, offset);
    for (int64_t i = 0; i < n; i++) {
        scale[i] *= how->scale;
        offset[i] = offset[i] / how->scale - how->offset;
    }
    const View scales = us_view_contiguous(scale, DTYPE_FLOAT32, 2, shape), absent = us_view_absent();
    const View offsets = us_view_contiguous(offset, DTYPE_FLOAT32, 2, shape);
    const KernelStatus status = us_quantized_weight_product(
        (const View[]){views[X], views[WEIGHT], scales, views[Y], offsets, views[BIAS], absent, absent},
        &(WeightProduct){.group = INT64_MAX, .packed = NOT_PACKED});
    us_scratch_give_back(memory);
    return status;
}
