/* Sums and products at places: positions are sorted by the element (or slice) they name, keeping their order, and each
 * group is added up in the wide type and rounded once. */
#include "kernels/index/places.h"
#include "kernels/scratch.h"
#include "kernels/sort/radix.h"
#include "tensor/clones.h"
#include "tensor/parallel.h"

#include <string.h>

enum { PIECE = 4096, SLICE_TILE = 512, WIDE_BYTES = 16 };

typedef struct Accumulation {
    const Places *places;
    const PlaceAxes *axes;
    const void *index_data[INDEX_LIMIT];
    OutsideIndex outside;
    int64_t lowest; /* of the offsets into the tensor */
    WideEntry *entries; /* key: offset - lowest; place: outer position */
    int64_t slice_tiles;
} Accumulation;

/* ---- the wide type ---- */

KERNEL_CLONES static void combine_real(double *sums, const double *values, int64_t count, bool multiplies)
{
    if (multiplies) {
        for (int64_t i = 0; i < count; i++) {
            sums[i] *= values[i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            sums[i] += values[i];
        }
    }
}

KERNEL_CLONES static void combine_integer(uint64_t *sums, const uint64_t *values, int64_t count, bool multiplies)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] = multiplies ? sums[i] * values[i] : sums[i] + values[i];
    }
}

static void multiply_complex(double *products, const double *values, int64_t count)
{
    for (int64_t i = 0; i < 2 * count; i += 2) {
        const double real = products[i] * values[i] - products[i + 1] * values[i + 1];
        products[i + 1] = products[i] * values[i + 1] + products[i + 1] * values[i];
        products[i] = real;
    }
}

static void combine(Lane lane, void *sums, const void *values, int64_t count, bool multiplies)
{
    if (lane == LANE_COMPLEX128 && multiplies) {
        multiply_complex(sums, values, count);
    } else if (lane == LANE_COMPLEX128 || lane == LANE_DOUBLE) {
        combine_real(sums, values, lane == LANE_DOUBLE ? count : 2 * count, multiplies);
    } else {
        combine_integer(sums, values, count, multiplies);
    }
}

static void scale(Lane lane, void *values, int64_t count, Number number)
{
    const double parts[2] = {number.real, number.imaginary};
    for (int64_t i = 0; i < count; i++) {
        if (lane == LANE_DOUBLE) {
            ((double *)values)[i] *= number.real;
        } else if (lane == LANE_COMPLEX128) {
            multiply_complex((double *)values + 2 * i, parts, 1);
        } else {
            ((uint64_t *)values)[i] *= (uint64_t)number.integer;
        }
    }
}

/* ---- groups ---- */

