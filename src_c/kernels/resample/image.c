#include "kernels/resample/image.h"

#include "kernels/scratch.h"
#include "tensor/clones.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

static double get(const void *data, DType dtype, int64_t index)
{
    double value;
    us_load_double(&value, (const char *)data + index * (int64_t)us_dtype_size(dtype), dtype, 1, 1);
    return value;
}

static void set(void *data, DType dtype, int64_t index, double value)
{
    us_store_double((char *)data + index * (int64_t)us_dtype_size(dtype), dtype, 1, &value, 1);
}

static double within(double value, double highest)
{
    return value > 0 ? (value < highest ? value : highest) : 0;
}

/* Halves away from zero; floor of x + 0.5 would round 0.5 - 2^-54 up. */
static double rounded(double x)
{
    const double size = fabs(x), below = floor(size), nearest = below + (size - below >= 0.5 ? 1 : 0);
    return x < 0 ? -nearest : nearest;
}

/* ---- gradients of resizing ---- */

/* Where an index goes along one axis: two neighbours and the weight of the second. */
typedef struct Taps {
    int64_t first, second;
    double weight;
} Taps;

static Taps taps_of(const ResizeGradient *work, int axis, int64_t index)
{
    const double last = (double)(work->image_size[axis] - 1), place = (double)index * work->scale[axis];
    if (work->kind != RESIZE_BILINEAR) {
        const double nearest = work->kind == RESIZE_NEAREST ? floor(place) : rounded(place);
        const int64_t at = (int64_t)within(nearest, last);
        return (Taps){at, at, 0};
    }
    const double low = within(floor(place), last);
    return (Taps){(int64_t)low, (int64_t)within(ceil(place), last), place - floor(place)};
}

/* A piece of work is a block of channels of an image. */
enum { BLOCK_CHANNELS = 64 };

typedef struct ResizeWork {
    const ResizeGradient *gradient;
    const Taps *columns; /* of every column of the slopes */
    int64_t width, blocks; /* channels of a block, blocks of an image */
    atomic_int out_of_memory;
} ResizeWork;

/* to[c] += slopes[c] * weight */
US_ALWAYS_INLINE void add_scaled(double *restrict to, const double *restrict slopes, double weight, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        to[c] += slopes[c] * weight;
    }
}

/* A row of slopes, to two rows of the image. */
KERNEL_CLONES static void add_row(double *first, double *second, double weight, const double *slopes, const Taps *columns,
                                  int64_t count, int64_t channels, bool bilinear)
{
    for (int64_t x = 0; x < count; x++, slopes += channels) {
        const Taps *column = &columns[x];
        const int64_t left = column->first * channels, right = column->second * channels;
        add_scaled(first + left, slopes, (1 - weight) * (1 - column->weight), channels);
        if (bilinear) {
            add_scaled(first + right, slopes, (1 - weight) * column->weight, channels);
            add_scaled(second + left, slopes, weight * (1 - column->weight), channels);
            add_scaled(second + right, slopes, weight * column->weight, channels);
        }
    }
}

/* `count` places of `channels` elements each, `step` elements apart, behind one another or back. */
static void load_places(double *values, const char *data, DType dtype, int64_t count, int64_t channels, int64_t step)
{
    if (channels == step) {
        us_load_double(values, data, dtype, 1, count * channels);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        us_load_double(values + k * channels, data + k * step * (int64_t)us_dtype_size(dtype), dtype, 1, channels);
    }
}

static void store_places(char *data, DType dtype, const double *values, int64_t count, int64_t channels, int64_t step)
{
    if (channels == step) {
        us_store_double(data, dtype, 1, values, count * channels);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        us_store_double(data + k * step * (int64_t)us_dtype_size(dtype), dtype, 1, values + k * channels, channels);
    }
}

