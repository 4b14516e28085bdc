#include "kernels/resample/roi_align.h"
#include "kernels/resample/clamped.h"

#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

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
    const double begin = from * settings->scale - (settings->centred ? 0.5 : 0);
    const double asked = to * settings->scale - from * settings->scale, length = settings->centred || asked > 1 ? asked : 1;
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

/* The four pixels about a point, and where it is between them. */
typedef struct Point {
    bool inside; /* or no more than one pixel outside */
    int64_t top, bottom, left, right;
    double by_y, by_x;
} Point;

static Point point_at(const int64_t *sizes, double y, double x)
{
    const int64_t height = sizes[0], width = sizes[1];
    if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) {
        return (Point){0};
    }
    y = clamped(y, (double)(height - 1));
    x = clamped(x, (double)(width - 1));
    const int64_t top = (int64_t)y, left = (int64_t)x;
    return (Point){true, top, top + 1 < height ? top + 1 : top, left, left + 1 < width ? left + 1 : left,
                   y - (double)top, x - (double)left};
}

static double place_of(const Bins *bins, int64_t bin, int64_t point)
{
    return bins->begin + bins->size * ((double)bin + ((double)point + 0.5) / (double)bins->points);
}

static double sample(const View *image, int64_t n, int64_t c, double y, double x)
{
    const Point at = point_at(image->shape + 2, y, x);
    if (!at.inside) {
        return 0;
    }
    return (1 - at.by_y) * ((1 - at.by_x) * element(image, n, c, at.top, at.left) +
                            at.by_x * element(image, n, c, at.top, at.right)) +
           at.by_y * ((1 - at.by_x) * element(image, n, c, at.bottom, at.left) +
                      at.by_x * element(image, n, c, at.bottom, at.right));
}

static double bin_value(const Regions *regions, int64_t n, int64_t c, const Bins *rows, const Bins *columns, int64_t p,
                        int64_t q)
{
    if (rows->points * columns->points == 0) {
        return 0;
    }
    double result = regions->settings->maximum ? -INFINITY : 0;
    for (int64_t i = 0; i < rows->points; i++) {
        for (int64_t j = 0; j < columns->points; j++) {
            const double value = sample(&regions->views[0], n, c, place_of(rows, p, i), place_of(columns, q, j));
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

/* ---- the gradient: an image's plane is one piece, whatever the regions ---- */

static void add_bin(double *plane, const int64_t *sizes, double slope, const Bins *rows, const Bins *columns, int64_t p,
                    int64_t q)
{
    const double share = slope / (double)(rows->points * columns->points);
    for (int64_t i = 0; i < rows->points; i++) {
        for (int64_t j = 0; j < columns->points; j++) {
            const Point at = point_at(sizes, place_of(rows, p, i), place_of(columns, q, j));
            if (at.inside) {
                double *const top = plane + at.top * sizes[1], *const bottom = plane + at.bottom * sizes[1];
                top[at.left] += share * (1 - at.by_y) * (1 - at.by_x);
                top[at.right] += share * (1 - at.by_y) * at.by_x;
                bottom[at.left] += share * at.by_y * (1 - at.by_x);
                bottom[at.right] += share * at.by_y * at.by_x;
            }
        }
    }
}

static void add_region(const Regions *regions, int64_t region, int64_t c, const int64_t *sizes, double *plane)
{
    const View *slopes = &regions->views[0];
    const int64_t p_count = slopes->shape[2], q_count = slopes->shape[3];
    double box[4];
    us_linear_load_double(&regions->views[1], 4 * region, 4, box);
    const Bins rows = bins_of(regions->settings, box[1], box[3], p_count);
    const Bins columns = bins_of(regions->settings, box[0], box[2], q_count);
    for (int64_t p = 0; p < p_count; p++) {
        for (int64_t q = 0; q < q_count; q++) {
            add_bin(plane, sizes, element(slopes, region, c, p, q), &rows, &columns, p, q);
        }
    }
}

typedef struct Planes {
    Regions regions;
    double *planes; /* of the images, as the last view */
} Planes;

static void align_plane(void *context, int64_t piece)
{
    const Planes *work = context;
    const View *views = work->regions.views, *result = &views[3];
    const int64_t channels = result->shape[1], *sizes = result->shape + 2, size = sizes[0] * sizes[1];
    double *const plane = work->planes + piece * size;
    memset(plane, 0, (size_t)size * sizeof *plane);
    for (int64_t region = 0; region < views[0].shape[0]; region++) {
        double image;
        us_linear_load_double(&views[2], region, 1, &image);
        if (image >= (double)(piece / channels) && image < (double)(piece / channels + 1)) {
            add_region(&work->regions, region, piece % channels, sizes, plane);
        }
    }
    us_linear_store_double(result, piece * size, size, plane);
}

KernelStatus us_roi_align_gradient(const View *views, const void *attributes)
{
    const int64_t elements = us_view_elements(&views[3]);
    Planes work = {{.views = views, .settings = attributes}, us_scratch_array(elements, sizeof *work.planes)};
    if (work.planes == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(views[3].shape[0] * views[3].shape[1], us_view_elements(&views[0]) * 16 + elements, align_plane, &work);
    us_scratch_give_back(work.planes);
    return KERNEL_OK;
}
