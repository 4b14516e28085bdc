#include "kernels/index/fill_ranges.h"

#include <string.h>

static KernelStatus check_ranges(const int32_t *starts, const int32_t *ends, int64_t fills, const View *x)
{
    const int64_t rows = x->shape[0], columns = x->shape[1];
    for (int64_t i = 0; i < fills * rows; i++) {
        if (starts[i] < 0 || ends[i] > columns) {
            return us_kernel_fault("range %lld of row %lld is %d to %d; the row has %lld elements",
                                   (long long)(i / rows), (long long)(i % rows), (int)starts[i], (int)ends[i],
                                   (long long)columns);
        }
    }
    return KERNEL_OK;
}

KernelStatus us_fill_ranges(const View *views, const void *attributes)
{
    enum { X, STARTS, ENDS, VALUES, OUT };
    (void)attributes;
    const int64_t rows = views[X].shape[0], columns = views[X].shape[1], fills = views[VALUES].shape[0];
    const int32_t *starts = views[STARTS].data, *ends = views[ENDS].data;
    const size_t size = us_dtype_size(views[X].dtype);
    const KernelStatus status = check_ranges(starts, ends, fills, &views[X]);
    if (status != KERNEL_OK || rows * columns == 0) {
        return status;
    }
    memmove(views[OUT].data, views[X].data, (size_t)(rows * columns) * size);
    for (int64_t i = 0; i < fills * rows; i++) {
        char *row = (char *)views[OUT].data + i % rows * columns * (int64_t)size;
        for (int64_t column = starts[i]; column < ends[i]; column++) {
            memcpy(row + column * (int64_t)size, (const char *)views[VALUES].data + i / rows * (int64_t)size, size);
        }
    }
    return KERNEL_OK;
}
