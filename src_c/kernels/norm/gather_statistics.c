#include "kernels/norm/gather_statistics.h"

#include "tensor/lane.h"

#include <math.h>

static double load(const View *view, int64_t row, int64_t column)
{
    const int32_t last = view->rank - 1;
    const int64_t offset = (last > 0 ? row * view->strides[0] : 0) + column * view->strides[last];
    double value;
    us_lane_load(LANE_DOUBLE, &value, (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype),
                 view->dtype, 1, 1);
    return value;
}

static void store(const View *view, int64_t column, double value)
{
    us_lane_store(LANE_DOUBLE, (char *)view->data + column * view->strides[0] * (int64_t)us_dtype_size(view->dtype),
                  view->dtype, 1, &value, 1);
}

static void blend(const View *running, int64_t column, double value, double momentum)
{
    if (!us_view_is_absent(running) && running->shape[0] > 0) {
        store(running, column, load(running, 0, column) * (1 - momentum) + value * momentum);
    }
}

/* Part by part: n elements of mean m and squares around it q. */
static void gather_channel(const View *views, const GatherStatistics *how, int64_t channel)
{
    double count = 0, mean = 0, squares = 0;
    for (int64_t part = 0; part < views[0].shape[0]; part++) {
        const double first = load(&views[0], part, channel), second = load(&views[1], part, channel);
        const double n = load(&views[2], 0, part);
        if (n == 0) {
            continue;
        }
        const double m = how->sums ? first / n : first;
        const double q = how->sums ? second - first * m : (1 / (second * second) - how->epsilon) * n;
        const double away = m - mean, share = n / (count + n);
        squares += q + away * away * count * share;
        mean += away * share;
        count += n;
    }
    const double variance = squares / count;
    blend(&views[3], channel, mean, how->momentum);
    blend(&views[4], channel, count > 1 ? squares / (count - 1) : variance, how->momentum);
    store(&views[5], channel, mean);
    store(&views[6], channel, 1 / sqrt(variance + how->epsilon));
}

KernelStatus us_gather_statistics(const View *views, const void *attributes)
{
    for (int64_t channel = 0; channel < views[0].shape[1]; channel++) {
        gather_channel(views, attributes, channel);
    }
    return KERNEL_OK;
}
