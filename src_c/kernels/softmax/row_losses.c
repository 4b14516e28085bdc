#include "kernels/softmax/row_losses.h"

#include "kernels/maths/maths.h"
#include "tensor/convert.h"

static double get(const void *data, DType dtype, int64_t index)
{
    double value;
    us_load_double(&value, (const char *)data + index * (int64_t)us_dtype_size(dtype), dtype, 1, 1);
    return value;
}

static void set(void *data, DType dtype, int64_t index, double value)
{
    if (data) {
        us_store_double((char *)data + index * (int64_t)us_dtype_size(dtype), dtype, 1, &value, 1);
    }
}

static double row_loss(const RowLosses *work, int64_t row)
{
    const int64_t step = work->inner, first = row / step * work->classes * step + row % step;
    double top = -1.0 / 0.0, sum = 0, loss = 0;
    for (int64_t c = 0; c < work->classes; c++) {
        const double x = get(work->logits, work->dtype, first + c * step);
        top = x > top || x != x ? x : top;
    }
    for (int64_t c = 0; c < work->classes; c++) {
        sum += exp_double(get(work->logits, work->dtype, first + c * step) - top);
    }
    const double offset = top + log_double(sum);
    for (int64_t c = 0; c < work->classes; c++) {
        const int64_t at = first + c * step;
        const double logarithm = get(work->logits, work->dtype, at) - offset, p = exp_double(logarithm);
        const double label = work->class_labels ? c == work->class_labels[row] : get(work->labels, work->label_dtype, at);
        loss -= label != 0 ? label * logarithm : 0; /* 0 * -infinity is nothing */
        set(work->probabilities, work->result, at, p);
        set(work->gradients, work->result, at, p - label);
    }
    return loss;
}

void us_row_losses(RowLosses *work)
{
    work->sum = 0;
    for (int64_t row = 0; row < work->outer * work->inner; row++) {
        const double loss = row_loss(work, row);
        set(work->losses, work->result, row, loss);
        work->sum += loss;
    }
}
