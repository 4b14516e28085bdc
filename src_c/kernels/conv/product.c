/* The sums of a gather as matrix products over columns. */
#include "kernels/conv/gather.h"
#include "kernels/matmul/matmul.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* Columns of one product: so many that they stay in a core's second cache, but no fewer than LEAST, for which the
 * filter is worth being read (or, for slopes, their sums). Images of few positions share products. There is work for a
 * few threads, by blocks of no fewer than LEAST_OF_FEW: BLAS packs the filter for each. */
enum { COLUMN_ELEMENTS = 192 * 1024, LEAST = 256, LEAST_OF_SLOPES = 512, SMALL_IMAGE = 512, MOST = 1024, FEW = 4,
       LEAST_OF_FEW = 256, FEWEST = 32 };

static Matrix turned(Matrix matrix)
{
    return (Matrix){.data = matrix.data, .dtype = matrix.dtype, .row = matrix.column, .column = matrix.row};
}

/* Positions that are handled together. */
typedef struct Cut {
    int64_t run;    /* blocks do not cross a multiple of it: an image, or everything */
    int64_t size;   /* of a block */
    int64_t per_run, count;
} Cut;

/* `each`: elements of the compute type that belong to a position; `by_channels`: these lie together wherever they are read
 * and written. */
static Cut cut_positions(const Gather *gather, int64_t each, int64_t least, bool by_channels)
{
    const int64_t image = conv_product3(gather->out_size), all = gather_positions(gather);
    Cut cut = {.run = image >= SMALL_IMAGE && !by_channels ? image : all};
    int64_t size = bounded(COLUMN_ELEMENTS / (each > 0 ? each : 1), least, MOST);
    const int64_t runs = all / cut.run;
    while (gather->groups * runs * ceiling(cut.run, size) < (size >= 2 * LEAST_OF_FEW ? FEW : 2) && size > FEWEST) {
        size /= 2;
    }
    cut.per_run = ceiling(cut.run, size);
    cut.per_run += runs * gather->groups == 1 && cut.per_run > 1 && cut.per_run < 8 ? cut.per_run % 2 : 0;
    cut.size = ceiling(ceiling(cut.run, cut.per_run), 16) * 16;
    cut.per_run = ceiling(cut.run, cut.size);
    cut.count = runs * cut.per_run;
    return cut;
}

static void block_of(const Cut *cut, int64_t number, int64_t *begin, int64_t *count)
{
    const int64_t within = number % cut->per_run * cut->size;
    *begin = number / cut->per_run * cut->run + within;
    *count = cut->run - within < cut->size ? cut->run - within : cut->size;
}

typedef struct Run {
    const Gather *gather;
    const Finish *finish;
    Matrix filter; /* of the first group: results x depth */
    int64_t filter_step; /* from group to group */
    int64_t depth;       /* channels * taps */
    size_t size;        /* of an element of the columns */
    size_t sum_size;
    Cut cut;
    bool by_channels;        /* the sums of a position lie together, as in the result */
    bool in_place, straight; /* the columns are the input; the product is the result */
    atomic_bool no_memory;
} Run;

/* ---- sums of a gather -------------------------------------------------------------------------------------------- */

/* Whether products can be written where the result belongs. */
static bool is_straight(const Run *run)
{
    const Gather *gather = run->gather;
    const View *out = &run->finish->out;
    const int64_t image = conv_product3(gather->out_size);
    if (out->dtype != gather->compute || !us_finish_is_plain(run->finish)) {
        return false;
    }
    int64_t expected = run->by_channels ? out->strides[4] : 1;
    for (int axis = 4; axis >= 2; axis--) {
        if (out->shape[axis] != 1 && out->strides[axis] != expected) {
            return false;
        }
        expected *= out->shape[axis];
    }
    return run->by_channels ? (out->shape[0] == 1 || out->strides[0] == expected) && out->strides[4] >= out->shape[1]
                            : run->cut.run == image;
}

static const char *columns_of(const Run *run, int64_t group, int64_t begin, int64_t count, char *memory,
                              int64_t *stride)
{
    const Gather *gather = run->gather;
    const int64_t plane = conv_product3(gather->in_size), all = gather->groups * gather->channels;
    if (!run->in_place) {
        us_gather_columns(gather, group, 0, gather->channels, begin, count, memory);
        *stride = gather->channels_last ? run->depth : count;
        return memory;
    }
    *stride = gather->channels_last ? all : plane;
    const int64_t channel = group * gather->channels;
    const int64_t first = gather->channels_last ? begin * all + channel
                                                : (begin / plane * all + channel) * plane + begin % plane;
    return (const char *)gather->in + first * (int64_t)run->size;
}

