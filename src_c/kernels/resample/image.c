#include "kernels/resample/image.h"

#include "kernels/resample/clamped.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <math.h>

enum { CHANNEL_TILE = 256 };

/* ---- maxima of regions ---- */

/* The part of an axis in bin p of `bins`: from *begin up to, not including, *end. */
static void bin_of(double first, double last, int64_t bins, int64_t p, int64_t size, int64_t *begin, int64_t *end)
{
    const double extent = last - first + 1 > 1 ? last - first + 1 : 1;
    *begin = (int64_t)clamped(first + floor((double)p * extent / (double)bins), (double)size);
    *end = (int64_t)clamped(first + ceil((double)(p + 1) * extent / (double)bins), (double)size);
}

/* The maximum over a bin of channels that follow each other, the first of them element `from` of the image's corner; NaN
 * stays. An empty bin gives 0. */
static void pool_bin(const RegionMaximum *work, int64_t from, const int64_t *begin, const int64_t *end, int64_t count,
                     double *highest)
{
    const bool is_empty = begin[0] >= end[0] || begin[1] >= end[1];
    double values[CHANNEL_TILE];
    for (int64_t c = 0; c < count; c++) {
        highest[c] = is_empty ? 0 : -INFINITY;
    }
    for (int64_t y = begin[0]; y < end[0] && !is_empty; y++) {
        for (int64_t x = begin[1]; x < end[1]; x++) {
            const int64_t at = from + (y * work->size[1] + x) * work->channels;
            us_load_double(values, (const char *)work->image + at * (int64_t)us_dtype_size(work->dtype), work->dtype, 1,
                           count);
            for (int64_t c = 0; c < count; c++) {
                highest[c] = values[c] > highest[c] || values[c] != values[c] ? values[c] : highest[c];
            }
        }
    }
}

static void pool_region(void *context, int64_t region)
{
    const RegionMaximum *work = context;
    const int64_t bytes = (int64_t)us_dtype_size(work->dtype);
    double corner[5], highest[CHANNEL_TILE];
    us_load_double(corner, (const char *)work->regions + region * 5 * (int64_t)us_dtype_size(work->region_dtype),
                   work->region_dtype, 1, 5);
    for (int k = 1; k < 5; k++) {
        corner[k] = rounded((double)((float)corner[k] * work->scale));
    }
    const int64_t image = (int64_t)corner[0] * work->size[0] * work->size[1] * work->channels;
    for (int64_t bin = 0; bin < work->pooled[0] * work->pooled[1]; bin++) {
        int64_t begin[2], end[2];
        bin_of(corner[1], corner[3], work->pooled[0], bin / work->pooled[1], work->size[0], &begin[0], &end[0]);
        bin_of(corner[2], corner[4], work->pooled[1], bin % work->pooled[1], work->size[1], &begin[1], &end[1]);
        char *out = (char *)work->out + (region * work->pooled[0] * work->pooled[1] + bin) * work->channels * bytes;
        for (int64_t c = 0; c < work->channels; c += CHANNEL_TILE) {
            const int64_t count = work->channels - c < CHANNEL_TILE ? work->channels - c : CHANNEL_TILE;
            pool_bin(work, image + c, begin, end, count, highest);
            us_store_double(out + c * bytes, work->dtype, 1, highest, count);
        }
    }
}

void us_region_maximum(const RegionMaximum *work)
{
    us_parallel(work->count, pool_region, (void *)work);
}

/* ---- crops ---- */

/* Where point i of a crop lies along an axis of the image. */
static double crop_place(const BoxCrop *work, int64_t box, int axis, int64_t i)
{
    const double first = work->boxes[4 * box + axis], last = work->boxes[4 * box + 2 + axis];
    const double steps = (double)(work->size[axis] - 1), points = (double)(work->crop[axis] - 1);
    return points > 0 ? first * steps + (double)i * (last - first) * steps / points : 0.5 * (first + last) * steps;
}

/* `count` channels of a pixel, from one of them on. */
static void load_pixel(const BoxCrop *work, int64_t pixel, int64_t channel, int64_t count, double *values)
{
    const int64_t at = pixel * work->channels + channel;
    us_load_double(values, (const char *)work->images + at * (int64_t)us_dtype_size(work->dtype), work->dtype, 1, count);
}

static void sample(const BoxCrop *work, int64_t image, double y, double x, int64_t channel, int64_t count, double *values)
{
    const int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
    const int64_t bottom = (int64_t)ceil(y), right = (int64_t)ceil(x), width = work->size[1];
    const double down = y - (double)top, across = x - (double)left;
    const int64_t above = (image * work->size[0] + top) * width, below = (image * work->size[0] + bottom) * width;
    double a[CHANNEL_TILE], b[CHANNEL_TILE], c[CHANNEL_TILE], d[CHANNEL_TILE];
    load_pixel(work, above + left, channel, count, a);
    load_pixel(work, above + right, channel, count, b);
    load_pixel(work, below + left, channel, count, c);
    load_pixel(work, below + right, channel, count, d);
    for (int64_t i = 0; i < count; i++) {
        const double upper = a[i] + (b[i] - a[i]) * across, lower = c[i] + (d[i] - c[i]) * across;
        values[i] = upper + (lower - upper) * down;
    }
}

static void crop_point(const BoxCrop *work, int64_t box, int64_t i, int64_t j)
{
    const double y = crop_place(work, box, 0, i), x = crop_place(work, box, 1, j);
    const bool inside = y >= 0 && y <= (double)(work->size[0] - 1) && x >= 0 && x <= (double)(work->size[1] - 1);
    const int64_t bytes = (int64_t)us_dtype_size(work->dtype);
    char *out = (char *)work->out + ((box * work->crop[0] + i) * work->crop[1] + j) * work->channels * bytes;
    for (int64_t c = 0; c < work->channels; c += CHANNEL_TILE) {
        const int64_t count = work->channels - c < CHANNEL_TILE ? work->channels - c : CHANNEL_TILE;
        double values[CHANNEL_TILE];
        for (int64_t k = 0; k < count; k++) {
            values[k] = work->outside;
        }
        if (inside) {
            sample(work, work->box_image[box], y, x, c, count, values);
        }
        us_store_double(out + c * bytes, work->dtype, 1, values, count);
    }
}

static void crop_box(void *context, int64_t box)
{
    const BoxCrop *work = context;
    for (int64_t i = 0; i < work->crop[0]; i++) {
        for (int64_t j = 0; j < work->crop[1]; j++) {
            crop_point(work, box, i, j);
        }
    }
}

void us_box_crop(const BoxCrop *work)
{
    us_parallel(work->count, crop_box, (void *)work);
}
