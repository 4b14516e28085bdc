#include "kernels/resample/roi_align.h"
#include "kernels/resample/clamped.h"
#include "kernels/resample/pixel.h"

#include "kernels/linear.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <math.h>
#include <stdatomic.h>

/* Points along an axis of a bin at most: a region of absurd size does not hang. Channels of a piece of work; bins that are
 * stored at a time. */
enum { MOST_POINTS = 4096, CHANNELS = 16, TILE = 64 };

typedef struct Regions {
    const View *views;
    const RoiAlign *settings;
    int64_t groups; /* of channels */
    atomic_bool no_memory;
} Regions;

/* ---- points ---- */

/* Bins along an axis: where the first begins, how long one is, and its points. */
typedef struct Bins {
    double begin, size;
    int64_t count, points;
} Bins;

static Bins bins_of(const RoiAlign *settings, double from, double to, int64_t count)
{
    const double begin = from * settings->scale - (settings->centred ? 0.5 : 0);
    const double asked = to * settings->scale - from * settings->scale, length = settings->centred || asked > 1 ? asked : 1;
    Bins bins = {begin, length / (double)count, count, settings->samples};
    if (bins.points == 0) {
        bins.points = (int64_t)clamped(ceil(bins.size), MOST_POINTS);
    }
    return bins;
}

/* The two pixels about a point along an axis, as elements of the plane, and how far behind the first it is. */
typedef struct Place {
    bool inside; /* or no more than one pixel outside */
    int64_t low, high;
    double by;
} Place;

static void place_points(const Bins *bins, int64_t size, int64_t stride, Place *places)
{
    for (int64_t bin = 0; bin < bins->count; bin++) {
        for (int64_t point = 0; point < bins->points; point++) {
            const double asked = bins->begin + bins->size * ((double)bin + ((double)point + 0.5) / (double)bins->points);
            const double at = clamped(asked, (double)(size - 1));
            const int64_t low = (int64_t)at, high = low + 1 < size ? low + 1 : low;
            *places++ = (Place){asked >= -1 && asked <= (double)size, low * stride, high * stride, at - (double)low};
        }
    }
}

/* The points of a region, bin by bin. */
typedef struct Points {
    Bins rows, columns;
    Place *of_rows, *of_columns;
} Points;

/* In a plane of these sizes and strides. False: no memory, else free_points. */
static bool find_points(const Regions *regions, int64_t region, const int64_t *counts, const int64_t *sizes,
                        const int64_t *strides, Points *points)
{
    double box[4];
    us_linear_load_double(&regions->views[1], 4 * region, 4, box);
    points->rows = bins_of(regions->settings, box[1], box[3], counts[0]);
    points->columns = bins_of(regions->settings, box[0], box[2], counts[1]);
    const size_t of_rows = us_scratch_bytes(us_scratch_count(counts[0], points->rows.points), sizeof(Place));
    const size_t of_columns = us_scratch_bytes(us_scratch_count(counts[1], points->columns.points), sizeof(Place));
    char *cursor = us_scratch_take(of_rows + of_columns);
    if (cursor == NULL) {
        return false;
    }
    points->of_rows = us_scratch_part(&cursor, of_rows);
    points->of_columns = us_scratch_part(&cursor, of_columns);
    place_points(&points->rows, sizes[0], strides[0], points->of_rows);
    place_points(&points->columns, sizes[1], strides[1], points->of_columns);
    return true;
}

static void free_points(Points *points)
{
    us_scratch_give_back(points->of_rows);
}

/* ---- forwards ---- */

US_ALWAYS_INLINE double sample(const char *plane, DType dtype, Place row, Place column)
{
    if (!row.inside || !column.inside) {
        return 0;
    }
    return (1 - row.by) * ((1 - column.by) * us_pixel(plane, dtype, row.low + column.low) +
                           column.by * us_pixel(plane, dtype, row.low + column.high)) +
           row.by * ((1 - column.by) * us_pixel(plane, dtype, row.high + column.low) +
                     column.by * us_pixel(plane, dtype, row.high + column.high));
}

static double bin_value(const Regions *regions, const char *plane, const Points *points, int64_t p, int64_t q)
{
    const bool maximum = regions->settings->maximum;
    const DType dtype = regions->views[0].dtype;
    const int64_t row_count = points->rows.points, column_count = points->columns.points;
    const Place *rows = points->of_rows + p * row_count, *columns = points->of_columns + q * column_count;
    if (row_count == 0 || column_count == 0) {
        return 0;
    }
    double result = maximum ? -INFINITY : 0;
    for (int64_t i = 0; i < row_count; i++) {
        for (int64_t j = 0; j < column_count; j++) {
            const double value = sample(plane, dtype, rows[i], columns[j]);
            result = !maximum ? result + value : value > result || value != value ? value : result;
        }
    }
    return maximum ? result : result / (double)(row_count * column_count);
}