static void store_tile(const Run *run, int64_t group, int64_t begin, int64_t count, char *tile)
{
    const Gather *gather = run->gather;
    const int64_t size = (int64_t)run->sum_size, results = gather->results;
    for (int64_t k = 0; !run->by_channels && k < results; k++) {
        us_finish_positions(run->finish, gather->compute, group * results + k, begin, count, tile + k * count * size);
    }
    for (int64_t i = 0; run->by_channels && i < count; i++) {
        us_finish_channels(run->finish, gather->compute, begin + i, group * results, results,
                           tile + i * results * size);
    }
}

static void product_piece(void *context, int64_t piece)
{
    Run *run = context;
    const Gather *gather = run->gather;
    const View *out = &run->finish->out;
    const int64_t group = piece / run->cut.count, results = gather->results;
    int64_t begin, count, stride;
    block_of(&run->cut, piece % run->cut.count, &begin, &count);
    const size_t column_bytes = run->in_place ? 0 : us_scratch_bytes(us_scratch_count(run->depth, count), run->size);
    const size_t tile_bytes = run->straight ? 0 : us_scratch_bytes(us_scratch_count(results, count), run->sum_size);
    char *memory = us_scratch_take(column_bytes + tile_bytes + 64), *tile = memory + column_bytes;
    if (memory == NULL) {
        atomic_store(&run->no_memory, true);
        return;
    }
    const char *columns = columns_of(run, group, begin, count, memory, &stride);
    const DType compute = gather->compute, type = gather->column_type;
    Matrix filter = run->filter;
    filter.data = (const char *)filter.data + group * run->filter_step * (int64_t)run->size;
    const Matrix operand = matrix_of_rows(columns, type, stride);
    Matmul product = {.m = results, .n = count, .k = run->depth,
                      .a = filter, .b = gather->channels_last ? turned(operand) : operand,
                      .c = matrix_of_rows(tile, compute, count), .compute = compute, .alpha = {1}, .undivided = true};
    if (run->by_channels) {
        product.m = count, product.n = results;
        product.a = gather->channels_last ? operand : turned(operand);
        product.b = turned(filter);
        product.c.row = results;
    }
    if (run->straight) {
        const int64_t image = conv_product3(gather->out_size);
        const int64_t first = run->by_channels ? begin * out->strides[4]
                                               : begin / image * out->strides[0] + begin % image;
        product.c.data = (char *)out->data + (first + group * results * out->strides[1]) * (int64_t)run->sum_size;
        product.c.row = run->by_channels ? out->strides[4] : out->strides[1];
    }
    if (run->depth == 0) {
        memset(tile, 0, tile_bytes);
    } else if (us_matmul(&product) != KERNEL_OK) {
        atomic_store(&run->no_memory, true);
    }
    if (!run->straight) {
        store_tile(run, group, begin, count, tile);
    }
    us_scratch_give_back(memory);
}

