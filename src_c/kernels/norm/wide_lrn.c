#include "kernels/norm/wide_lrn.h"

#include "kernels/maths/maths.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

/* `sums`: of the squares before each channel. */
static void norm_row(const WideLrn *lrn, char *x, char *y, double *values, double *sums)
{
    us_load_double(values, x, lrn->dtype, 1, lrn->channels);
    sums[0] = 0;
    for (int64_t c = 0; c < lrn->channels; c++) {
        sums[c + 1] = sums[c] + values[c] * values[c];
    }
    for (int64_t c = 0; c < lrn->channels; c++) {
        const int64_t first = c > lrn->radius ? c - lrn->radius : 0;
        const int64_t end = c + lrn->radius + 1 < lrn->channels ? c + lrn->radius + 1 : lrn->channels;
        values[c] *= pow_double(lrn->k + lrn->alpha * (sums[end] - sums[first]), -lrn->beta);
    }
    us_store_double(y, lrn->dtype, 1, values, lrn->channels);
}

KernelStatus us_wide_lrn(const WideLrn *lrn)
{
    double *values = us_scratch_take(us_scratch_bytes(lrn->channels, 2 * sizeof *values) + sizeof *values);
    const int64_t row_bytes = lrn->channels * (int64_t)us_dtype_size(lrn->dtype);
    for (int64_t row = 0; values && row < lrn->rows; row++) {
        norm_row(lrn, (char *)lrn->x + row * row_bytes, (char *)lrn->y + row * row_bytes, values, values + lrn->channels);
    }
    us_scratch_give_back(values);
    return values ? KERNEL_OK : KERNEL_NO_MEMORY;
}