/* Some channels of a region; without points it is of no image. */
static void align_channels(const Regions *regions, int64_t region, int64_t image, int64_t first, const Points *points)
{
    const View *images = &regions->views[0], *out = &regions->views[3];
    const int64_t channels = out->shape[1], last = channels - first < CHANNELS ? channels : first + CHANNELS;
    const int64_t bins = out->shape[2] * out->shape[3], across = out->shape[3];
    for (int64_t c = first; c < last; c++) {
        const char *plane = us_plane_of(images, image, c);
        double values[TILE];
        for (int64_t bin = 0; bin < bins; bin += TILE) {
            const int64_t count = bins - bin < TILE ? bins - bin : TILE;
            for (int64_t k = 0; k < count; k++) {
                values[k] = points != NULL ? bin_value(regions, plane, points, (bin + k) / across, (bin + k) % across) : 0;
            }
            us_linear_store_double(out, (region * channels + c) * bins + bin, count, values);
        }
    }
}

static void align_piece(void *context, int64_t piece)
{
    Regions *regions = context;
    const View *images = &regions->views[0];
    const int64_t region = piece / regions->groups, first = piece % regions->groups * CHANNELS;
    double image;
    Points points;
    us_linear_load_double(&regions->views[2], region, 1, &image);
    if (!(image >= 0 && image < (double)images->shape[0])) {
        align_channels(regions, region, 0, first, NULL);
    } else if (find_points(regions, region, regions->views[3].shape + 2, images->shape + 2, images->strides + 2, &points)) {
        align_channels(regions, region, (int64_t)image, first, &points);
        free_points(&points);
    } else {
        atomic_store(&regions->no_memory, true);
    }
}

KernelStatus us_roi_align(const View *views, const void *attributes)
{
    Regions regions = {.views = views, .settings = attributes, .groups = (views[3].shape[1] + CHANNELS - 1) / CHANNELS};
    run_pieces(views[3].shape[0] * regions.groups, us_view_elements(&views[3]) * 16, align_piece, &regions);
    return atomic_load(&regions.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- the gradient: an image's plane is one piece, whatever the regions ---- */

static void add_bin(double *plane, double slope, const Points *points, int64_t p, int64_t q)
{
    const int64_t row_count = points->rows.points, column_count = points->columns.points;
    const Place *rows = points->of_rows + p * row_count, *columns = points->of_columns + q * column_count;
    const double share = slope / (double)(row_count * column_count);
    for (int64_t i = 0; i < row_count; i++) {
        for (int64_t j = 0; j < column_count; j++) {
            const Place y = rows[i], x = columns[j];
            if (y.inside && x.inside) {
                plane[y.low + x.low] += share * (1 - y.by) * (1 - x.by);
                plane[y.low + x.high] += share * (1 - y.by) * x.by;
                plane[y.high + x.low] += share * y.by * (1 - x.by);
                plane[y.high + x.high] += share * y.by * x.by;
            }
        }
    }
}

static bool add_region(const Regions *regions, int64_t region, int64_t c, double *plane)
{
    const View *slopes = &regions->views[0];
    const int64_t *sizes = regions->views[3].shape + 2, *counts = slopes->shape + 2;
    const char *own = us_plane_of(slopes, region, c);
    Points points;
    if (!find_points(regions, region, counts, sizes, (const int64_t[]){sizes[1], 1}, &points)) {
        return false;
    }
    for (int64_t p = 0; p < counts[0]; p++) {
        for (int64_t q = 0; q < counts[1]; q++) {
            add_bin(plane, us_pixel(own, slopes->dtype, p * slopes->strides[2] + q * slopes->strides[3]), &points, p, q);
        }
    }
    free_points(&points);
    return true;
}

static void align_plane(void *context, int64_t piece)
{
    Regions *regions = context;
    const View *views = regions->views, *result = &views[3];
    const int64_t channels = result->shape[1], size = result->shape[2] * result->shape[3];
    double *const plane = us_scratch_array(size, sizeof *plane);
    bool finished = plane != NULL;
    if (finished) {
        memset(plane, 0, (size_t)size * sizeof *plane);
    }
    for (int64_t region = 0; region < views[0].shape[0] && finished; region++) {
        double image;
        us_linear_load_double(&views[2], region, 1, &image);
        if (image >= (double)(piece / channels) && image < (double)(piece / channels + 1)) {
            finished = add_region(regions, region, piece % channels, plane);
        }
    }
    if (finished) {
        us_linear_store_double(result, piece * size, size, plane);
    } else {
        atomic_store(&regions->no_memory, true);
    }
    us_scratch_give_back(plane);
}

KernelStatus us_roi_align_gradient(const View *views, const void *attributes)
{
    Regions regions = {.views = views, .settings = attributes};
    run_pieces(views[3].shape[0] * views[3].shape[1], us_view_elements(&views[0]) * 16 + us_view_elements(&views[3]),
               align_plane, &regions);
    return atomic_load(&regions.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