KernelStatus us_gather_by_product(const Gather *gather, const Finish *finish)
{
    Run run = {.gather = gather, .finish = finish, .depth = gather->channels * gather_taps(gather),
               .by_channels = us_conv_has_channels_last(&finish->out),
               .size = us_dtype_size(gather->column_type), .sum_size = us_dtype_size(gather->compute)};
    const int64_t tile = us_dtype_size(gather->in_type) != run.sum_size ? gather->results : 0;
    bool taken;
    const KernelStatus status = us_gather_by_shifts(gather, finish, &taken);
    if (taken || status != KERNEL_OK) {
        return status;
    }
    run.cut = cut_positions(gather, run.depth + tile, LEAST, gather->channels_last && run.by_channels);
    const int64_t image = conv_product3(gather->out_size);
    run.in_place = us_gather_is_pointwise(gather) && gather->in_type == gather->column_type &&
                   (gather->channels_last || run.cut.run == image);
    run.straight = run.depth > 0 && is_straight(&run);
    atomic_init(&run.no_memory, false);
    void *packed = NULL;
    int64_t stride;
    if (us_gather_filter_stride(gather, &stride)) {
        run.filter = (Matrix){.data = gather->filter.data, .dtype = gather->column_type, .row = gather->filter.strides[1],
                              .column = stride};
        run.filter_step = gather->filter.strides[0];
    } else {
        packed = us_scratch_array(gather->groups * gather->results * run.depth, run.size);
        if (packed == NULL) {
            return KERNEL_NO_MEMORY;
        }
        us_gather_pack_filter(gather, packed);
        run.filter = matrix_of_rows(packed, gather->column_type, run.depth);
        run.filter_step = gather->results * run.depth;
    }
    us_parallel(gather->groups * run.cut.count, product_piece, &run);
    us_scratch_give_back(packed);
    return atomic_load(&run.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- slopes ------------------------------------------------------------------------------------------------------ */

/* The sums of one filter are formed over all positions, in order. Work for several threads comes from cutting
 * channels, whose columns differ, and where these are few, from cutting positions into parts, whose sums are then
 * added in order. */
enum { SLOPE_PIECES = 8, SLOPE_ELEMENTS = 128 * 1024, SLOPE_POSITIONS = 512 };

typedef struct Slopes {
    const Gather *gather;
    Gather rows; /* dy: every position sees itself */
    char *sums; /* [part][group][results][depth] */
    int64_t taps, channels, blocks; /* channels of a piece; pieces of a group */
    int64_t parts, blocks_per_part;
    size_t size;        /* of an element of the columns */
    size_t sum_size;
    Cut cut;
    bool in_place;
    atomic_bool no_memory;
} Slopes;

static const char *at(const Slopes *slopes, const void *data, int64_t element)
{
    return (const char *)data + element * (int64_t)slopes->size;
}

/* dy of one group at a block of positions, as a matrix; the stride of its rows. */
static const char *slope_rows(const Slopes *slopes, int64_t group, int64_t begin, int64_t count, char *memory,
                              int64_t *stride)
{
    const Gather *gather = slopes->gather;
    const int64_t image = conv_product3(gather->out_size), all = gather->groups * gather->results;
    const int64_t first = group * gather->results;
    if (slopes->rows.in_type != gather->column_type || (!gather->channels_last && begin % image + count > image)) {
        us_gather_columns(&slopes->rows, group, 0, gather->results, begin, count, memory);
        *stride = gather->channels_last ? gather->results : count;
        return memory;
    }
    *stride = gather->channels_last ? all : image;
    return at(slopes, slopes->rows.in, gather->channels_last ? begin * all + first
                                                             : (begin / image * all + first) * image + begin % image);
}

static const char *slope_columns(const Slopes *slopes, int64_t group, int64_t first, int64_t channels, int64_t begin,
                                 int64_t count, char *memory, int64_t *stride)
{
    const Gather *gather = slopes->gather;
    const int64_t plane = conv_product3(gather->in_size), all = gather->groups * gather->channels;
    if (slopes->in_place) {
        const int64_t channel = group * gather->channels + first;
        *stride = gather->channels_last ? all : plane;
        return gather->channels_last ? at(slopes, gather->in, begin * all + channel)
                                     : at(slopes, gather->in, (begin / plane * all + channel) * plane + begin % plane);
    }
    us_gather_columns(gather, group, first, channels, begin, count, memory);
    *stride = gather->channels_last || gather->by_position ? slopes->taps * channels : count;
    return memory;
}

static void slope_piece(void *context, int64_t piece)
{
    Slopes *slopes = context;
    const Gather *gather = slopes->gather;
    const int64_t part = piece % slopes->parts, block = piece / slopes->parts % slopes->blocks;
    const int64_t group = piece / slopes->parts / slopes->blocks, first = block * slopes->channels;
    const int64_t channels = gather->channels - first < slopes->channels ? gather->channels - first : slopes->channels;
    const int64_t depth = gather->channels * slopes->taps, width = channels * slopes->taps, results = gather->results;
    const size_t column_bytes = us_scratch_bytes(us_scratch_count(width, slopes->cut.size), slopes->size);
    const size_t row_bytes = us_scratch_bytes(us_scratch_count(results, slopes->cut.size), slopes->size);
    const size_t sum_bytes = us_scratch_bytes(us_scratch_count(results, width), slopes->sum_size);
    char *memory = us_scratch_take(column_bytes + row_bytes + sum_bytes);
    if (memory == NULL) {
        atomic_store(&slopes->no_memory, true);
        return;
    }
    char *rows = memory + column_bytes, *sums = rows + row_bytes;
    memset(sums, 0, (size_t)(results * width) * slopes->sum_size);
    const int64_t end = (part + 1) * slopes->blocks_per_part;
    for (int64_t number = part * slopes->blocks_per_part; number < end && number < slopes->cut.count; number++) {
        int64_t begin, count;
        block_of(&slopes->cut, number, &begin, &count);
        int64_t row_stride, column_stride;
        const char *dy = slope_rows(slopes, group, begin, count, rows, &row_stride);
        const char *columns = slope_columns(slopes, group, first, channels, begin, count, memory, &column_stride);
        const Matrix dy_rows = matrix_of_rows(dy, gather->column_type, row_stride);
        const Matrix column_rows = matrix_of_rows(columns, gather->column_type, column_stride);
        Matmul product = {.m = results, .n = width, .k = count,
                          .a = gather->channels_last ? turned(dy_rows) : dy_rows,
                          .b = gather->channels_last || gather->by_position ? column_rows : turned(column_rows),
                          .c = matrix_of_rows(sums, gather->compute, width),
                          .compute = gather->compute, .alpha = {1}, .beta = {1}, .undivided = true};
        product.addend = product.c;
        if (us_matmul(&product) != KERNEL_OK) {
            atomic_store(&slopes->no_memory, true);
        }
    }
    /* Into the order of a packed filter. */
    const int64_t runs = gather->channels_last ? slopes->taps : 1, run = width / runs;
    const int64_t size = (int64_t)slopes->sum_size;
    char *to = slopes->sums + (part * gather->groups + group) * results * depth * size;
    for (int64_t k = 0; k < results; k++) {
        for (int64_t i = 0; i < runs; i++) {
            const int64_t place = gather->channels_last ? i * gather->channels + first : first * slopes->taps;
            memcpy(to + (k * depth + place) * size, sums + (k * width + i * run) * size, (size_t)(run * size));
        }
    }
    us_scratch_give_back(memory);
}

static void add_part_float(float *restrict sums, const float *restrict part, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += part[i];
    }
}

static void add_part_double(double *restrict sums, const double *restrict part, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += part[i];
    }
}