/* The elements of the image wait in float64 until all is added. */
static void add_block(void *context, int64_t piece)
{
    ResizeWork *work = context;
    const ResizeGradient *g = work->gradient;
    const int64_t image = piece / work->blocks, first = piece % work->blocks * work->width;
    const int64_t channels = g->channels - first < work->width ? g->channels - first : work->width;
    const int64_t rows = g->slopes_size[0], columns = g->slopes_size[1], width = g->image_size[1];
    const int64_t places = g->image_size[0] * width, size = (int64_t)us_dtype_size(g->dtype);
    const int64_t step = g->planar ? 1 : g->channels; /* from place to place */
    const int64_t image_at = image * g->channels * places + first * (g->planar ? places : 1);
    const int64_t slopes_at = image * g->channels * rows * columns + first * (g->planar ? rows * columns : 1);
    double *sums = us_scratch_take((size_t)((places + columns) * channels) * sizeof *sums);
    if (!sums) {
        atomic_store(&work->out_of_memory, 1);
        return;
    }
    double *slopes = sums + places * channels;
    load_places(sums, (const char *)g->image + image_at * size, g->dtype, places, channels, step);
    for (int64_t y = 0; y < rows; y++) {
        const Taps row = taps_of(g, 0, y);
        load_places(slopes, (const char *)g->slopes + (slopes_at + y * columns * step) * size, g->dtype, columns, channels, step);
        add_row(sums + row.first * width * channels, sums + row.second * width * channels, row.weight, slopes, work->columns,
                columns, channels, g->kind == RESIZE_BILINEAR);
    }
    store_places((char *)g->image + image_at * size, g->dtype, sums, places, channels, step);
    us_scratch_give_back(sums);
}

KernelStatus us_resize_gradient(const ResizeGradient *gradient)
{
    Taps *columns = us_scratch_take((size_t)(gradient->slopes_size[1] + 1) * sizeof *columns);
    if (!columns) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t x = 0; x < gradient->slopes_size[1]; x++) {
        columns[x] = taps_of(gradient, 1, x);
    }
    ResizeWork work = {.gradient = gradient, .columns = columns, .width = gradient->planar ? 1 : BLOCK_CHANNELS};
    work.blocks = (gradient->channels + work.width - 1) / work.width;
    us_parallel(gradient->batch * work.blocks, add_block, &work);
    us_scratch_give_back(columns);
    return work.out_of_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- maxima of regions ---- */

/* The part of an axis in bin p of `bins`: from *begin up to, not including, *end. */
static void bin_of(double first, double last, int64_t bins, int64_t p, int64_t size, int64_t *begin, int64_t *end)
{
    const double extent = last - first + 1 > 1 ? last - first + 1 : 1;
    *begin = (int64_t)within(first + floor((double)p * extent / (double)bins), (double)size);
    *end = (int64_t)within(first + ceil((double)(p + 1) * extent / (double)bins), (double)size);
}

enum { CHANNEL_TILE = 256 };

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
        corner[k] = rounded(corner[k] * work->scale);
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

static double sample(const BoxCrop *work, int64_t image, double y, double x, int64_t channel)
{
    const int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
    const int64_t bottom = (int64_t)ceil(y), right = (int64_t)ceil(x), width = work->size[1];
    const double down = y - (double)top, across = x - (double)left;
    const int64_t base = image * work->size[0] * width;
    const double a = get(work->images, work->dtype, (base + top * width + left) * work->channels + channel);
    const double b = get(work->images, work->dtype, (base + top * width + right) * work->channels + channel);
    const double c = get(work->images, work->dtype, (base + bottom * width + left) * work->channels + channel);
    const double d = get(work->images, work->dtype, (base + bottom * width + right) * work->channels + channel);
    const double upper = a + (b - a) * across, lower = c + (d - c) * across;
    return upper + (lower - upper) * down;
}

static void crop_box(void *context, int64_t box)
{
    const BoxCrop *work = context;
    for (int64_t i = 0; i < work->crop[0]; i++) {
        const double y = crop_place(work, box, 0, i);
        for (int64_t j = 0; j < work->crop[1]; j++) {
            const double x = crop_place(work, box, 1, j);
            const bool inside = y >= 0 && y <= (double)(work->size[0] - 1) && x >= 0 && x <= (double)(work->size[1] - 1);
            for (int64_t c = 0; c < work->channels; c++) {
                const double value = inside ? sample(work, work->box_image[box], y, x, c) : work->outside;
                set(work->out, work->dtype, ((box * work->crop[0] + i) * work->crop[1] + j) * work->channels + c, value);
            }
        }
    }
}

void us_box_crop(const BoxCrop *work)
{
    us_parallel(work->count, crop_box, (void *)work);
}
