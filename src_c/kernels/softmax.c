#include "kernels/kernels.h"

#include "kernels/exponential.h"
#include "tensor/tile.h"

#include <math.h>


static int64_t element_offset(const View *view, int64_t position, bool in_group, const Softmax *softmax)
{
    int64_t offset = 0;
    for (int32_t axis = view->rank - 1; axis >= 0; axis--) {
        if ((axis >= softmax->first_axis && axis <= softmax->last_axis) == in_group) {
            offset += position % view->shape[axis] * view->strides[axis];
            position /= view->shape[axis];
        }
    }
    return offset;
}

static double read_element(const View *view, int64_t offset)
{
    double value;
    us_load_double(&value, (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype), view->dtype, 1, 1);
    return value;
}

static void write_element(const View *view, int64_t offset, double value)
{
    us_store_double((char *)view->data + offset * (int64_t)us_dtype_size(view->dtype), view->dtype, 1, &value, 1);
}

static double group_shift_and_sum(const View *x, int64_t base, int64_t group, const Softmax *softmax, double *sum)
{
    double shift = 0;
    if (softmax->algorithm != SOFTMAX_FAST) {
        shift = -INFINITY;
        for (int64_t i = 0; i < group; i++) {
            double value = read_element(x, base + element_offset(x, i, true, softmax));
            shift = value > shift || value != value ? value : shift;
        }
    }
    *sum = 0;
    for (int64_t i = 0; i < group; i++) {
        *sum += exp(read_element(x, base + element_offset(x, i, true, softmax)) - shift);
    }
    return shift;
}

static void store_scaled(const View *y, int64_t offset, double value, const Softmax *softmax)
{
    double prior = softmax->beta == 0 ? 0 : softmax->beta * read_element(y, offset);
    write_element(y, offset, softmax->alpha * value + prior);
}

static int64_t group_elements(const View *view, const Softmax *softmax)
{
    int64_t group = 1;
    for (int32_t axis = softmax->first_axis; axis <= softmax->last_axis; axis++) {
        group *= view->shape[axis];
    }
    return group;
}

KernelStatus us_softmax_forward(const View *views, const void *attributes)
{
    const Softmax *softmax = attributes;
    const View *x = &views[0], *y = &views[1];
    if (us_view_elements(x) <= 0) {
        return KERNEL_OK;
    }
    const int64_t group = group_elements(x, softmax), groups = us_view_elements(x) / group;
    for (int64_t g = 0; g < groups; g++) {
        int64_t from = element_offset(x, g, false, softmax), to = element_offset(y, g, false, softmax);
        double sum, shift = group_shift_and_sum(x, from, group, softmax, &sum);
        for (int64_t i = 0; i < group; i++) {
            double value = read_element(x, from + element_offset(x, i, true, softmax)) - shift;
            value = softmax->algorithm == SOFTMAX_LOG ? value - log(sum) : exp(value) / sum;
            store_scaled(y, to + element_offset(y, i, true, softmax), value, softmax);
        }
    }
    return KERNEL_OK;
}

KernelStatus us_softmax_backward(const View *views, const void *attributes)
{
    const Softmax *softmax = attributes;
    const View *y = &views[0], *dy = &views[1], *dx = &views[2];
    if (us_view_elements(y) <= 0) {
        return KERNEL_OK;
    }
    const int64_t group = group_elements(y, softmax), groups = us_view_elements(y) / group;
    const bool is_log = softmax->algorithm == SOFTMAX_LOG;
    for (int64_t g = 0; g < groups; g++) {
        int64_t y_base = element_offset(y, g, false, softmax), dy_base = element_offset(dy, g, false, softmax);
        int64_t dx_base = element_offset(dx, g, false, softmax);
        double sum = 0;
        for (int64_t i = 0; i < group; i++) {
            double gradient = read_element(dy, dy_base + element_offset(dy, i, true, softmax));
            sum += is_log ? gradient : gradient * read_element(y, y_base + element_offset(y, i, true, softmax));
        }
        for (int64_t i = 0; i < group; i++) {
            double gradient = read_element(dy, dy_base + element_offset(dy, i, true, softmax));
            double output = read_element(y, y_base + element_offset(y, i, true, softmax));
            double value = is_log ? gradient - exp(output) * sum : output * (gradient - sum);
            store_scaled(dx, dx_base + element_offset(dx, i, true, softmax), value, softmax);
        }
    }
    return KERNEL_OK;
}