Gather us_gather_of_rows(const Gather *gather, const void *dy, DType type)
{
    Gather rows = *gather;
    rows.in = dy;
    rows.in_type = type;
    rows.channels = gather->results;
    for (int axis = 0; axis < CONV_AXES; axis++) {
        rows.in_size[axis] = gather->out_size[axis];
        rows.step[axis] = 1;
        rows.taps[axis] = (TapAxis){1, 0, 0};
    }
    us_gather_merge_axes(&rows);
    return rows;
}

/* Long runs of taps are copied as fast by position as every other position is by tap, and BLAS reads their columns faster. */
static bool has_tap_runs(const Gather *gather)
{
    enum { LEAST_RUN = 5 };
    return !gather->channels_last && gather->in_type == gather->column_type && gather->taps[2].count >= LEAST_RUN &&
           gather->taps[2].offset_step == 1 && gather->step[2] > 1;
}

KernelStatus us_gather_slopes_by_product(const Gather *of, const void *dy, DType dy_type, void *sums)
{
    Gather arranged = *of, *gather = &arranged;
    arranged.by_position = has_tap_runs(of);
    Slopes slopes = {.gather = gather, .rows = us_gather_of_rows(of, dy, dy_type), .taps = gather_taps(gather),
                     .size = us_dtype_size(gather->column_type), .sum_size = us_dtype_size(gather->compute)};
    bool taken;
    const KernelStatus status = us_gather_slopes_by_shifts(gather, dy, dy_type, sums, &taken);
    if (taken || status != KERNEL_OK) {
        return status;
    }
    const int64_t depth = gather->channels * slopes.taps, elements = gather->groups * gather->results * depth;
    const int64_t most = gather->channels, wanted = ceiling(SLOPE_PIECES, gather->groups);
    slopes.blocks = bounded(ceiling(gather->results * depth, SLOPE_ELEMENTS), 1, wanted < most ? wanted : most);
    slopes.channels = ceiling(gather->channels, slopes.blocks);
    slopes.blocks = ceiling(gather->channels, slopes.channels);
    const int64_t converted = dy_type != gather->column_type ? gather->results : 0;
    slopes.cut = cut_positions(gather, slopes.channels * slopes.taps + converted, LEAST_OF_SLOPES, gather->channels_last);
    slopes.parts = bounded(SLOPE_PIECES / (gather->groups * slopes.blocks), 1, slopes.cut.count);
    slopes.blocks_per_part = ceiling(slopes.cut.count, slopes.parts);
    slopes.parts = ceiling(slopes.cut.count, slopes.blocks_per_part);
    slopes.in_place = us_gather_is_pointwise(gather) && gather->in_type == gather->column_type &&
                      (gather->channels_last || slopes.cut.run == conv_product3(gather->out_size));
    atomic_init(&slopes.no_memory, false);
    slopes.sums = sums;
    char *memory = NULL;
    if (slopes.parts > 1) {
        memory = slopes.sums = us_scratch_array(us_scratch_count(slopes.parts, elements), slopes.sum_size);
        if (memory == NULL) {
            return KERNEL_NO_MEMORY;
        }
    }
    us_parallel(gather->groups * slopes.blocks * slopes.parts, slope_piece, &slopes);
    for (int64_t part = 0; memory != NULL && part < slopes.parts; part++) {
        const char *from = memory + part * elements * (int64_t)slopes.sum_size;
        if (part == 0) {
            memcpy(sums, from, (size_t)elements * slopes.sum_size);
        } else if (gather->compute == DTYPE_FLOAT64) {
            add_part_double(sums, (const double *)from, elements);
        } else {
            add_part_float(sums, (const float *)from, elements);
        }
    }
    us_scratch_give_back(memory);
    return atomic_load(&slopes.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
