#include "kernels/resample/roi_align.h"
#include "kernels/resample/clamped.h"

#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "tensor/convert.h"

#include <math.h>

/* Points along an axis of a bin at most: a region of absurd size does not hang. */
enum { MOST_POINTS = 4096 };

typedef struct Regions {
    const View *views;
    const RoiAlign *settings;
} Regions;

/* Bins along an axis: where the first begins, how long one is, and its points. */
typedef struct Bins {
    double begin, size;
    int64_t points;
} Bins;

static Bins bins_of(const RoiAlign *settings, double from, double to, int64_t count)
{
    const double begin = from * settings->scale, asked = to * settings->scale - begin, length = asked > 1 ? asked : 1;
    Bins bins = {begin, length / (double)count, settings->samples};
    if (bins.points == 0) {
        bins.points = (int64_t)clamped(ceil(bins.size), MOST_POINTS);
    }
    return bins;
}

static double element(const View *image, int64_t n, int64_t c, int64_t y, int64_t x)
{
    const int64_t at = n * image->strides[0] + c * image->strides[1] + y * image->strides[2] + x * image->strides[3];
    double value;
    us_load_double(&value, (const char *)image->data + at * (int64_t)us_dtype_size(image->dtype), image->dtype, 1, 1);
    return value;
}

static double sample(const View *image, int64_t n, int64_t c, double y, double x)
{
    const int64_t height = image->shape[2], width = image->shape[3];
    if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) {
        return 0;
    }
    y = clamped(y, (double)(height - 1));
    x = clamped(x, (double)(width - 1));
    const int64_t top = (int64_t)y, left = (int64_t)x;
    const int64_t bottom = top + 1 < height ? top + 1 : top, right = left + 1 < width ? left + 1 : left;
    const double by_y = y - (double)top, by_x = x - (double)left;
    return (1 - by_y) * ((1 - by_x) * element(image, n, c, top, left) + by_x * element(image, n, c, top, right)) +
           by_y * ((1 - by_x) * element(image, n, c, bottom, left) + by_x * element(image, n, c, bottom, right));
}

static double bin_value(const Regions *regions, int64_t n, int64_t c, const Bins *rows, const Bins *columns, int64_t p,
                        int64_t q)
{
    double result = regions->settings->maximum ? -INFINITY : 0;
    for (int64_t i = 0; i < rows->points; i++) {
        const double y = rows->begin + rows->size * ((double)p + ((double)i + 0.5) / (double)rows->points);
        for (int64_t j = 0; j < columns->points; j++) {
            const double x = columns->begin + columns->size * ((double)q + ((double)j + 0.5) / (double)columns->points);
            const double value = sample(&regions->views[0], n, c, y, x);
            result = !regions->settings->maximum ? result + value : value > result || value != value ? value : result;
        }
    }
    return regions->settings->maximum ? result : result / (double)(rows->points * columns->points);
}

static void align_region(void *context, int64_t piece)
{
    const Regions *regions = context;
    const View *out = &regions->views[3];
    const int64_t channels = out->shape[1], region = piece / channels, c = piece % channels;
    const int64_t p_count = out->shape[2], q_count = out->shape[3];
    double box[4], image;
    us_linear_load_double(&regions->views[1], 4 * region, 4, box);
    us_linear_load_double(&regions->views[2], region, 1, &image);
    const bool known = image >= 0 && image < (double)regions->views[0].shape[0];
    const Bins rows = bins_of(regions->settings, box[1], box[3], p_count);
    const Bins columns = bins_of(regions->settings, box[0], box[2], q_count);
    for (int64_t p = 0; p < p_count; p++) {
        for (int64_t q = 0; q < q_count; q++) {
            const double value = known ? bin_value(regions, (int64_t)image, c, &rows, &columns, p, q) : 0;
            us_linear_store_double(out, (piece * p_count + p) * q_count + q, 1, &value);
        }
    }
}

KernelStatus us_roi_align(const View *views, const void *attributes)
{
    Regions regions = {.views = views, .settings = attributes};
    run_pieces(views[3].shape[0] * views[3].shape[1], us_view_elements(&views[3]) * 16, align_region, &regions);
    return KERNEL_OK;
}
