#include "kernels/loss/mapped_sum.h"

#include "kernels/map/formula.h"
#include "kernels/packed.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/axes.h"

#include <string.h>

/* elements; a block is a partial sum, PARTS of them within a tile */
enum { TILE = 512, BLOCK = 32 * TILE, PARTS = 16 };

typedef struct Tile {
    _Alignas(64) char bytes[TILE * sizeof(double)];
} Tile;

typedef struct Sum {
    const MapCall *map;
    MapBody *body;
    Lane lane;
    View inputs[MAP_INPUTS]; /* broadcast */
    Axes axes;
    int64_t count;
    Number *blocks;
} Sum;

/* The formula's numbers come first, then the values of absent inputs. */
static void fill_absent(const Sum *sum, Tile *tiles)
{
    int32_t absent = sum->map->formula->numbers;
    for (int k = 0; k < sum->map->inputs; k++) {
        if (us_view_is_absent(&sum->inputs[k])) {
            const double value = sum->map->numbers[absent++].real;
            _Alignas(double) char one[sizeof(double)];
            us_convert(one, us_lane_dtype(sum->lane), &value, DTYPE_FLOAT64, 1);
            us_copy_elements(tiles[k].bytes, 1, one, 0, (int64_t)us_dtype_size(us_lane_dtype(sum->lane)), TILE);
        }
    }
}

/* An input's elements in the lane, rounded to the type computed in; where they are that already, in place. */
static const void *load(const Sum *sum, int k, int64_t begin, int64_t count, Tile *tile, Tile *spare)
{
    const View *view = &sum->inputs[k];
    const DType lane = us_lane_dtype(sum->lane), compute = sum->map->compute;
    if (us_view_is_absent(view)) {
        return tile->bytes;
    }
    if (view->dtype == lane && count == TILE && sum->axes.rank == 1 && sum->axes.strides[k][0] == 1) {
        return (const char *)view->data + begin * (int64_t)us_dtype_size(lane);
    }
    us_axes_load(&sum->axes, k, view->data, view->dtype, begin, count, sum->lane, tile->bytes);
    if (compute != lane && view->dtype != compute) {
        us_convert(spare->bytes, compute, tile->bytes, lane, count);
        us_convert(tile->bytes, lane, spare->bytes, compute, count);
    }
    return tile->bytes;
}

static double sum_floats(const float *values, int64_t count)
{
    double parts[PARTS] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            parts[k] += (double)values[i + k];
        }
    }
    for (int k = 0; i + k < count; k++) {
        parts[k] += (double)values[i + k];
    }
    for (int k = 0; k < PARTS; k++) {
        sum += parts[k];
    }
    return sum;
}

static void add_tile(Number *sum, const void *values, Lane lane, int64_t count)
{
    if (lane == LANE_FLOAT) {
        sum->real += sum_floats(values, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        double real = 0;
        int64_t integer = 0;
        if (lane == LANE_DOUBLE) {
            real = ((const double *)values)[i];
        } else {
            integer = lane == LANE_INT32 ? ((const int32_t *)values)[i] : ((const int64_t *)values)[i];
        }
        sum->real += real;
        sum->integer = (int64_t)((uint64_t)sum->integer + (uint64_t)integer);
    }
}

static void sum_block(void *context, int64_t block)
{
    const Sum *sum = context;
    Tile tiles[MAP_INPUTS], results, spare;
    const int64_t first = block * BLOCK, end = sum->count - first < BLOCK ? sum->count : first + BLOCK;
    Number total = {0};
    memset(tiles, 0, sizeof tiles);
    fill_absent(sum, tiles);
    for (int64_t begin = first; begin < end; begin += TILE) {
        const int64_t count = end - begin < TILE ? end - begin : TILE;
        const void *inputs[MAP_INPUTS];
        for (int k = 0; k < sum->map->inputs; k++) {
            inputs[k] = load(sum, k, begin, count, &tiles[k], &spare);
        }
        sum->body(sum->map->numbers, TILE, inputs, (void *const[]){results.bytes}, false);
        add_tile(&total, results.bytes, sum->lane, count);
    }
    sum->blocks[block] = total;
}

static void put(const Sum *sum, Number total, double divisor, const View *out)
{
    const bool is_integer = !us_dtype_is_float(sum->map->compute);
    _Alignas(double) char rounded[sizeof(double)];
    if (is_integer && divisor == 1) {
        us_convert(rounded, sum->map->compute, &total.integer, DTYPE_INT64, 1);
    } else {
        const double result = (is_integer ? (double)total.integer : total.real) / divisor;
        us_convert(rounded, sum->map->compute, &result, DTYPE_FLOAT64, 1);
    }
    us_convert(out->data, out->dtype, rounded, sum->map->compute, 1);
}

static KernelStatus run(Sum *sum, const MappedSum *call, const View *out)
{
    const int64_t blocks = sum->count / BLOCK + (sum->count % BLOCK != 0); /* a view may have 2^63 - 1 elements */
    sum->blocks = us_scratch_array(blocks, sizeof *sum->blocks);
    if (sum->blocks == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(blocks, sum->count, sum_block, sum);
    Number total = {0};
    for (int64_t block = 0; block < blocks; block++) {
        total.real += sum->blocks[block].real;
        total.integer = (int64_t)((uint64_t)total.integer + (uint64_t)sum->blocks[block].integer);
    }
    us_scratch_give_back(sum->blocks);
    put(sum, total, call->divisor, out);
    return KERNEL_OK;
}

KernelStatus us_mapped_sum(const View *views, const void *attributes)
{
    const MappedSum *call = attributes;
    const MapCall *map = &call->map;
    Sum sum = {.map = map, .lane = us_lane_of(map->compute)};
    sum.body = map->formula->bodies()[sum.lane];
    const View *given[MAP_INPUTS], *pointers[MAP_INPUTS];
    Packed packed[MAP_INPUTS];
    int given_count = 0;
    int32_t rank = 0;
    int64_t shape[VIEW_RANK_LIMIT];
    for (int k = 0; k < map->inputs; k++) {
        if (!us_view_is_absent(&views[k])) {
            given[given_count++] = &views[k];
        }
    }
    us_broadcast_shape(given, given_count, &rank, shape, NULL);
    for (int k = 0; k < map->inputs; k++) {
        packed[k] = us_pack(&views[k]);
        sum.inputs[k] = us_view_is_absent(&views[k]) ? views[k] : us_view_broadcast(&packed[k].view, rank, shape);
        pointers[k] = us_view_is_absent(&views[k]) ? &sum.inputs[0] : &sum.inputs[k];
    }
    us_axes_add(&sum.axes, pointers, map->inputs, 0, rank);
    sum.count = us_view_elements(&sum.inputs[0]);
    const KernelStatus status = run(&sum, call, &views[map->inputs]);
    for (int k = map->inputs - 1; k >= 0; k--) {
        us_pack_end(&packed[k]);
    }
    return status;
}