static char *element_at(const View *view, int64_t offset)
{
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* Entries first … end-1 name one slice: elements begin … begin+count-1 of it. */
static void add_group(const Accumulation *work, int64_t first, int64_t end, int64_t begin, int64_t count)
{
    _Alignas(64) unsigned char sums[SLICE_TILE * WIDE_BYTES], values[SLICE_TILE * WIDE_BYTES];
    const Places *places = work->places;
    const Indexing *call = places->call;
    const View *tensor = &places->tensor, *other = &places->other;
    const Axes *inner = &work->axes->inner;
    const Lane lane = us_lane_of(us_wide_dtype(tensor->dtype));
    char *target = element_at(tensor, (int64_t)work->entries[first].key + work->lowest);
    us_axes_load(inner, PLACE_TENSOR, target, tensor->dtype, begin, count, lane, sums);
    for (int64_t k = first; k < end; k++) {
        const int64_t offset = us_axes_offset(&work->axes->outer, PLACE_OTHER, (int64_t)work->entries[k].place);
        us_axes_load(inner, PLACE_OTHER, element_at(other, offset), other->dtype, begin, count, lane, values);
        if (call->scales) {
            scale(lane, values, count, call->value);
        }
        combine(lane, sums, values, count, call->action == INDEX_MULTIPLY);
    }
    us_axes_store(inner, PLACE_TENSOR, target, tensor->dtype, begin, count, lane, sums);
}

/* The groups that begin among the entries of a piece, one tile of the slices. */
static void add_piece(void *context, int64_t piece)
{
    const Accumulation *work = context;
    const WideEntry *entries = work->entries;
    const int64_t total = work->axes->outer_count, inner = work->axes->inner_count;
    const int64_t begin = piece / work->slice_tiles * PIECE, end = total < begin + PIECE ? total : begin + PIECE;
    const int64_t tile = piece % work->slice_tiles * SLICE_TILE, rest = inner - tile;
    int64_t first = begin;
    while (first < end && first > 0 && entries[first].key == entries[first - 1].key) {
        first++;
    }
    while (first < end) {
        int64_t behind = first + 1;
        while (behind < total && entries[behind].key == entries[first].key) {
            behind++;
        }
        add_group(work, first, behind, tile, rest < SLICE_TILE ? rest : SLICE_TILE);
        first = behind;
    }
}

/* ---- the sort ---- */

static void read_piece(void *context, int64_t piece)
{
    Accumulation *work = context;
    const int64_t total = work->axes->outer_count, end = total < (piece + 1) * PIECE ? total : (piece + 1) * PIECE;
    int64_t tensor[PLACE_TILE], other[PLACE_TILE];
    for (int64_t begin = piece * PIECE; begin < end; begin += PLACE_TILE) {
        const int64_t count = end - begin < PLACE_TILE ? end - begin : PLACE_TILE;
        if (!us_place_tile(work->places, &work->axes->outer, work->index_data, begin, count, tensor, other, piece,
                           &work->outside)) {
            return;
        }
        for (int64_t i = 0; i < count; i++) {
            work->entries[begin + i] = (WideEntry){(uint64_t)(tensor[i] - work->lowest), (uint64_t)(begin + i)};
        }
    }
}

/* The smallest and the largest offset that places can have. */
static void offset_limits(const Accumulation *work, int64_t *lowest, int64_t *highest)
{
    *lowest = *highest = 0;
    const Axes *outer = &work->axes->outer;
    for (int32_t axis = 0; axis < outer->rank; axis++) {
        const int64_t span = (outer->shape[axis] - 1) * outer->strides[PLACE_TENSOR][axis];
        *(span < 0 ? lowest : highest) += span;
    }
    for (int32_t k = 0; k < work->places->count; k++) {
        const IndexedAxis axis = work->places->axes[k].axis;
        const int64_t span = axis.size > 0 ? (axis.size - 1) * axis.stride : 0;
        *(span < 0 ? lowest : highest) += span;
    }
}

KernelStatus us_accumulate_places(const Places *places)
{
    const PlaceAxes axes = us_place_axes(places);
    Accumulation work = {.places = places, .axes = &axes};
    const int64_t count = axes.outer_count, pieces = (count + PIECE - 1) / PIECE;
    WideEntry *const block = us_scratch_take(2 * (size_t)count * sizeof *block);
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int32_t k = 0; k < places->count; k++) {
        work.index_data[k] = places->axes[k].index.data;
    }
    int64_t highest = 0;
    offset_limits(&work, &work.lowest, &highest);
    work.entries = block;
    us_parallel(pieces, read_piece, &work);
    KernelStatus status = us_place_status(&work.outside);
    if (status == KERNEL_OK) {
        const uint64_t range = (uint64_t)(highest - work.lowest);
        work.entries = us_sort_wide(block, block + count, count, range == 0 ? 0 : 64 - __builtin_clzll(range));
        status = work.entries != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    }
    if (status == KERNEL_OK) {
        work.slice_tiles = (axes.inner_count + SLICE_TILE - 1) / SLICE_TILE;
        us_parallel(pieces * work.slice_tiles, add_piece, &work);
    }
    us_scratch_give_back(block);
    return status;
}
