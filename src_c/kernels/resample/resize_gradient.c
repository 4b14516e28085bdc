#include "kernels/resample/resize_gradient.h"

#include "kernels/resample/clamped.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <math.h>
#include <stdatomic.h>

/* Channels of a block; most channels of a vector, and vectors and rows that are added at a time; elements of slopes that a
 * piece of work sees; bytes of the longest vector. */
enum { BLOCK_CHANNELS = 64, CHANNELS = 8, TOGETHER = 4, ROWS = 4, PADDED_TAPS = 4, PIECE_ELEMENTS = 4096, VECTOR_BYTES = 64 };

/* Where an index goes along one axis: two neighbours and the weight of the second. */
typedef struct Taps {
    int64_t first, second;
    double weight;
} Taps;

static Taps taps_of(const ResizeGradient *work, int axis, int64_t index)
{
    const double last = (double)(work->image_size[axis] - 1);
    const double place = (double)((float)index * work->scale[axis]); /* a product of floats: 3 times 5 / 6 is 2.5 */
    if (work->kind != RESIZE_BILINEAR) {
        const double nearest = work->kind == RESIZE_NEAREST ? floor(place) : rounded(place);
        const int64_t at = (int64_t)clamped(nearest, last);
        return (Taps){at, at, 0};
    }
    const double low = clamped(floor(place), last);
    return (Taps){(int64_t)low, (int64_t)clamped(ceil(place), last), place - floor(place)};
}

/* What goes to every place of an axis of the image, ascending: sources[begin[place]] … sources[begin[place + 1] - 1]. */
typedef struct Source {
    int64_t place;
    double weight;
} Source;

typedef struct Sources {
    int64_t *begin;
    Source *sources;
} Sources;

static size_t begin_bytes(const ResizeGradient *g, int axis)
{
    return us_scratch_bytes(g->image_size[axis] + 2, sizeof(int64_t));
}

static size_t source_bytes(const ResizeGradient *g, int axis)
{
    return us_scratch_bytes(g->slopes_size[axis], 2 * sizeof(Source));
}

static void find_sources(const ResizeGradient *g, int axis, Sources *to)
{
    int64_t *next = to->begin + 1; /* where the next source of a place comes; when all have come, where its successor begins */
    const int64_t places = g->image_size[axis];
    for (int64_t place = 0; place <= places; place++) {
        next[place] = 0;
    }
    for (int64_t index = 0; index < g->slopes_size[axis]; index++) {
        const Taps taps = taps_of(g, axis, index);
        next[taps.first + 1]++;
        next[taps.second + 1] += taps.second != taps.first;
    }
    for (int64_t place = 1; place <= places; place++) {
        next[place] += next[place - 1];
    }
    to->begin[0] = 0;
    for (int64_t index = 0; index < g->slopes_size[axis]; index++) {
        const Taps taps = taps_of(g, axis, index);
        const bool is_one = taps.first == taps.second;
        to->sources[next[taps.first]++] = (Source){index, is_one ? 1 : 1 - taps.weight};
        if (!is_one) {
            to->sources[next[taps.second]++] = (Source){index, taps.weight};
        }
    }
}

/* The same for the columns of planes, tap by tap: the same number for every place. */
typedef struct Padded {
    int64_t taps; /* 0: some place has more than PADDED_TAPS, or there are channels */
    int32_t *places;
    void *weights;  /* of the type that is computed in */
    void *lanes;    /* of each vector of places: where its sources lie behind their base; NULL: too far, or level */
    int32_t *bases;
} Padded;

typedef struct ResizeWork {
    const ResizeGradient *gradient;
    Sources axes[2];
    Padded padded;
    int64_t width, blocks;    /* channels of a block, blocks of an image */
    int64_t band, bands;      /* rows of a band, bands of a block */
    int64_t held_rows;        /* rows of slopes that are held */
    atomic_int out_of_memory;
} ResizeWork;

/* A band of rows of a block of channels of an image. */
typedef struct Block {
    char *image;
    const char *slopes; /* of the whole image */
    int64_t channels, step; /* step: from place to place, elements */
    int64_t first_row, rows;
} Block;

static Block block_of(const ResizeWork *work, int64_t piece)
{
    const ResizeGradient *g = work->gradient;
    const int64_t number = piece / work->bands, image = number / work->blocks, first = number % work->blocks * work->width;
    const int64_t places = g->image_size[0] * g->image_size[1], taken = g->slopes_size[0] * g->slopes_size[1];
    const int64_t size = (int64_t)us_dtype_size(g->dtype), row = piece % work->bands * work->band;
    Block block = {.channels = g->channels - first < work->width ? g->channels - first : work->width,
                   .step = g->planar ? 1 : g->channels, .first_row = row,
                   .rows = g->image_size[0] - row < work->band ? g->image_size[0] - row : work->band};
    block.image = (char *)g->image + (image * g->channels * places + first * (g->planar ? places : 1)) * size;
    block.image += row * g->image_size[1] * block.step * size;
    block.slopes = (const char *)g->slopes + (image * g->channels * taken + first * (g->planar ? taken : 1)) * size;
    return block;
}

/* Arrays that are smaller together stay in a cache that is near enough. */
enum { FAR_BYTES = 4 << 20 };

