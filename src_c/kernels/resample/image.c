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

/* sums[i] += slopes[i] * weight */
KERNEL_CLONES static void add_scaled(double *restrict sums, const double *restrict slopes, double weight, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += slopes[i] * weight;
    }
}

US_ALWAYS_INLINE void add_places(double *image, const double *row, const Taps *columns, int64_t count, int64_t channels,
                                 bool bilinear)
{
    for (int64_t x = 0; x < count; x++, row += channels) {
        const Taps *column = &columns[x];
        double *left = image + column->first * channels, *right = image + column->second * channels;
        for (int64_t c = 0; c < channels; c++) {
            left[c] += bilinear ? row[c] * (1 - column->weight) : row[c];
        }
        for (int64_t c = 0; bilinear && c < channels; c++) {
            right[c] += row[c] * column->weight;
        }
    }
}

/* One channel: what neighbouring columns add to a place is summed before it is stored. */
US_ALWAYS_INLINE void add_single_places(double *image, const double *row, const Taps *columns, int64_t count, bool bilinear)
{
    for (int64_t x = 0; x < count;) {
        const int64_t first = columns[x].first, second = columns[x].second;
        double left = 0, right = 0;
        for (; x < count && columns[x].first == first && columns[x].second == second; x++) {
            left += row[x] * (1 - columns[x].weight);
            right += row[x] * columns[x].weight;
        }
        image[first] += left;
        if (bilinear) {
            image[second] += right;
        }
    }
}

/* A row of sums, as wide as the slopes are, to a row of the image. */
KERNEL_CLONES static void add_row(double *image, const double *row, const Taps *columns, int64_t count, int64_t channels,
                                  bool bilinear)
{
    if (channels == 1) {
        add_single_places(image, row, columns, count, bilinear);
    } else if (bilinear) {
        add_places(image, row, columns, count, channels, true);
    } else {
        add_places(image, row, columns, count, channels, false);
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

/* Where a block of channels of an image lies. */
typedef struct ResizeBlock {
    char *image;
    const char *slopes;
    int64_t channels, step; /* step: from place to place, elements */
} ResizeBlock;

static ResizeBlock block_of(const ResizeWork *work, int64_t piece)
{
    const ResizeGradient *g = work->gradient;
    const int64_t image = piece / work->blocks, first = piece % work->blocks * work->width;
    const int64_t places = g->image_size[0] * g->image_size[1], taken = g->slopes_size[0] * g->slopes_size[1];
    const int64_t size = (int64_t)us_dtype_size(g->dtype);
    return (ResizeBlock){
        (char *)g->image + (image * g->channels * places + first * (g->planar ? places : 1)) * size,
        (const char *)g->slopes + (image * g->channels * taken + first * (g->planar ? taken : 1)) * size,
        g->channels - first < work->width ? g->channels - first : work->width, g->planar ? 1 : g->channels};
}

/* Sums for a row of the image, as wide as the slopes are. */
typedef struct WideRow {
    double *sums;
    int64_t y; /* the row; -1: none yet */
} WideRow;

/* Adds the sums to the row of the image. */
static void give_row(const ResizeWork *work, const ResizeBlock *block, WideRow *row, double *elements)
{
    const ResizeGradient *g = work->gradient;
    const int64_t width = g->image_size[1];
    char *image = block->image + row->y * width * block->step * (int64_t)us_dtype_size(g->dtype);
    if (row->y >= 0) {
        load_places(elements, image, g->dtype, width, block->channels, block->step);
        add_row(elements, row->sums, work->columns, g->slopes_size[1], block->channels, g->kind == RESIZE_BILINEAR);
        store_places(image, g->dtype, elements, width, block->channels, block->step);
    }
}

/* Down the rows of the slopes, in float64. These go to neighbouring rows of the image, further down each time, so that
 * two rows of sums will do. */
static void add_block(void *context, int64_t piece)
{
    ResizeWork *work = context;
    const ResizeGradient *g = work->gradient;
    const ResizeBlock block = block_of(work, piece);
    const int64_t columns = g->slopes_size[1], size = columns * block.channels;
    double *memory = us_scratch_take((size_t)(3 * size + g->image_size[1] * block.channels) * sizeof *memory);
    if (!memory) {
        atomic_store(&work->out_of_memory, 1);
        return;
    }
    double *slopes = memory + 2 * size, *elements = memory + 3 * size;
    WideRow rows[] = {{memory, -1}, {memory + size, -1}};
    for (int64_t y = 0; y < g->slopes_size[0]; y++) {
        const Taps tap = taps_of(g, 0, y);
        const char *from = block.slopes + y * columns * block.step * (int64_t)us_dtype_size(g->dtype);
        load_places(slopes, from, g->dtype, columns, block.channels, block.step);
        for (int k = 0; k < (g->kind == RESIZE_BILINEAR ? 2 : 1); k++) {
            const int64_t at = k == 0 ? tap.first : tap.second;
            WideRow *row = &rows[at % 2];
            if (row->y != at) {
                give_row(work, &block, row, elements);
                memset(row->sums, 0, (size_t)size * sizeof *row->sums);
                row->y = at;
            }
            add_scaled(row->sums, slopes, k == 0 ? 1 - tap.weight : tap.weight, size);
        }
    }
    give_row(work, &block, &rows[0], elements);
    give_row(work, &block, &rows[1], elements);
    us_scratch_give_back(memory);
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