/* What the next piece reads of an array, which most often lies behind what this one does, in a part for each row. */
typedef struct Next {
    const char *from;
    int64_t part, left; /* bytes: of a row; to the end of the array */
} Next;

typedef struct NextOfBlock {
    Next slopes, image;
} NextOfBlock;

static NextOfBlock next_of(const ResizeWork *work, const Block *block)
{
    const ResizeGradient *g = work->gradient;
    const Sources *axis = &work->axes[0];
    const int64_t size = (int64_t)us_dtype_size(g->dtype), images = g->batch * g->channels * size;
    const int64_t place = block->step * size, slopes_row = g->slopes_size[1] * place, image_row = g->image_size[1] * place;
    const int64_t behind = axis->begin[block->first_row + block->rows];
    const int64_t rows = behind > 0 ? axis->sources[behind - 1].place + 1 : 0;
    const char *const slopes = block->slopes + rows * slopes_row, *const image = block->image + block->rows * image_row;
    const int64_t slopes_end = images * g->slopes_size[0] * g->slopes_size[1];
    const int64_t image_end = images * g->image_size[0] * g->image_size[1];
    if (block->channels != block->step || slopes_end + image_end < FAR_BYTES) {
        return (NextOfBlock){{slopes, 0, 0}, {image, 0, 0}};
    }
    const int64_t part = work->held_rows * slopes_row / block->rows;
    return (NextOfBlock){{slopes, part, (const char *)g->slopes + slopes_end - slopes},
                         {image, image_row, (const char *)g->image + image_end - image}};
}

US_ALWAYS_INLINE void fetch_part(Next *next)
{
    const int64_t bytes = next->part < next->left ? next->part : next->left;
    const char *const end = next->from + bytes;
    for (const char *line = next->from; line < end; line += CACHE_LINE_BYTES) {
        __builtin_prefetch(line);
    }
    next->from = end;
    next->left -= bytes;
}

#define LOOPS "kernels/resample/resize_columns.inc"
#include "kernels/registers.inc"

#define BODY "kernels/resample/resize_gradient.inc"
#include "kernels/both_reals.inc"

static void choose_pieces(ResizeWork *work)
{
    const ResizeGradient *g = work->gradient;
    work->width = g->planar ? 1 : BLOCK_CHANNELS;
    work->blocks = (g->channels + work->width - 1) / work->width;
    const int64_t channels = g->channels < work->width ? g->channels : work->width;
    const int64_t rows = PIECE_ELEMENTS / (g->slopes_size[1] * channels) + 1;
    work->held_rows = rows < g->slopes_size[0] ? rows : g->slopes_size[0];
    work->band = g->image_size[0] * work->held_rows / g->slopes_size[0];
    work->band = work->band > 0 ? work->band : 1;
    work->bands = (g->image_size[0] + work->band - 1) / work->band;
}

static int64_t padded_taps(const ResizeWork *work)
{
    int64_t taps = 1;
    for (int64_t x = 0; x < work->gradient->image_size[1]; x++) {
        const int64_t count = work->axes[1].begin[x + 1] - work->axes[1].begin[x];
        taps = count > taps ? count : taps;
    }
    return work->gradient->planar && taps <= PADDED_TAPS ? taps : 0;
}

KernelStatus us_resize_gradient(const ResizeGradient *gradient)
{
    const ResizeGradient *g = gradient;
    ResizeWork work = {.gradient = gradient};
    if (g->batch * g->channels * g->slopes_size[0] * g->slopes_size[1] * g->image_size[0] * g->image_size[1] == 0) {
        return KERNEL_OK;
    }
    size_t size = 0;
    for (int axis = 0; axis < 2; axis++) {
        size += begin_bytes(g, axis) + source_bytes(g, axis);
    }
    const size_t places = us_scratch_bytes(g->image_size[1], PADDED_TAPS * sizeof(int32_t));
    const size_t weights = us_scratch_bytes(g->image_size[1], PADDED_TAPS * sizeof(double));
    size += 2 * places + 2 * weights;
    char *memory = us_scratch_take(size), *cursor = memory;
    if (!memory) {
        return KERNEL_NO_MEMORY;
    }
    for (int axis = 0; axis < 2; axis++) {
        work.axes[axis].begin = us_scratch_part(&cursor, begin_bytes(g, axis));
        work.axes[axis].sources = us_scratch_part(&cursor, source_bytes(g, axis));
        find_sources(g, axis, &work.axes[axis]);
    }
    choose_pieces(&work);
    const bool narrow = g->dtype == DTYPE_FLOAT16 || g->dtype == DTYPE_BFLOAT16;
    work.padded.taps = padded_taps(&work);
    work.padded.places = us_scratch_part(&cursor, places);
    work.padded.bases = us_scratch_part(&cursor, places);
    work.padded.weights = us_scratch_part(&cursor, weights);
    work.padded.lanes = us_scratch_part(&cursor, weights);
    if (narrow) {
        pad_columns_float(&work);
    } else {
        pad_columns_double(&work);
    }
    const int64_t pieces = g->batch * work.blocks * work.bands;
    const int64_t elements = g->batch * g->channels * g->slopes_size[0] * g->slopes_size[1];
    run_pieces(pieces, elements, narrow ? resize_piece_float : resize_piece_double, &work);
    us_scratch_give_back(memory);
    return atomic_load(&work.out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
